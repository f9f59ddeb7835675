%% @doc The process around an `orbit_fragment'.
%%
%% It is started by the host of its node and ends with it. Vertices may reach
%% it before its route does, from workers that have theirs; they wait in the
%% mailbox. After a moment without a message all credit goes back: the shorter
%% the moment, the sooner the end is known and the more credit messages there
%% are. A worker that holds no credit has no reason to wake up.
-module(orbit_worker).

-export([start_link/3]).
-export([init/3]).

-export_type([message/0]).

-type message() ::
    %% once, before anything else is read
    {start, orbit_route:route()}
    %% from a worker, from a gateway, or the first of the run
    | {vertex, orbit_generators:vertex(), orbit_credit:unit()}
    %% from the host, when all credit is with the master: answer
    %% `{result, self(), orbit_tally:tally()}'
    | dump.

-record(worker, {
    host :: pid(),
    %% who collects the credit
    submaster :: pid(),
    run :: orbit_run:run(),
    meter :: orbit_meter:meter(),
    route :: orbit_route:route()
}).

%% @doc Starts a worker on this node, linked to the caller, its host.
-spec start_link(pid(), orbit_run:run(), orbit_meter:meter()) -> pid().
start_link(Submaster, Run, Meter) ->
    spawn_link(?MODULE, init, [{self(), Submaster}, Run, Meter]).

%% @private
-spec init({pid(), pid()}, orbit_run:run(), orbit_meter:meter()) -> no_return().
init({Host, Submaster}, Run, Meter) ->
    #{generators := Name, space := Space} = Run,
    Fragment = orbit_fragment:new(orbit_generators:functions(Name, Space)),
    receive
        {start, Route} ->
            Worker = #worker{host = Host, submaster = Submaster, run = Run, meter = Meter,
                             route = Route},
            loop(infinity, Fragment, Worker)
    end.

%% `Moment' is infinity while no credit is held.
loop(Moment, Fragment, Worker) ->
    receive
        {vertex, X, Unit} ->
            {Images, Next} = orbit_fragment:vertex(X, Unit, Fragment),
            ok = send(Images, Worker#worker.route),
            loop(maps:get(idle_ms, Worker#worker.run), Next, Worker);
        dump ->
            #worker{host = Host, run = #{vertices := Keep}} = Worker,
            Host ! {result, self(), orbit_fragment:tally(Fragment, Keep)},
            loop(infinity, Fragment, Worker);
        Other ->
            error({unexpected_message, Other})
    after Moment ->
        loop(infinity, return_credit(Fragment, Worker), Worker)
    end.

send([{X, Unit} | Images], Route) ->
    ok = orbit_route:send(X, Unit, Route),
    send(Images, Route);
send([], _) ->
    ok.

return_credit(Fragment, #worker{meter = Meter, submaster = Submaster}) ->
    case orbit_fragment:idle(Fragment) of
        {[], Next} ->
            Next;
        {Credit, Next} ->
            ok = orbit_meter:send(Meter, credit, Submaster, {credit, Credit}),
            Next
    end.
