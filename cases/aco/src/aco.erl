%% SPDX-License-Identifier: Apache-2.0
%% @doc ACO: colonies of ants look for the best order of the jobs of one machine, that of the least
%% weighted tardiness.
%%
%% Each colony runs some generations of ants, and tells its best; the best of all is told to all;
%% and so on, round after round. The modes differ in how the nodes are connected and in what becomes
%% of what is lost, never in the answer, which is that of {@link aco_seq} with as many colonies:
%%
%%   tl  a master and colonies, every node connected with every other
%%   ml  a tree of submasters between them ({@link aco_tree}), connected like that
%%   gr  the same, and each has a name in `global', under which it is started again
%%   sr  the same in s_groups: nodes are connected with, and names known in, their own groups alone
%%
%% In gr and sr a run in which processes are killed, whichever, or nodes but the first, ends with
%% the same answer as any other ({@link aco_submaster} has the recovery). It ends with a sentence
%% instead if a colony or its ants are killed very often in one generation (50 times, and 5 for each
%% ant); if something fails by itself; if something has no node left to go on on, or is not back
%% within 30 s. In tl and ml any loss ends it, with a sentence. The first node, and there the
%% process that calls run/1, are needed in all modes.
%%
%% Not promised: that a run gets over nodes that live and only lost each other.
-module(aco).
-compile({no_auto_import, [nodes/1]}).

-export([node_options/1, order/2, check/1, run/1, format_error/1]).

-export_type([spec/0, result/0, reason/0]).

-type spec() :: #{
    problem := aco_problem:problem(),
    mode := aco_tree:mode(),
    %% The master's node first, on which the run is started; see aco_tree for who gets which role.
    nodes := [node()],
    %% of the algorithm
    options => aco_options:given(),
    %% submasters of each submaster, 2 unless told; tl has none
    degree => pos_integer(),
    %% 1 unless told
    colonies_per_node => pos_integer(),
    %% how often each colony sends its answer, as if it were so many; 1 unless told
    duplicating => pos_integer(),
    %% the cost that is known to be the least
    optimum => aco_schedule:cost(),
    %% end when it is reached; false unless told
    until_optimum => boolean(),
    %% a round begins at the earliest so long after the one before; 0 unless told
    pace_ms => non_neg_integer(),
    %% gets {aco, best, Round, Cost} after every round
    watcher => pid(),
    %% called on each node at the end, before anything is taken down
    survey => {module(), atom(), [term()]}
}.

-type result() :: #{
    best := aco_schedule:cost(),
    order := aco_schedule:order(),
    %% the colony that has found it
    colony := aco_colony:id(),
    optimum := aco_schedule:cost() | none,
    %% (best - optimum) / optimum, for an optimum of 0 the best itself
    gap := float() | none,
    rounds := pos_integer(),
    %% until all processes were there; and from then to the end of the last round
    build_ms := non_neg_integer(),
    wall_ms := non_neg_integer(),
    mode := aco_tree:mode(),
    %% how many
    nodes := pos_integer(),
    colonies := pos_integer(),
    %% of submasters and colonies, the master's among them
    names := non_neg_integer(),
    roles := [{node(), aco_tree:role()}],
    %% submasters and colonies that were started again: in gr and sr, registered again. A node that
    %% was lost took its count with it
    restarts := non_neg_integer(),
    %% which had nothing to say at the end
    nodes_lost := [node()],
    %% what the survey returned on the others
    survey := #{node() => term()}
}.

-type reason() ::
    {missing_option, atom()}
    | aco_options:reason()
    | {node_given_twice, node()}
    | {not_the_first_node, node(), First :: node()}
    | {not_distributed, node()}
    | no_optimum
    | aco_tree:reason()
    | aco_branch:reason()
    | aco_submaster:reason()
    | aco_name:reason()
    | aco_host:reason()
    %% in so many seconds
    | {not_built, pos_integer()}.

%% Within which all processes are to be there: `global' can take minutes for many nodes, and there
%% are states that it does not get out of.
-define(BUILD_MS, 300_000).
-define(AGAIN_MS, 5).

%% @doc How the nodes of a mode are started, for {@link atoll_cluster:start/1}. Where there are
%% groups, nodes that are in none are to be connected with nobody.
-spec node_options(aco_tree:mode()) -> #{connect_all := boolean(), apps := [atom()], args := [string()]}.
node_options(sr) -> #{connect_all => false, apps => [atoll, aco], args => ["-atoll", "free_group", "off"]};
node_options(_) -> #{connect_all => true, apps => [aco], args => []}.

