%% @doc What is to be run: reads what the user has asked for.
%%
%% Everything that can be found wrong before anything is started is found here.
-module(aco_run).
-compile({no_auto_import, [nodes/1]}).

-export([new/1, format_error/1]).

-export_type([spec/0, run/0, reason/0]).

-type spec() :: #{
    problem := aco_problem:problem(),
    %% of the algorithm
    options => aco_options:given(),
    mode := aco_tree:mode(),
    %% The master's node first, on which the run is started; see aco_tree for who
    %% gets which role.
    nodes := [node()],
    %% submasters of each submaster, 2 unless told; tl has none
    degree => pos_integer(),
    %% 1 unless told
    colonies_per_node => pos_integer(),
    %% the cost that is known to be the least
    optimum => aco_schedule:cost(),
    %% end when it is reached; false unless told
    until_optimum => boolean(),
    %% a round begins at the earliest so long after the one before; 0 unless told
    pace_ms => non_neg_integer(),
    %% kills a second on every node; 0, which is none, unless told
    chaos => number(),
    %% gets {aco, best, Round, Cost} after every round
    watcher => pid()
}.

%% The same, complete.
-type run() :: #{
    %% in the names of the run's groups and processes, and nowhere else
    id := string(),
    problem := aco_problem:problem(),
    options := aco_options:options(),
    mode := aco_tree:mode(),
    %% whether what is lost is started again
    reliable := boolean(),
    nodes := [node(), ...],
    tree := aco_tree:branch(),
    optimum := aco_schedule:cost() | none,
    until_optimum := boolean(),
    pace_ms := non_neg_integer(),
    chaos := number(),
    watcher := pid() | none,
    _ => _
}.

-type reason() ::
    {missing_option, atom()}
    | {unknown_option, term()}
    | aco_options:reason()
    | {wrong_value, atom(), Must :: string(), term()}
    | {unknown_mode, term()}
    | {not_a_list_of_nodes, term()}
    | {node_given_twice, node()}
    | {not_the_first_node, node(), First :: node()}
    | {not_distributed, node()}
    | no_optimum
    | aco_tree:reason().

%% @doc Completes a spec, or says what is wrong with it.
-spec new(spec()) -> {ok, run()} | {error, reason()}.
new(Spec) ->
    Asked = maps:merge(defaults(), Spec),
    Checks = [fun known/1, fun complete/1, fun values/1, fun mode/1, fun optimum/1, fun nodes/1, fun place/1],
    case first_fault(Checks, Asked) of
        none -> laid_out(Asked);
        Reason -> {error, Reason}
    end.

defaults() ->
    #{options => #{}, degree => 2, colonies_per_node => 1, optimum => none, until_optimum => false,
      pace_ms => 0, chaos => 0, watcher => none}.

laid_out(#{options := Given, mode := Mode, nodes := Nodes, degree := Degree, colonies_per_node := Each} = Asked) ->
    case {aco_options:new(Given), aco_tree:new(Mode, Nodes, Degree, Each)} of
        {{ok, Options}, {ok, Tree}} ->
            {ok, Asked#{id => new_id(), options => Options, tree => Tree,
                        reliable => lists:member(Mode, [gr, sr])}};
        {{error, Reason}, _} ->
            {error, Reason};
        {_, {error, Reason}} ->
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
    case maps:keys(Spec) -- [problem, mode, nodes | maps:keys(defaults())] of
        [] -> ok;
        [Key | _] -> {unknown_option, Key}
    end.

complete(Spec) ->
    case [problem, mode, nodes] -- maps:keys(Spec) of
        [] -> ok;
        [Key | _] -> {missing_option, Key}
    end.

values(Spec) ->
    Wrong = [{wrong_value, Key, Must, maps:get(Key, Spec)}
             || {Key, Must, Fits} <- allowed(), not Fits(maps:get(Key, Spec))],
    case Wrong of
        [] -> ok;
        [Reason | _] -> Reason
    end.

allowed() ->
    Whole = fun(Least, Most) -> fun(N) -> is_integer(N) andalso N >= Least andalso N =< Most end end,
    Or = fun(Is) -> fun(Value) -> Value =:= none orelse Is(Value) end end,
    [
        {options, "a map", fun is_map/1},
        {degree, "a whole number from 2 to 1000", Whole(2, 1000)},
        {colonies_per_node, "a whole number from 1 to 1000", Whole(1, 1000)},
        {optimum, "a cost, a whole number from 0 on", Or(fun(N) -> is_integer(N) andalso N >= 0 end)},
        {until_optimum, "true or false", fun is_boolean/1},
        {pace_ms, "a whole number from 0 to 3600000", Whole(0, 3_600_000)},
        {chaos, "a number from 0 to 100", fun(N) -> is_number(N) andalso N >= 0 andalso N =< 100 end},
        {watcher, "a process", Or(fun is_pid/1)}
    ].

mode(#{mode := Mode}) ->
    case lists:member(Mode, [tl, ml, gr, sr]) of
        true -> ok;
        false -> {unknown_mode, Mode}
    end.

optimum(#{until_optimum := true, optimum := none}) -> no_optimum;
optimum(_) -> ok.

nodes(#{nodes := Nodes}) ->
    case is_list_of_atoms(Nodes) of
        false ->
            {not_a_list_of_nodes, Nodes};
        true ->
            case Nodes -- lists:usort(Nodes) of
                [] -> ok;
                [Twice | _] -> {node_given_twice, Twice}
            end
    end.

is_list_of_atoms([Head | Tail]) -> is_atom(Head) andalso is_list_of_atoms(Tail);
is_list_of_atoms(Tail) -> Tail =:= [].

%% Which nodes are up is not asked: it would connect them.
place(#{nodes := [First | _]}) when First =/= node() ->
    {not_the_first_node, node(), First};
place(_) ->
    case is_alive() of
        true -> ok;
        false -> {not_distributed, node()}
    end.

%% 64 random bits: two masters that know nothing of each other must not meet.
new_id() ->
    string:lowercase(integer_to_list(rand:uniform(1 bsl 64), 36)).

%% @doc One plain sentence.
-spec format_error(reason()) -> unicode:chardata().
format_error({missing_option, Key}) ->
    say("The option ~ts is missing.", [Key]);
format_error({unknown_option, Key}) ->
    say("There is no option ~0tp.", [Key]);
format_error({wrong_option, _, _} = Reason) ->
    aco_options:format_error(Reason);
format_error({wrong_value, Key, Must, Value}) ->
    say("The option ~ts must be ~ts, not ~0tP.", [Key, Must, Value, 12]);
format_error({unknown_mode, Mode}) ->
    say("There is no mode ~0tp; the modes are tl, ml, gr and sr.", [Mode]);
format_error({not_a_list_of_nodes, Value}) ->
    say("The nodes must be a list of nodes, not ~0tP.", [Value, 12]);
format_error({node_given_twice, Node}) ->
    say("Node ~ts is given twice.", [Node]);
format_error({not_the_first_node, Node, First}) ->
    say("The run must be started on ~ts, the first of its nodes, not on ~ts.", [First, Node]);
format_error({not_distributed, Node}) ->
    say("Node ~ts is not distributed, and the mode asks for a cluster.", [Node]);
format_error(no_optimum) ->
    say("The run is to end at the optimum, and the option optimum is missing.", []);
format_error({too_few_nodes, _, _, _} = Reason) ->
    aco_tree:format_error(Reason).

say(Format, Args) ->
    io_lib:format(Format, Args).
