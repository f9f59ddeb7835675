%% @doc `atoll demo': the same work on the same number of nodes, once as a full
%% mesh and once in groups, side by side.
-module(atoll_cli_demo).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(NODES, 9).
-define(GROUP_SIZE, 3).

-spec summary() -> string().
summary() -> "run Orbit on nine nodes, as a full mesh and in groups".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll demo"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json}, []) ->
    Mesh = task(mesh),
    Groups = task(groups),
    maybe_both(Mesh, Groups, fun(A, B) ->
        Same = atoll_cli_result:same(A, B),
        ok = show(Json, Same, {Mesh, A}, {Groups, B}),
        case Same of
            true -> ok;
            false -> {failed, "the two runs have found different sets"}
        end
    end).

task(Mode) ->
    #{generators => g124, space => 100000, mode => Mode, nodes => ?NODES,
      group_size => ?GROUP_SIZE, workers => 4}.

maybe_both(First, Second, Then) ->
    case run_one(First) of
        {ok, A} ->
            case run_one(Second) of
                {ok, B} -> Then(A, B);
                {error, Sentence} -> {failed, Sentence}
            end;
        {error, Sentence} ->
            {failed, Sentence}
    end.

run_one(Task) ->
    ok = atoll_cli_io:say([integer_to_list(?NODES), " nodes, ", atoll_cli_result:head(Task)]),
    atoll_cli_run:orbit(Task).

show(true, Same, {Mesh, A}, {Groups, B}) ->
    atoll_cli_io:print_json({[{mesh, atoll_cli_result:json(Mesh, A)},
                              {groups, atoll_cli_result:json(Groups, B)},
                              {equal, Same}]});
show(false, Same, {Mesh, A}, {Groups, B}) ->
    Table = atoll_cli_result:table([{atoll_cli_result:head(Task), Task, Result}
                                    || {Task, Result} <- [{Mesh, A}, {Groups, B}]]),
    atoll_cli_io:print([Table, $\n, verdict(Same)]).

verdict(true) -> "Both runs have found the same set.\n";
verdict(false) -> "The two runs have found different sets.\n".
