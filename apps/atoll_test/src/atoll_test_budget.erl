%% SPDX-License-Identifier: Apache-2.0
%% @doc What the tests of each application may take of the fast tier: `priv/budget.config'
%% has the seconds of all its jobs together.
-module(atoll_test_budget).

-export([lines/1, read/0]).

%% @doc The budgets, in seconds.
-spec read() -> #{atom() => pos_integer()}.
read() ->
    {ok, Terms} = file:consult(filename:join(code:priv_dir(atoll_test), "budget.config")),
    maps:from_list(Terms).

%% @doc A line for each application: what it used, its budget, and whether that is over.
-spec lines([{atoll_test_jobs:job(), atoll_test_job:ended()}]) -> iolist().
lines(Done) ->
    Budgets = read(),
    Used = lists:foldl(fun add/2, maps:map(fun(_, _) -> 0 end, Budgets), Done),
    [
        io_lib:format("~-20s ~5b / ~5ts s~ts~n", [App, round(Seconds), budget(App, Budgets), over(Seconds, App, Budgets)])
     || {App, Seconds} <- lists:sort(maps:to_list(Used))
    ].

add({#{app := App}, #{seconds := Seconds}}, Used) ->
    maps:update_with(App, fun(Before) -> Before + Seconds end, Seconds, Used).

budget(App, Budgets) ->
    case Budgets of
        #{App := Seconds} -> integer_to_list(Seconds);
        _ -> "none"
    end.

over(Seconds, App, Budgets) when Seconds > map_get(App, Budgets) -> "  over its budget";
over(_, _, _) -> "".
