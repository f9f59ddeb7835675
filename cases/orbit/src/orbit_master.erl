%% @doc The master of a distributed run, on the node that asked for it.
%%
%% It starts the submaster of group 1, and with it the whole tree; sends the
%% first vertex with the credit 1; and waits until all of it has come back.
%% Then, and only then, no vertex is under way, and it asks for the results. It
%% answers when the run has been taken down, by its own exit reason: nothing
%% reaches a caller that is not of the run it has started.
%%
%% A result is given only if the credit was exactly 1 and every worker's part
%% is in it. A failure that is reported before ends the run instead.
-module(orbit_master).

-export([run/1]).
-export([init/2]).

-export_type([message/0, outcome/0]).

-type outcome() :: {ok, orbit_tally:tally(), WallMs :: non_neg_integer()}
                 | {error, orbit_failure:reason()}.

%% All but the last two from the submaster of group 1.
-type message() ::
    {group_ready, pid(), orbit_submaster:directory()}
    | {credit, orbit_credit:credit()}
    | {result, pid(), orbit_tally:tally()}
    | {failed, orbit_failure:reason()}
    | {halted, pid()}
    | {'EXIT', pid(), term()}
    | {'DOWN', reference(), process, pid(), term()}.

-record(master, {
    caller :: reference(),
    run :: orbit_run:run(),
    submaster :: pid(),
    stage = building :: building | running | collecting,
    %% what has come back
    credit = orbit_credit:none() :: orbit_credit:credit(),
    %% when the first vertex was sent, in native units
    began = 0 :: integer()
}).

%% Longer than a submaster waits for those below it.
-define(TAKE_DOWN_MS, 6_000).

%% @doc Runs it. If the caller dies in the meantime, the run is taken down.
-spec run(orbit_run:run()) -> outcome().
run(Run) ->
    {Master, Ref} = spawn_monitor(?MODULE, init, [self(), Run]),
    receive
        {'DOWN', Ref, process, Master, {outcome, Outcome}} -> Outcome;
        {'DOWN', Ref, process, Master, Why} -> {error, orbit_failure:of_exit(node(), Why)}
    end.

%% @private
-spec init(pid(), orbit_run:run()) -> no_return().
init(Caller, #{mode := Mode, nodes := Nodes, group_size := Size} = Run) ->
    process_flag(trap_exit, true),
    Ref = monitor(process, Caller),
    Topology = orbit_topology:new(Mode, Nodes, Size),
    Submaster = orbit_submaster:start_link(self(), 1, Topology, Run),
    loop(#master{caller = Ref, run = Run, submaster = Submaster}).

loop(Master) ->
    receive
        Message -> loop(handle(Message, Master))
    end.

-spec handle(message(), #master{}) -> #master{}.
handle({group_ready, Submaster, Directory}, #master{stage = building} = Master) ->
    Submaster ! {start, Directory},
    [Unit] = orbit_credit:all(),
    Submaster ! {seed, 0, Unit},
    Master#master{stage = running, began = erlang:monotonic_time()};
handle({credit, Credit}, #master{stage = running, credit = Before} = Master) ->
    All = orbit_credit:all(),
    case orbit_credit:sum(Credit, Before) of
        All ->
            Master#master.submaster ! dump,
            Master#master{stage = collecting, credit = All};
        Some ->
            Master#master{credit = Some}
    end;
handle({result, Submaster, Tally}, #master{stage = collecting, began = Began} = Master) ->
    Took = erlang:monotonic_time() - Began,
    ok = is_whole(Tally, Master#master.run),
    Submaster ! halt,
    finish({ok, Tally, erlang:convert_time_unit(Took, native, millisecond)}, Master);
handle({failed, Reason}, Master) ->
    finish({error, Reason}, Master);
handle({'EXIT', Submaster, Why}, #master{submaster = Submaster}) ->
    exit({outcome, {error, orbit_failure:of_exit(node(), Why)}});
handle({'DOWN', Caller, process, _, _}, #master{caller = Caller} = Master) ->
    Master#master.submaster ! {failed, caller_gone},
    finish({error, caller_gone}, Master).

%% Each vertex of the set came in by one message under each generator, but the
%% first one, which came in once more.
is_whole(#{workers := Answered, size := Size, received := Received}, Run) ->
    #{nodes := Nodes, workers := PerNode, generators := Name, space := Space} = Run,
    Answered = length(Nodes) * PerNode,
    Received = 1 + Size * length(orbit_generators:functions(Name, Space)),
    ok.

%% The outcome is known. The submaster halts already; when all below it have
%% done so too, it is told to delete the groups and end. One that does not
%% answer in time is given up: it ends by itself when it sees this exit.
-spec finish(outcome(), #master{}) -> no_return().
finish(Outcome, #master{submaster = Submaster}) ->
    _ = erlang:send_after(?TAKE_DOWN_MS, self(), halt_deadline),
    _ = erlang:send_after(2 * ?TAKE_DOWN_MS, self(), close_deadline),
    ok = take_down(Submaster),
    exit({outcome, Outcome}).

take_down(Submaster) ->
    receive
        {halted, Submaster} ->
            Submaster ! close,
            take_down(Submaster);
        halt_deadline ->
            Submaster ! close,
            take_down(Submaster);
        {'EXIT', Submaster, _} ->
            ok;
        close_deadline ->
            ok
    end.
