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

-export([node_options/2, check/1, run/1, format_error/1]).

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
    | {unknown_generators, term()}
    | {unknown_mode, term()}
    | {not_a_positive_number, space | group_size | workers, term()}
    | {not_a_boolean, atom(), term()}
    | {not_a_call, term()}
    | {not_a_list_of_nodes, term()}
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
-define(AGAIN_MS, 5).

%% @doc How the nodes of a mode are started, for {@link atoll_cluster:start/1}; with `groups-native' those
%% on which the program of the mesh runs over groups of so many nodes ({@link orbit_native}).
-spec node_options(mode() | 'groups-native', GroupSize :: pos_integer()) ->
    #{connect_all := boolean(), apps := [atom()], args := fun(([node(), ...]) -> [string()])}.
node_options('groups-native', Size) ->
    #{connect_all => false, apps => [atoll, orbit], args => fun(Nodes) -> orbit_native:args(Nodes, Size) end};
node_options(Mode, _) when Mode =:= groups; Mode =:= ring ->
    %% Nodes that are in no group are to be connected with nobody.
    #{connect_all => false, apps => [atoll, orbit], args => fun(_) -> ["-atoll", "free_group", "off"] end};
node_options(_, _) ->
    #{connect_all => true, apps => [orbit], args => fun(_) -> [] end}.

%% @doc Finds all that can be known to be wrong before the start. Nothing is started, and no node is
%% asked.
-spec check(spec()) -> ok | {error, reason()}.
check(Spec) ->
    case new(Spec) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

%% @doc Runs Orbit from the calling process, whose node must be the first of the nodes, which are
%% started as node_options/2 says. When it returns, all that it had started has ended and its s_groups
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
            {Answer, Plan} = asked(Run),
            ok = orbit_host:finish(RunId, Plan),
            case Answer of
                {ok, Found} -> {ok, result(Found, orbit_plan:present(Plan), Run)};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% The master, by its name: whoever has it, and as often as it is killed.
asked(#{id := RunId, plan := Plan} = Run) ->
    case orbit_host:start(Run) of
        ok ->
            try gen_server:call(orbit_host:name(master, RunId), run, infinity)
            catch
                exit:{Why, {gen_server, call, _}} when Why =:= killed; Why =:= noproc -> asked_again(Run);
                exit:{shutdown, {gen_server, call, _}} -> {{error, ended}, Plan};
                exit:{Why, {gen_server, call, _}} -> {{error, {crashed, node(), Why}}, Plan}
            end;
        again -> asked_again(Run);
        {error, _} = Error -> {Error, Plan}
    end.

asked_again(Run) ->
    receive after ?AGAIN_MS -> asked(Run) end.

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

new(Spec) ->
    Defaults = #{nodes => [node()], workers => ?WORKERS, vertices => false, image_processes => false,
                 separate_submasters => false, survey => none},
    Asked = maps:merge(Defaults, Spec),
    Checks = [fun known/1, fun complete/1, fun generators/1, fun numbers/1, fun mode/1, fun others/1, fun nodes/1,
              fun place/1, fun groups/1, fun cluster/1],
    case [Reason || Reason <- [first_fault(Checks, Asked)], Reason =/= ok] of
        [] ->
            %% 64 random bits: two masters that know nothing of each other must not meet.
            Id = string:lowercase(integer_to_list(rand:uniform(1 bsl 64), 36)),
            laid_out(maps:merge(#{group_size => 1}, Asked#{id => Id}));
        [Reason] -> {error, Reason}
    end.

first_fault([Check | Checks], Spec) ->
    case Check(Spec) of
        ok -> first_fault(Checks, Spec);
        Reason -> Reason
    end;
first_fault([], _) -> ok.

laid_out(#{mode := seq} = Run) -> {ok, Run};
laid_out(#{mode := Mode, nodes := Nodes, group_size := Size, id := Id} = Run) ->
    Options = maps:with([workers, separate_submasters], Run),
    %% An atom for each group and run, and two for the names of its processes.
    case orbit_plan:new(Mode, Nodes, Size, Options#{prefix => list_to_atom("orbit_" ++ Id ++ "_")}) of
        {ok, Plan} -> {ok, Run#{plan => Plan}};
        {error, _} = Error -> Error
    end.

known(Spec) ->
    case maps:keys(Spec) -- [generators, space, mode, nodes, group_size, workers, vertices, image_processes, separate_submasters, survey] of
        [] -> ok;
        [Key | _] -> {unknown_option, Key}
    end.

complete(Spec) ->
    Grouped = [group_size || lists:member(maps:get(mode, Spec, seq), [groups, ring])],
    case [generators, space, mode | Grouped] -- maps:keys(Spec) of
        [] -> ok;
        [Key | _] -> {missing_option, Key}
    end.

generators(#{generators := Name}) ->
    case lists:member(Name, orbit_generators:names()) of
        true -> ok;
        false -> {unknown_generators, Name}
    end.

numbers(Spec) ->
    first([{not_a_positive_number, Key, N} || Key <- [space, workers, group_size], #{Key := N} <- [Spec], not (is_integer(N) andalso N > 0)]).

mode(#{mode := Mode}) ->
    first([{unknown_mode, Mode} || not lists:member(Mode, [seq, par, mesh, groups, ring])]).

others(#{survey := Survey} = Spec) ->
    Is = case Survey of none -> true; {M, F, Args} -> is_atom(M) andalso is_atom(F) andalso is_list(Args); _ -> false end,
    first([{not_a_boolean, Key, Value} || Key <- [vertices, image_processes, separate_submasters], #{Key := Value} <- [Spec], not is_boolean(Value)]
          ++ [{not_a_call, Survey} || not Is]).

first([]) -> ok;
first([Reason | _]) -> Reason.

nodes(#{nodes := [_ | _] = Nodes}) ->
    case is_list_of_atoms(Nodes) andalso Nodes -- lists:usort(Nodes) of
        false -> {not_a_list_of_nodes, Nodes};
        [] -> ok;
        [Twice | _] -> {node_given_twice, Twice}
    end;
nodes(#{nodes := Other}) ->
    {not_a_list_of_nodes, Other}.

is_list_of_atoms([Head | Tail]) -> is_atom(Head) andalso is_list_of_atoms(Tail);
is_list_of_atoms(Tail) -> Tail =:= [].

%% Which nodes are up is not asked: it would connect them.
place(#{mode := Mode, nodes := [_, _ | _] = Nodes}) when Mode =:= seq; Mode =:= par -> {one_node_mode, Mode, length(Nodes)};
place(#{nodes := [First | _]}) when First =/= node() -> {not_the_first_node, node(), First};
place(_) -> ok.

groups(#{mode := Mode, nodes := Nodes, group_size := Size}) when (Mode =:= groups orelse Mode =:= ring), Size > length(Nodes) ->
    {group_too_large, Size, length(Nodes)};
groups(_) ->
    ok.

cluster(#{mode := Mode}) ->
    first([{not_distributed, node()} || Mode =/= seq, Mode =/= par, not is_alive()]).

%% @doc One plain sentence that says what went wrong, and names the node, the value or the limit.
-spec format_error(reason()) -> unicode:chardata().
format_error({missing_option, Key}) -> say("The option ~ts is missing.", [Key]);
format_error({unknown_option, Key}) -> say("There is no option ~0tp.", [Key]);
format_error({unknown_generators, Name}) ->
    say("There are no generators ~0tp; they are named g1 to g12345, digits ascending.", [Name]);
format_error({unknown_mode, Mode}) -> say("There is no mode ~0tp; the modes are seq, par, mesh, groups and ring.", [Mode]);
format_error({not_a_positive_number, Key, Value}) -> say("The option ~ts must be a whole number above 0, not ~0tp.", [Key, Value]);
format_error({not_a_boolean, Key, Value}) -> say("The option ~ts must be true or false, not ~0tp.", [Key, Value]);
format_error({not_a_call, Value}) -> say("The option survey must be a module, a function and its arguments, not ~0tP.", [Value, 12]);
format_error({not_a_list_of_nodes, Value}) -> say("The nodes must be a list of one node or more, not ~0tP.", [Value, 12]);
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
format_error({gave_up, Node}) -> say("Node ~ts has started processes of the run again very often, and has given up.", [Node]);
format_error({crashed, Node, Why}) -> say("A process of the run failed on node ~ts: ~0tP.", [Node, Why, 12]);
format_error(ended) -> "The run was ended on one of its nodes, where the application orbit was stopped.";
format_error(Reason) -> orbit_plan:format_error(Reason).

say(Format, Args) -> io_lib:format(Format, Args).
