%% @doc `atoll demo': the same work on the same number of nodes, once as a full
%% mesh and once in groups, side by side; then ant colonies in groups, which find
%% what they would have found although processes are killed all the time.
-module(atoll_cli_demo).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(NODES, 9).
-define(GROUP_SIZE, 3).

%% A round of the colonies begins each second.
-define(ROUNDS, 20).
-define(ROUND_MS, 1000).

-spec summary() -> string().
summary() -> "run Orbit as a mesh and in groups, and ant colonies while processes are killed".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll demo"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json}, []) ->
    {Mesh, Groups, Ants} = {orbit(mesh), orbit(groups), ants()},
    then(run_orbit(Mesh), fun(A) ->
        then(run_orbit(Groups), fun(B) ->
            Same = atoll_cli_result:same(A, B),
            ok = show(Json, sets(Same, [{Mesh, A}, {Groups, B}])),
            then(run_ants(Ants), fun(Result) ->
                Spared = spared(Ants, Result),
                ok = show(Json, [$\n | schedules(Spared, Result)]),
                ok = show_json(Json, {[{mesh, atoll_cli_result:json(Mesh, A)},
                                       {groups, atoll_cli_result:json(Groups, B)},
                                       {equal, Same},
                                       {aco, atoll_cli_aco_result:json(Ants, Result)},
                                       {aco_equal, Spared}]}),
                judge(Same, Spared)
            end)
        end)
    end).

then({ok, Result}, Next) -> Next(Result);
then({error, Sentence}, _) -> {failed, Sentence}.

judge(false, _) -> {failed, "the two runs have found different sets"};
judge(true, false) -> {failed, "the ant colonies have found another schedule than without kills"};
judge(true, true) -> ok.

show(true, _) -> ok;
show(false, Text) -> atoll_cli_io:print(Text).

show_json(true, Object) -> atoll_cli_io:print_json(Object);
show_json(false, _) -> ok.

orbit(Mode) ->
    #{generators => g124, space => 100000, mode => Mode, nodes => ?NODES,
      group_size => ?GROUP_SIZE, workers => 4}.

run_orbit(Task) ->
    ok = say(atoll_cli_result:head(Task)),
    atoll_cli_run:orbit(Task).

say(What) ->
    atoll_cli_io:say([integer_to_list(?NODES), " nodes, ", What]).

sets(Same, Runs) ->
    [atoll_cli_result:table([{atoll_cli_result:head(Task), Task, Result} || {Task, Result} <- Runs]),
     case Same of
         true -> "\nBoth runs have found the same set.\n";
         false -> "\nThe two runs have found different sets.\n"
     end].

%% As `atoll aco' with these options.
ants() ->
    Asked = #{ants => 4, local_iterations => 10, global_iterations => ?ROUNDS, local_search => o12,
              pace => ?ROUND_MS, nodes => ?NODES, chaos => 1},
    {ok, Defaults, []} = atoll_cli_options:parse(atoll_cli_aco:options(), [], []),
    {ok, Problem, none} = atoll_cli_aco_problem:read(Defaults),
    atoll_cli_aco_run:task(Problem, none, maps:merge(Defaults, Asked)).

run_ants(Task) ->
    ok = say("ant colonies, one process killed each second on each of them"),
    atoll_cli_aco_run:run(Task).

%% Whether they have found what one process does of which nothing is killed.
spared(#{problem := Problem, options := Options}, #{order := Order, colonies := Colonies}) ->
    Ran = aco_seq:run(#{problem => Problem, options => Options, colonies => Colonies}),
    Order =:= maps:get(order, Ran).

schedules(Spared, Result) ->
    Facts = [{"ant colonies", colonies}, {"rounds", rounds}, {"processes killed", kills},
             {"processes started again", restarts}, {"cost of the schedule", best}],
    [atoll_cli_table:lines([left, right], [[Name, atoll_cli_table:count(maps:get(Key, Result))] || {Name, Key} <- Facts]),
     case Spared of
         true -> "\nWithout kills the colonies find the same schedule.\n";
         false -> "\nWithout kills the colonies find another schedule.\n"
     end].