%% @doc The nodes in an order in which those come first that are best for submasters, by a condition
%% on their attributes: submasters have little to do, and each round waits for the slowest
%% colony. Asked on a node with the application `atoll', of nodes with it.
-spec order([node()], atoll_predicate:source()) -> {ok, [node()]} | {error, atoll_place:error()}.
order(Nodes, Where) ->
    case atoll_place:nodes(#{among => Nodes, where => Where}) of
        {ok, #{nodes := Fit}} -> {ok, Fit ++ (Nodes -- Fit)};
        {error, _} = Error -> Error
    end.

%% @doc Finds all that can be known to be wrong before the start. Nothing is started, and no node
%% is asked.
-spec check(spec()) -> ok | {error, reason()}.
check(Spec) ->
    case new(Spec) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

%% @doc Runs it from the calling process, whose node must be the first of the nodes, which are
%% started as node_options/1 says. When it returns a result, all that it had started has ended and
%% its s_groups are gone, on all nodes that can still be told; those, and all after an error, end it
%% by themselves. If the caller dies, the run is taken down.
-spec run(spec()) -> {ok, result()} | {error, reason()}.
run(Spec) ->
    case new(Spec) of
        {ok, #{id := RunId} = Run} ->
            try {ok, built(Run)}
            catch throw:{aco, RunId, Reason} -> {error, Reason}
            after ok = aco_host:stop(RunId, none)
            end;
        {error, _} = Error ->
            Error
    end.

built(Run) ->
    Started = now_ms(),
    Master = started(Run),
    Asked = Run#{master => case aco_name:of_id([], Run) of none -> Master; Name -> Name end},
    none = ask(0, [], Asked, Started + ?BUILD_MS),
    Began = now_ms(),
    Ended = rounds(1, [], Began, Asked),
    Times = #{build_ms => Began - Started, wall_ms => now_ms() - Began},
    result(maps:merge(Ended, Times), ask(finish, [], Asked, infinity), Run).

rounds(Round, Told, Began, #{options := #{global_iterations := Last}, optimum := Optimum} = Run) ->
    #{until_optimum := Until, pace_ms := Pace, watcher := Watcher} = Run,
    {Cost, Owner, Order} = ask(Round, Told, Run, infinity),
    _ = is_pid(Watcher) andalso (Watcher ! {aco, best, Round, Cost}),
    case Round >= Last orelse (Until andalso Cost =< Optimum) of
        true -> #{best => Cost, colony => Owner, order => Order, rounds => Round};
        false ->
            Next = max(Began + Pace, now_ms()),
            receive after max(0, Next - now_ms()) -> ok end,
            rounds(Round + 1, told(Round, {{Cost, Order}, Owner}, Told), Next, Run)
    end.

told(_, Best, [{_, Best} | _] = Told) -> Told;
told(Round, Best, Told) -> [{Round, Best} | Told].

%% The master, by its name: whoever has it, and as often as it is killed.
ask(Round, Told, #{id := RunId, master := Master, reliable := Reliable} = Run, Deadline) ->
    Left = case Deadline of infinity -> infinity; _ -> max(0, Deadline - now_ms()) end,
    try gen_server:call(Master, {round, Round, Told}, Left) of
        {ok, Value} -> Value;
        {error, Reason} -> throw({aco, RunId, Reason})
    catch
        exit:{timeout, _} -> throw({aco, RunId, {not_built, ?BUILD_MS div 1000}});
        exit:{_, {gen_server, call, _}} when Reliable ->
            receive after ?AGAIN_MS -> _ = started(Run), ask(Round, Told, Run, Deadline) end;
        exit:{_, {gen_server, call, _}} -> throw({aco, RunId, {process_lost, [], node()}})
    end.

%% It is started, or there.
started(#{id := RunId} = Run) ->
    case aco_host:start(node(), [], Run) of
        {ok, Pid} -> Pid;
        again -> again;
        {_, Reason} -> throw({aco, RunId, Reason})
    end.

now_ms() -> erlang:monotonic_time(millisecond).

result(#{best := Best} = Ended, Reports, #{mode := Mode, nodes := Nodes, tree := Tree, optimum := Optimum} = Run) ->
    Colonies = length(aco_tree:colonies(Tree)),
    Ended#{
        optimum => Optimum,
        gap => case Optimum of none -> none; _ -> (Best - Optimum) / max(1, Optimum) end,
        mode => Mode,
        nodes => length(Nodes),
        colonies => Colonies,
        names => case Run of #{reliable := true} -> map_size(Tree); #{} -> 0 end,
        roles => aco_tree:roles(Tree),
        restarts => lists:sum([Restarts || #{restarts := Restarts} <- maps:values(Reports)]),
        nodes_lost => lists:sort(Nodes -- maps:keys(Reports)),
        survey => maps:map(fun(_, #{said := Said}) -> Said end, Reports)
    }.

%%% What is asked for

keys() ->
    Or = fun(Is) -> fun(Value) -> Value =:= none orelse Is(Value) end end,
    Cost = fun(N) -> is_integer(N) andalso N >= 0 end,
    Call = fun({M, F, Args}) -> is_atom(M) andalso is_atom(F) andalso is_list(Args); (_) -> false end,
    [
        {problem, none, {a, "a problem", fun is_tuple/1}},
        {mode, none, {one_of, [tl, ml, gr, sr]}},
        {nodes, none, {a, "a list of nodes", fun is_list_of_atoms/1}},
        {options, #{}, {a, "a map", fun is_map/1}},
        {degree, 2, {whole, 2, 1000}},
        {colonies_per_node, 1, {whole, 1, 1000}},
        {duplicating, 1, {whole, 1, 10000}},
        {optimum, none, {a, "a cost, a whole number from 0 on", Or(Cost)}},
        {until_optimum, false, {one_of, [true, false]}},
        {pace_ms, 0, {whole, 0, 3600000}},
        {watcher, none, {a, "a process", Or(fun is_pid/1)}},
        {survey, none, {a, "a module, a function and its arguments", Or(Call)}}
    ].

is_list_of_atoms([Head | Tail]) -> is_atom(Head) andalso is_list_of_atoms(Tail);
is_list_of_atoms(Tail) -> Tail =:= [].

new(Spec) ->
    case [Key || Key <- [problem, mode, nodes], not is_map_key(Key, Spec)] of
        [] ->
            case aco_options:complete(keys(), Spec) of
                {ok, Asked} -> checked(Asked);
                {error, _} = Error -> Error
            end;
        [Missing | _] -> {error, {missing_option, Missing}}
    end.

%% Which nodes are up is not asked: it would connect them.
checked(#{options := Given, mode := Mode, nodes := Nodes, degree := Degree, colonies_per_node := Each} = Asked) ->
    Options = aco_options:new(Given),
    Tree = aco_tree:new(Mode, Nodes, Degree, Each),
    Faults = [Reason || {error, Reason} <- [Options]]
        ++ [no_optimum || #{until_optimum := true, optimum := none} <- [Asked]]
        ++ [{node_given_twice, Node} || Node <- Nodes -- lists:usort(Nodes)]
        ++ [Reason || {error, Reason} <- [Tree]]
        ++ [{not_the_first_node, node(), First} || [First | _] <- [Nodes], First =/= node()]
        ++ [{not_distributed, node()} || not is_alive()],
    case {Faults, Options, Tree} of
        {[], {ok, Whole}, {ok, Roles}} ->
            %% 64 random bits: two masters that know nothing of each other must not meet.
            Id = string:lowercase(integer_to_list(rand:uniform(1 bsl 64), 36)),
            {ok, Asked#{options := Whole, tree => Roles, id => Id, reliable => lists:member(Mode, [gr, sr])}};
        {[Fault | _], _, _} -> {error, Fault}
    end.

%% @doc One plain sentence that says what went wrong, and names the node, the value or the limit.
-spec format_error(reason()) -> unicode:chardata().
format_error({missing_option, Key}) -> say("The option ~ts is missing.", [Key]);
format_error({unknown_option, _} = Reason) -> aco_options:format_error(Reason);
format_error({wrong_option, _, _, _} = Reason) -> aco_options:format_error(Reason);
format_error({node_given_twice, Node}) -> say("Node ~ts is given twice.", [Node]);
format_error({not_the_first_node, Node, First}) ->
    say("The run must be started on ~ts, the first of its nodes, not on ~ts.", [First, Node]);
format_error({not_distributed, Node}) ->
    say("Node ~ts is not distributed, and the mode asks for a cluster.", [Node]);
format_error(no_optimum) -> "The run is to end at the optimum, and the option optimum is missing.";
format_error({too_few_nodes, _, _, _} = Reason) -> aco_tree:format_error(Reason);
format_error({process_lost, Id, Node}) ->
    say("~ts on node ~ts was lost, and nothing replaces it in this mode.", [who(Id), Node]);
format_error({node_lost, Id, Node}) ->
    [First | Rest] = lists:flatten(who(Id)),
    say("Node ~ts was lost, and ~ts with it, which cannot go on elsewhere.", [Node, [string:to_lower(First) | Rest]]);
format_error({in_vain, Id, Node, Count}) ->
    say("~ts on node ~ts was lost more than ~b times, its ants counted, without getting anything done in between.",
        [who(Id), Node, Count]);
format_error({not_back, Id, Node, Seconds}) ->
    say("~ts on node ~ts was lost, and is not back after ~b s.", [who(Id), Node, Seconds]);
format_error({crashed, Id, Node, Why}) -> say("~ts on node ~ts failed: ~0tP.", [who(Id), Node, Why, 12]);
format_error({unreachable, Node}) -> say("Node ~ts cannot be reached.", [Node]);
format_error({left_out, Node}) ->
    say("Node ~ts was left out of its group: it cannot be reached, or does not run Atoll.", [Node]);
format_error({not_made, Sentence}) -> ["A group is not there: ", Sentence, "."];
format_error({no_code, Node}) -> say("Node ~ts does not have the code of ACO.", [Node]);
format_error({not_running, Node}) -> say("Node ~ts does not run the application aco.", [Node]);
format_error({not_built, Seconds}) -> say("The processes of the run were not all there within ~b s.", [Seconds]).

who([]) -> "The master";
who(Id) when is_integer(Id) -> io_lib:format("Colony ~b", [Id]);
who(Path) -> ["Submaster ", lists:join(".", [integer_to_list(I) || I <- Path])].

say(Format, Args) -> io_lib:format(Format, Args).
