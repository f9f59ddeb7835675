%% @doc What is to be run: reads what the user has asked for.
%%
%% Everything that can be found wrong before anything is started is found here.
-module(orbit_run).
-compile({no_auto_import, [nodes/1]}).

-export([new/1]).

-export_type([spec/0, run/0, mode/0, reason/0]).

-type mode() :: seq | orbit_topology:mode().

-type spec() :: #{
    generators := orbit_generators:name(),
    %% the vertices are 0 to space - 1
    space := pos_integer(),
    mode := mode(),
    %% The master's node first; it is the one on which run/1 is called. With
    %% seq and par it may be left out, or be the only one.
    nodes => [node()],
    %% nodes to a group; needed by groups and ring, not read by the others
    group_size => pos_integer(),
    %% worker processes on each node, 4 unless told; seq has none
    workers => pos_integer(),
    %% return the sorted list of all vertices too; false unless told
    vertices => boolean()
}.

%% The same, complete.
-type run() :: #{
    %% in the names of the run's groups, and nowhere else
    id := string(),
    generators := orbit_generators:name(),
    space := pos_integer(),
    mode := mode(),
    nodes := [node(), ...],
    group_size := pos_integer(),
    workers := pos_integer(),
    vertices := boolean(),
    %% how long a worker waits for a message before it returns its credit
    idle_ms := pos_integer()
}.

-type reason() ::
    {missing_option, atom()}
    | {unknown_option, term()}
    | {unknown_generators, term()}
    | {unknown_mode, term()}
    | {not_a_positive_number, space | group_size | workers, term()}
    | {not_a_boolean, vertices, term()}
    | {not_a_list_of_nodes, term()}
    | {node_given_twice, node()}
    | {one_node_mode, seq | par, Given :: pos_integer()}
    | {not_the_first_node, node(), First :: node()}
    | {not_distributed, node()}
    | {group_too_large, Size :: pos_integer(), Nodes :: pos_integer()}.

-define(WORKERS, 4).
-define(IDLE_MS, 5).

%% @doc Completes a spec, or says what is wrong with it.
-spec new(spec()) -> {ok, run()} | {error, reason()}.
new(Spec) ->
    Defaults = #{nodes => [node()], workers => ?WORKERS, vertices => false},
    Asked = maps:merge(Defaults, Spec),
    Checks = [fun known/1, fun complete/1, fun generators/1, fun numbers/1, fun mode/1,
              fun vertices/1, fun nodes/1, fun place/1, fun groups/1,
              fun cluster/1],
    case first_fault(Checks, Asked) of
        none ->
            Given = maps:merge(#{group_size => 1}, Asked),
            {ok, Given#{id => new_id(), idle_ms => ?IDLE_MS}};
        Reason ->
            {error, Reason}
    end.

first_fault([Check | Checks], Spec) ->
    case Check(Spec) of
        ok -> first_fault(Checks, Spec);
        Reason -> Reason
    end;
first_fault([], _) ->
    none.

known(Spec) ->
    Known = [generators, space, mode, nodes, group_size, workers, vertices],
    case maps:keys(Spec) -- Known of
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
    Wrong = [{not_a_positive_number, Key, N}
             || Key <- [space, workers, group_size],
                N <- [maps:get(Key, Spec) || is_map_key(Key, Spec)],
                not (is_integer(N) andalso N > 0)],
    case Wrong of
        [] -> ok;
        [Reason | _] -> Reason
    end.

mode(#{mode := Mode}) ->
    case lists:member(Mode, [seq, par, mesh, groups, ring]) of
        true -> ok;
        false -> {unknown_mode, Mode}
    end.

vertices(#{vertices := Keep}) when is_boolean(Keep) -> ok;
vertices(#{vertices := Other}) -> {not_a_boolean, vertices, Other}.

nodes(#{nodes := [_ | _] = Nodes}) ->
    case is_list_of_atoms(Nodes) of
        false ->
            {not_a_list_of_nodes, Nodes};
        true ->
            case Nodes -- lists:usort(Nodes) of
                [] -> ok;
                [Twice | _] -> {node_given_twice, Twice}
            end
    end;
nodes(#{nodes := Other}) ->
    {not_a_list_of_nodes, Other}.

%% Which nodes are up is not asked: it would connect them.
place(#{mode := Mode, nodes := [_, _ | _] = Nodes}) when Mode =:= seq; Mode =:= par ->
    {one_node_mode, Mode, length(Nodes)};
place(#{nodes := [First | _]}) when First =/= node() ->
    {not_the_first_node, node(), First};
place(_) ->
    ok.

groups(#{mode := Mode, nodes := Nodes, group_size := Size})
  when (Mode =:= groups orelse Mode =:= ring), Size > length(Nodes) ->
    {group_too_large, Size, length(Nodes)};
groups(_) ->
    ok.

cluster(#{mode := Mode}) when Mode =:= seq; Mode =:= par ->
    ok;
cluster(_) ->
    case is_alive() of
        true -> ok;
        false -> {not_distributed, node()}
    end.

is_list_of_atoms([Head | Tail]) -> is_atom(Head) andalso is_list_of_atoms(Tail);
is_list_of_atoms([]) -> true;
is_list_of_atoms(_) -> false.

%% 64 random bits: two masters that know nothing of each other must not meet.
new_id() ->
    string:lowercase(integer_to_list(rand:uniform(1 bsl 64), 36)).
