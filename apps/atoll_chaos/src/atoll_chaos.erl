%% SPDX-License-Identifier: Apache-2.0
%% @doc Faults on real nodes, by script or at a rate; logged; always healed.
%%
%% In a shell that is connected with a node of a cluster, best as a hidden one, whose
%% nodes are known to that node:
%% ```
%% Nodes = [Node | rpc:call(Node, erlang, nodes, [])].
%% {ok, Run} = atoll_chaos:start(#{nodes => Nodes, rate => 1, kinds => [process, cut], seed => 7}).
%% atoll_chaos:stop(Run).
%% '''
%% On a cluster of {@link atoll_cluster}, with a script as the simulator plays it:
%% ```
%% {ok, Script} = atoll_sim_script:read("storm.script"),
%% {ok, Result} = atoll_chaos:run(#{cluster => Cluster, script => Script}).
%% '''
%% The seed repeats a run: the same faults at the same times, on the same nodes, and
%% the same processes as far as there are the same. What the nodes make of them is
%% their own.
%%
%% Promised: when a run ends, by its end, by stop/1, because its caller is gone or
%% crashed, or because its own process did, the nodes are healed. No connection is
%% cut, nobody is stopped or slow, and what was to start again was started. What a
%% script killed stays dead. The processes of kernel and stdlib are not killed, nor
%% a process whose supervisor would give up ({@link atoll_chaos_kill}).
%%
%% One run works on a node at a time: a second one is refused.
%%
%% Not promised: that a fault comes at its very millisecond. Deeds are done one
%% after the other, and one on a node that is just starting waits for it.
-module(atoll_chaos).

-export([run/1, start/1, stop/1, await/1, events/1, format_error/1]).

-export_type([options/0, result/0, error/0]).

-type options() :: #{
    %% One of them: a cluster that this VM holds, or nodes that it can connect with.
    cluster => atoll_cluster:cluster(),
    nodes => [node(), ...],
    %% One of them: a script, or so many faults a second, drawn by seed.
    script => atoll_sim_script:script(),
    rate => number() | {From :: number(), To :: number()},
    %% With a rate: each interval is up to that share longer or shorter, at random (0); it
    %% begins after so many seconds (0); of these kinds (all that can be done there), on such
    %% processes (`any'), for so long from then on (`infinity', or what must be said where the
    %% rate goes evenly from one to another).
    jitter => number(),
    start_after => number(),
    kinds => [atoll_chaos_draw:kind(), ...],
    what => atoll_sim_step:what() | [{number(), atoll_sim_step:what()}],
    seconds => number() | infinity,
    %% Default: the script's, or 1.
    seed => integer(),
    %% What is called on a node that has started, where it runs an overlay: for
    %% strategies that wait to be told something.
    told => #{node() => [{module(), Function :: atom(), Args :: [term()]}]},
    %% How long something may take to recover before it is said never to have.
    %% Default 10,000.
    deadline_ms => pos_integer(),
    %% Called by the run's process for each fault as it happens.
    on_event => fun((atoll_chaos_log:event()) -> _)
}.

-type result() :: #{
    seed := integer(),
    %% The last 20,000, and how many there were before.
    events := [atoll_chaos_log:event()],
    left_out := non_neg_integer(),
    %% Of these events.
    summary := [{Fault :: atom(), atoll_chaos_log:summary()}],
    groups := atoll_sim_expect:groups() | none,
    names := atoll_sim_expect:names() | none,
    %% See atoll_chaos_deeds:facts().
    overlay := atoll_sim_expect:facts() | none,
    expectations := non_neg_integer(),
    failed := [atoll_chaos_overlay:failure()],
    unseen := non_neg_integer(),
    ms := non_neg_integer()
}.

-type error() ::
    {option, Key :: term(), Must :: string()}
    | {script, atoll_sim_script:error()}
    | {kind, atoll_chaos_draw:kind()}
    %% Another run is at work there.
    | {taken, node()}
    | atoll_chaos_backend:error().

-type running() :: {pid(), Seed :: integer()}.

-define(DEADLINE_MS, 10000).
%% Until a node says what it is.
-define(CALL_MS, 5000).

%% @doc Runs to the end.
-spec run(options()) -> {ok, result()} | {error, error()}.
run(Options) ->
    case start(Options) of
        {ok, Run} -> {ok, await(Run)};
        {error, _} = Error -> Error
    end.

%% @doc Starts a run, which ends with the calling process if not before.
-spec start(options()) -> {ok, running()} | {error, error()}.
start(Options) ->
    try
        ok = check(Options),
        Backend = backend(Options),
        Seed = maps:get(seed, Options, seed(Options)),
        HasOverlay = atoll_chaos_overlay:is_on(Backend),
        Carrier = carrier(Backend),
        Able = [overlay || HasOverlay] ++ [carrier || Carrier =:= faults],
        {Start, Plan, Source} = plan(Options, Backend, Able, Seed),
        Started = atoll_chaos_runner:start(#{
            caller => self(),
            backend => Backend,
            start => Start,
            plan => Plan,
            source => Source,
            overlay => HasOverlay,
            carrier => Carrier,
            told => maps:get(told, Options, #{}),
            deadline_ms => maps:get(deadline_ms, Options, ?DEADLINE_MS),
            on_event => maps:get(on_event, Options, fun(_) -> ok end)
        }),
        case Started of
            {ok, Run} -> {ok, {Run, Seed}};
            {error, _} = Error -> Error
        end
    catch
        throw:{chaos, Bad} -> {error, Bad}
    end.

%% @doc Ends a run before its time; returns when all is healed.
-spec stop(running()) -> result().
stop({Run, Seed}) -> result(atoll_chaos_runner:stop(Run), Seed).

%% @doc Waits until a run has ended and healed. Of stop/1 and await/1 the first
%% one takes the result.
-spec await(running()) -> result().
await({Run, Seed}) -> result(atoll_chaos_runner:await(Run), Seed).

%% @doc What has happened so far.
-spec events(running()) -> [atoll_chaos_log:event()].
events({Run, _}) -> atoll_chaos_runner:events(Run).

result(#{events := Events} = Ended, Seed) ->
    Ended#{seed => Seed, summary => atoll_chaos_log:summary(Events)}.

-spec bad(error()) -> no_return().
bad(Error) -> throw({chaos, Error}).

seed(#{script := #{cluster := #{seed := Seed}}}) -> Seed;
seed(_) -> 1.

backend(#{cluster := Cluster}) ->
    {ok, Backend} = atoll_chaos_cluster:open(Cluster),
    Backend;
backend(#{nodes := Nodes}) ->
    case atoll_chaos_shell:open(Nodes) of
        {ok, Backend} -> Backend;
        {error, Error} -> bad(Error)
    end.

%% All of those that answer must have it.
carrier({Module, B}) ->
    Configs = [Module:call(B, Node, {atoll_dist_keeper, config, []}, ?CALL_MS) || Node <- Module:nodes(B)],
    case [Config || Config <- Configs, not is_unreachable(Config)] of
        [_ | _] = Answers ->
            case lists:all(fun has_faults/1, Answers) of
                true -> faults;
                false -> stock
            end;
        [] ->
            stock
    end.

is_unreachable({error, {unreachable, _, _}}) -> true;
is_unreachable(_) -> false.

has_faults({ok, {ok, #{faults := true}}}) -> true;
has_faults(_) -> false.

plan(#{script := #{cluster := Begun} = Script}, {Module, B}, Also, Seed) ->
    Nodes = Module:nodes(B),
    Able = Also ++ Module:able(B),
    case {atoll_chaos_check:script(Script, length(Nodes), Able), atoll_sim_script:check_names(Script, Nodes)} of
        {ok, ok} ->
            %% Contacts are the first nodes; there may be fewer than the script says.
            #{contacts := Contacts} = Begun,
            Fitting = Script#{cluster := Begun#{contacts := min(Contacts, length(Nodes))}},
            {Start, Plan} = atoll_sim_plan:script(Fitting, Nodes, Seed),
            {Start, Plan, none};
        {{error, Error}, _} ->
            bad({script, Error});
        {ok, {error, Error}} ->
            bad({script, Error})
    end;
plan(#{rate := Rate} = Options, {Module, B}, _Also, Seed) ->
    Nodes = Module:nodes(B),
    Possible = [Kind || Kind <- atoll_chaos_draw:kinds(), is_possible(Kind, length(Nodes), Module:able(B))],
    Kinds = maps:get(kinds, Options, Possible),
    _ = [bad({kind, Kind}) || Kind <- Kinds, not lists:member(Kind, Possible)],
    Source = atoll_chaos_draw:new(#{
        nodes => length(Nodes),
        rate => Rate,
        jitter => maps:get(jitter, Options, 0),
        after_ms => ms(maps:get(start_after, Options, 0)),
        kinds => Kinds,
        what => maps:get(what, Options, any),
        ms => ms(maps:get(seconds, Options, infinity)),
        seed => Seed
    }),
    {Start, Plan} = atoll_sim_plan:new(Nodes, #{contacts => 1, start => all, seed => Seed}),
    {Start, Plan, Source}.

ms(infinity) -> infinity;
ms(Seconds) -> round(1000 * Seconds).

is_possible(cut, Nodes, _Able) -> Nodes > 1;
is_possible(node, _Nodes, Able) -> lists:member(start, Able);
is_possible(Kind, _Nodes, Able) when Kind =:= pause; Kind =:= slow -> lists:member(Kind, Able);
is_possible(process, _, _) -> true.

%% Options

check(Options) when is_map(Options) ->
    Keys = keys(),
    _ = [bad({option, Key, "is not known"}) || Key <- maps:keys(Options), not lists:keymember(Key, 1, Keys)],
    _ = [
        bad({option, Key, Must})
     || {Key, Must, Is} <- Keys, #{Key := Value} <- [Options], not Is(Value)
    ],
    _ = [
        bad({option, One, "or " ++ atom_to_list(Other) ++ " must be there, and not both"})
     || {One, Other} <- [{cluster, nodes}, {script, rate}], is_map_key(One, Options) =:= is_map_key(Other, Options)
    ],
    _ = [
        bad({option, Key, "is for faults at a rate; a script says it itself"})
     || is_map_key(script, Options), Key <- [jitter, start_after, kinds, what, seconds], is_map_key(Key, Options)
    ],
    _ = [
        bad({option, seconds, "must be a number: the time in which the rate goes from one to another"})
     || #{rate := {_, _}} <- [Options], maps:get(seconds, Options, infinity) =:= infinity
    ],
    ok;
check(Options) ->
    bad({option, Options, "is not a map of options"}).

keys() ->
    Positive = fun(N) -> is_integer(N) andalso N > 0 end,
    IsRate = fun(R) -> is_number(R) andalso R > 0 andalso R =< 1000 end,
    [
        {cluster, "must be a cluster of atoll_cluster", fun is_pid/1},
        {nodes, "must be a list of other nodes, each once", fun are_nodes/1},
        {script, "must be a script that was checked", fun(S) -> is_map(S) andalso is_map_key(steps, S) end},
        {rate, "must be a number from above 0 to 1,000, or {From, To} of two such",
            fun({From, To}) -> IsRate(From) andalso IsRate(To); (R) -> IsRate(R) end},
        {jitter, "must be " ++ atoll_sim_step:must(share), fun atoll_sim_step:is_share/1},
        {start_after, "must be a number of seconds, 0 or more", fun(S) -> is_number(S) andalso S >= 0 end},
        {kinds, "must be a list of " ++ lists:flatten(lists:join(", ", [atom_to_list(K) || K <- atoll_chaos_draw:kinds()])),
            fun(L) -> all(fun(K) -> lists:member(K, atoll_chaos_draw:kinds()) end, L) end},
        {what, "must be " ++ atoll_sim_step:must(what),
            fun(W) -> element(1, atoll_sim_step:check({kill_process, all, W}, 1)) =:= ok end},
        {seconds, "must be a number above 0, or infinity",
            fun(S) -> S =:= infinity orelse (is_number(S) andalso S > 0) end},
        {seed, "must be a whole number", fun is_integer/1},
        {told, "must be a map of nodes to lists of {Module, Function, Arguments}", fun is_map/1},
        {deadline_ms, "must be a number of milliseconds above 0", Positive},
        {on_event, "must be a function of one argument", fun(F) -> is_function(F, 1) end}
    ].

are_nodes(Nodes) ->
    all(fun is_atom/1, Nodes) andalso Nodes -- [node()] =/= [] andalso length(lists:usort(Nodes)) =:= length(Nodes).

all(Is, [_ | _] = List) -> lists:all(Is, List);
all(_, _) -> false.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({option, Key, Must}) ->
    io_lib:format("~0tp ~ts", [Key, Must]);
format_error({script, Error}) ->
    atoll_sim_script:format_error(Error);
format_error({kind, node}) ->
    "nodes are not killed here, since nobody would start them again";
format_error({kind, cut}) ->
    "one node alone can be cut off from nobody";
format_error({kind, Kind}) ->
    io_lib:format("~ts is not possible here: all nodes must run on this machine, where they can be sent a signal", [Kind]);
format_error({taken, Node}) ->
    io_lib:format("another run is at work on ~ts, and would undo what this one does", [Node]);
format_error({unreachable, Node, Reason}) ->
    io_lib:format("~ts does not answer: ~0tp", [Node, Reason]);
format_error({not_here, Node}) ->
    io_lib:format("~ts does not run on this machine, where it could be sent a signal", [Node]);
format_error({not_possible, Fault, Node}) ->
    io_lib:format("nobody here can ~ts ~ts", [Fault, Node]);
format_error({raised, Node, Reason}) ->
    io_lib:format("on ~ts it failed: ~0tp", [Node, Reason]).
