%% SPDX-License-Identifier: Apache-2.0
%% @doc Orbit: all vertices that a set of generators reaches from vertex 0.
%%
%% The set is enumerated by a distributed hash table. Every vertex has one owner, a worker process; the
%% owner of a new vertex computes its images and sends each to its own owner; and the end is known by
%% credit that travels inside the messages ({@link orbit_credit}). The modes differ in how the nodes
%% are connected, never in the answer, which is that of {@link orbit_seq}:
%%
%%   seq     one process
%%   par     the workers of one node
%%   mesh    the workers of all nodes, every node connected with every other
%%   groups  nodes in s_groups, the groups' gateways in one more
%%   ring    nodes in s_groups, each group's gateway in the next one too
%%
%% Processes may be killed, whichever, and nodes but the first, and connections may break: what is
%% lost is computed again, under supervision, and the run ends with the same set ({@link orbit_part} says
%% why, {@link orbit_submaster} how). It ends with a sentence instead if all nodes of a group are lost, if
%% two that live cannot be connected, or if a node was not there from the beginning. The first
%% node, and there the process that calls run/1, are needed.
%%
%% Not promised: that a run ends in which something is lost more often than it takes to send all
%% images of the table again, which takes a fraction of the time in which they were computed.
-module(orbit).
-compile({no_auto_import, [nodes/1]}).

-export([node_options/1, check/1, run/1, format_error/1]).

-export_type([spec/0, mode/0, result/0, reason/0]).

-type mode() :: seq | orbit_plan:mode().

-type spec() :: #{
    generators := orbit_generators:name(),
    %% the vertices are 0 to space - 1
    space := pos_integer(),
    mode := mode(),
    %% The master's node first, on which the run is started. With seq and par it may be left out.
    nodes => [node()],
    %% nodes to a group at least; needed by groups and ring, not read by the others
    group_size => pos_integer(),
    %% worker processes on each node, 4 unless told; seq has none
    workers => pos_integer(),
    %% return the sorted list of all vertices too; false unless told
    vertices => boolean(),
    %% compute each image in a process of its own, as the original can; false unless told
    image_processes => boolean(),
    %% the gateways of groups have no workers; false unless told
    separate_submasters => boolean(),
    %% called on each node at the end, before anything is taken down
    survey => {module(), atom(), [term()]}
}.

-type result() :: #{
    %% vertices in the set
    size := pos_integer(),
    %% messages with a vertex that reached a worker, whichever way they came; if nothing was lost, 1 +
    %% size times the number of generators
    vertices_received := pos_integer(),
    %% from the first vertex until every worker has given its result
    wall_ms := non_neg_integer(),
    %% equal for equal sets
    checksum := non_neg_integer(),
    %% how many there were at first, and those that did not take part in the end
    nodes := pos_integer(),
    nodes_lost := [node()],
    %% 1, and one more for each loss that began a new one
    epochs := pos_integer(),
    %% what each worker has to say of itself; seq has none
    workers := [orbit_tally:worker()],
    %% what the survey returned
    survey := #{node() => term()},
    %% sorted; only if asked for
    vertices => [orbit_generators:vertex(), ...]
}.

-type reason() ::
    {missing_option, atom()}
    | {unknown_option, term()}
    | {wrong_option, atom(), MustBe :: string(), term()}
    | {node_given_twice, node()}
    | {one_node_mode, seq | par, Given :: pos_integer()}
    | {not_the_first_node, node(), First :: node()}
    | {not_distributed, node()}
    | {group_too_large, Size :: pos_integer(), Nodes :: pos_integer()}
    | orbit_ledger:reason()
    | orbit_host:reason()
    %% of the s_group that it should be in
    | {left_out, node()}
    | {not_grouped, node(), Sentence :: unicode:chardata()}
    %% both are in one group, and still there is no connection
    | {not_connected, node(), node()}
    %% a process of the run there, and not by a kill
    | {crashed, node(), Why :: term()}
    | ended.

-define(WORKERS, 4).

