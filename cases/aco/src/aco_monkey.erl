%% @doc The monkey of a node: at a fixed rate it kills one of the run's processes there,
%% drawn among submasters, colonies and ants. The master, the hosts and what
%% belongs to them are spared.
-module(aco_monkey).

-export([start_link/2]).
-export([init/2]).

%% What it needs of the run: kills a second, and what it draws from.
-type run() :: #{chaos := number(), options := aco_options:options(), _ => _}.

%% @doc Starts it, linked to the calling host. Without chaos there is none.
-spec start_link(aco_keep:keep(), run()) -> pid() | none.
start_link(_, #{chaos := Rate}) when Rate == 0 ->
    none;
start_link(Keep, Run) ->
    spawn_link(?MODULE, init, [self(), {Keep, Run}]).

%% @private
-spec init(pid(), {aco_keep:keep(), run()}) -> no_return().
init(Host, {Keep, #{chaos := Rate, options := #{seed := Seed}}}) ->
    _ = rand:seed(exsss, {Seed, erlang:phash2(node()), 0}),
    Every = max(1, round(1000 / Rate)),
    loop({Host, Keep}, Every, erlang:monotonic_time(millisecond) + Every).

%% By the clock, and not so long after each other: a busy node gets no fewer.
loop({_, Keep} = Node, Every, At) ->
    receive after max(0, At - erlang:monotonic_time(millisecond)) -> ok end,
    ok = kill(victims(Node), Keep),
    loop(Node, Every, At + Every).

kill([], _) ->
    ok;
kill(Victims, Keep) ->
    Victim = lists:nth(rand:uniform(length(Victims)), Victims),
    true = exit(Victim, kill),
    aco_keep:count(kills, Keep).

victims({Host, Keep}) ->
    [Pid || {Id, Role} <- aco_keep:roles(Keep), Pid <- [Role | ants(Id, Role, Host)], is_process_alive(Pid)].

%% A colony is linked with its ants, and with its host.
ants(Id, Colony, Host) when is_integer(Id) ->
    case process_info(Colony, links) of
        {links, Links} -> lists:delete(Host, Links);
        undefined -> []
    end;
ants(_, _, _) ->
    [].
