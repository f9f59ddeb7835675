%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll aco --against-optima': every problem of a collection, solved by so many colonies and so
%% many more, against the least costs that are known. What colonies find does not hang on the mode
%% and the nodes, so it is done here, in one process for each processor, and no node is started.
-module(atoll_cases_aco_optima).

-export([reader/0, run/3, json/1, table/1]).

-export_type([row/0]).

-type row() :: #{
    colonies := pos_integer(),
    problems := pos_integer(),
    %% at the least cost, and below it: then that was none
    reached := non_neg_integer(),
    below := non_neg_integer(),
    %% (cost - least) / least of the worst of the others
    gap_max := float(),
    %% of the problem that took longest, and of all together
    longest_ms := non_neg_integer(),
    ms := non_neg_integer()
}.

-define(MOST, 1000).

%% @doc Reads numbers of colonies, with commas between.
-spec reader() -> atoll_cli_options:reader().
reader() ->
    One = atoll_cli_read:whole(1, ?MOST),
    fun(Text) ->
        Read = [One(Part) || Part <- string:split(Text, ",", all)],
        case [Number || {ok, Number} <- Read] of
            Numbers when length(Numbers) =:= length(Read) -> {ok, Numbers};
            _ -> {error, ["must be whole numbers from 1 to ", atoll_cli_table:count(?MOST), ", with commas between"]}
        end
    end.

%% @doc Solves all problems with each of these numbers of colonies.
-spec run([pos_integer(), ...], [{aco_problem:problem(), aco_schedule:cost()}, ...], aco_options:options()) -> [row(), ...].
run(Counts, Problems, Options) ->
    [row(Colonies, Problems, Options) || Colonies <- Counts].

row(Colonies, Problems, Options) ->
    {Us, Solved} = timer:tc(fun() -> dealt(fun(Problem) -> solved(Colonies, Problem, Options) end, Problems) end),
    #{
        colonies => Colonies,
        problems => length(Problems),
        reached => length([x || {Best, Best, _} <- Solved]),
        below => length([x || {Best, Least, _} <- Solved, Best < Least]),
        gap_max => lists:max([0.0 | [(Best - Least) / max(1, Least) || {Best, Least, _} <- Solved, Best > Least]]),
        longest_ms => lists:max([Ms || {_, _, Ms} <- Solved]),
        ms => Us div 1000
    }.

solved(Colonies, {Problem, Least}, Options) ->
    {Us, #{best := Best}} = timer:tc(fun() ->
        aco_seq:run(#{problem => Problem, options => Options, colonies => Colonies, until => Least})
    end),
    {Best, Least, Us div 1000}.

%% To the processors, by turns.
dealt(Fun, Items) ->
    Hands = erlang:system_info(schedulers_online),
    Self = self(),
    Numbered = lists:zip(lists:seq(1, length(Items)), Items),
    Pids = [spawn_link(fun() -> Self ! {self(), [Fun(Item) || {N, Item} <- Numbered, N rem Hands =:= Hand]} end)
            || Hand <- lists:seq(0, Hands - 1)],
    lists:append([receive {Pid, Results} -> Results end || Pid <- Pids]).

%% @doc The object that `--json' prints.
-spec json([row(), ...]) -> atoll_cli_json:object().
json(Rows) ->
    {[{against_optima, [{[{Key, maps:get(Key, Row)} || Key <- [colonies, problems, reached, below, gap_max, longest_ms, ms]]}
                        || Row <- Rows]}]}.

%% @doc A line for each number of colonies.
-spec table([row(), ...]) -> iolist().
table(Rows) ->
    Columns = [{right, Name} || Name <- ["colonies", "problems", "optimal", "largest gap", "longest", "all"]],
    atoll_cli_table:format(Columns, [
        [atoll_cli_table:count(Colonies), atoll_cli_table:count(Problems), [atoll_cli_table:count(Reached), below(Below)],
         atoll_cli_table:percent(Gap), atoll_cli_table:seconds(Longest), atoll_cli_table:seconds(Ms)]
     || #{colonies := Colonies, problems := Problems, reached := Reached, below := Below, gap_max := Gap,
          longest_ms := Longest, ms := Ms} <- Rows
    ]).

below(0) -> "";
below(Count) -> [", ", atoll_cli_table:count(Count), " below"].