%% @doc How the nodes of a mode are started, for {@link atoll_cluster:start/1}. Where there are
%% groups, nodes that are in none are to be connected with nobody.
-spec node_options(mode()) -> #{connect_all := boolean(), apps := [atom()], args := [string()]}.
node_options(Mode) when Mode =:= groups; Mode =:= ring ->
    #{connect_all => false, apps => [atoll, orbit], args => ["-atoll", "free_group", "off"]};
node_options(_) ->
    #{connect_all => true, apps => [orbit], args => []}.

%% @doc Finds all that can be known to be wrong before the start. Nothing is started, and no node is
%% asked.
-spec check(spec()) -> ok | {error, reason()}.
check(Spec) ->
    case new(Spec) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

%% @doc Runs Orbit from the calling process, whose node must be the first of the nodes, which are
%% started as node_options/1 says. When it returns, all that it had started has ended and its s_groups
%% are gone, on all nodes that can still be told; those that cannot end it by themselves. If the caller
%% dies, the run is taken down.
-spec run(spec()) -> {ok, result()} | {error, reason()}.
run(Spec) ->
    case new(Spec) of
        {ok, #{mode := seq, generators := Name, space := Space, vertices := Keep, survey := Survey} = Run} ->
            Began = erlang:monotonic_time(millisecond),
            Tally = orbit_seq:run(Name, Space, Keep),
            Took = erlang:monotonic_time(millisecond) - Began,
            Said = case Survey of none -> none; {M, F, Args} -> apply(M, F, Args) end,
            {ok, result(#{tally => Tally, survey => #{node() => Said}, wall_ms => Took, epochs => 1}, [node()], Run)};
        {ok, #{id := RunId} = Run} ->
            {ok, _} = application:ensure_all_started(orbit),
            {Answer, Plan} = orbit_master:run(Run),
            ok = orbit_host:finish(RunId, Plan),
            case Answer of
                {ok, Found} -> {ok, result(Found, orbit_plan:present(Plan), Run)};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

result(#{tally := Tally, survey := Survey, wall_ms := WallMs, epochs := Epochs}, Present, #{nodes := Nodes, vertices := Keep}) ->
    #{size := Size, received := Received, checksum := Checksum, workers := Workers, vertices := Vertices} = Tally,
    Result = #{
        size => Size, vertices_received => Received, checksum => Checksum, wall_ms => WallMs, epochs => Epochs,
        nodes => length(Nodes), nodes_lost => lists:sort(Nodes -- Present),
        workers => lists:sort(fun(#{part := A}, #{part := B}) -> A =< B end, Workers), survey => Survey},
    case Keep of
        true -> Result#{vertices => lists:sort(Vertices)};
        false -> Result
    end.

%%% What is asked for

%% Each with what it is unless told, and what it must be.
keys() ->
    Positive = fun(N) -> is_integer(N) andalso N > 0 end,
    Call = fun({M, F, Args}) -> is_atom(M) andalso is_atom(F) andalso is_list(Args); (Said) -> Said =:= none end,
    Modes = [seq, par, mesh, groups, ring],
    [
        {generators, none, "one of g1 to g12345, digits ascending", fun(Name) -> lists:member(Name, orbit_generators:names()) end},
        {space, none, "a whole number above 0", Positive},
        {mode, none, "seq, par, mesh, groups or ring", fun(Mode) -> lists:member(Mode, Modes) end},
        {nodes, [node()], "a list of one node or more", fun(Nodes) -> Nodes =/= [] andalso is_list_of_atoms(Nodes) end},
        {group_size, 1, "a whole number above 0", Positive},
        {workers, ?WORKERS, "a whole number above 0", Positive},
        {vertices, false, "true or false", fun is_boolean/1},
        {image_processes, false, "true or false", fun is_boolean/1},
        {separate_submasters, false, "true or false", fun is_boolean/1},
        {survey, none, "a module, a function and its arguments", Call}
    ].

is_list_of_atoms([Head | Tail]) -> is_atom(Head) andalso is_list_of_atoms(Tail);
is_list_of_atoms(Tail) -> Tail =:= [].

new(Spec) ->
    Defaults = maps:from_list([{Key, Default} || {Key, Default, _, _} <- keys()]),
    Needed = [generators, space, mode | [group_size || is_grouped(Spec)]],
    Faults = [{unknown_option, Key} || Key <- maps:keys(Spec), not is_map_key(Key, Defaults)]
        ++ [{missing_option, Key} || Key <- Needed, not is_map_key(Key, Spec)]
        ++ [{wrong_option, Key, Words, Value} || {Key, _, Words, Is} <- keys(), #{Key := Value} <- [Spec], not Is(Value)],
    case Faults of
        [] -> checked(maps:merge(Defaults, Spec));
        [Fault | _] -> {error, Fault}
    end.

is_grouped(Spec) -> lists:member(maps:get(mode, Spec, none), [groups, ring]).

%% Which nodes are up is not asked: it would connect them.
checked(#{mode := Mode, nodes := [First | _] = Nodes, group_size := Size} = Asked) ->
    OnOne = lists:member(Mode, [seq, par]),
    Faults = [{node_given_twice, Node} || Node <- Nodes -- lists:usort(Nodes)]
        ++ [{one_node_mode, Mode, length(Nodes)} || OnOne, length(Nodes) > 1]
        ++ [{not_the_first_node, node(), First} || First =/= node()]
        ++ [{group_too_large, Size, length(Nodes)} || is_grouped(Asked), Size > length(Nodes)]
        ++ [{not_distributed, node()} || not OnOne, not is_alive()],
    case Faults of
        [] when Mode =:= seq -> {ok, Asked};
        [] -> laid_out(Asked);
        [Fault | _] -> {error, Fault}
    end.

laid_out(#{mode := Mode, nodes := Nodes, group_size := Size} = Asked) ->
    %% 64 random bits: two masters that know nothing of each other must not meet.
    Id = string:lowercase(integer_to_list(rand:uniform(1 bsl 64), 36)),
    %% An atom for each group and run, and one for the names of its submasters.
    Options = (maps:with([workers, separate_submasters], Asked))#{prefix => list_to_atom("orbit_" ++ Id ++ "_")},
    case orbit_plan:new(Mode, Nodes, Size, Options) of
        {ok, Plan} -> {ok, Asked#{id => Id, plan => Plan}};
        {error, _} = Error -> Error
    end.

%% @doc One plain sentence that says what went wrong, and names the node, the value or the limit.
-spec format_error(reason()) -> unicode:chardata().
format_error({missing_option, Key}) -> say("The option ~ts is missing.", [Key]);
format_error({unknown_option, Key}) -> say("There is no option ~0tp.", [Key]);
format_error({wrong_option, Key, Words, Value}) -> say("The option ~ts must be ~ts, not ~0tP.", [Key, Words, Value, 12]);
format_error({node_given_twice, Node}) -> say("Node ~ts is given twice.", [Node]);
format_error({one_node_mode, Mode, Count}) -> say("The mode ~ts runs on one node, not on ~b.", [Mode, Count]);
format_error({not_the_first_node, Node, First}) ->
    say("The run must be started on ~ts, the first of its nodes, not on ~ts.", [First, Node]);
format_error({not_distributed, Node}) -> say("Node ~ts is not distributed, and the mode asks for a cluster.", [Node]);
format_error({group_too_large, Size, Count}) -> say("A group of ~b nodes cannot be made of ~b.", [Size, Count]);
format_error({unreachable, Node}) -> say("Node ~ts cannot be reached.", [Node]);
format_error({left_out, Node}) ->
    say("Node ~ts was left out of its group: it cannot be reached, or does not run Atoll.", [Node]);
format_error({not_grouped, Node, Sentence}) -> say("Node ~ts could not make a group: ~ts.", [Node, Sentence]);
format_error({not_connected, Node, Other}) ->
    say("Node ~ts has no connection with ~ts, which is in the same group.", [Node, Other]);
format_error({no_code, Node}) -> say("Node ~ts does not have the code of Orbit.", [Node]);
format_error({not_running, Node}) -> say("Node ~ts does not run the application orbit.", [Node]);
format_error({crashed, Node, Why}) -> say("A process of the run failed on node ~ts: ~0tP.", [Node, Why, 12]);
format_error(ended) -> "The run was ended on one of its nodes, where the application orbit was stopped.";
format_error(Reason) -> orbit_plan:format_error(Reason).

say(Format, Args) -> io_lib:format(Format, Args).
