%% SPDX-License-Identifier: Apache-2.0
%% @doc The expectations of a fault script that did not hold, for people and for
%% programs, wherever it was played.
-module(atoll_sim_cli_expect).

-export([json/1, judge/4]).

-type failure() :: atoll_sim_play:failure().

%% Of those who broke an expectation, so many are named.
-define(NAMED, 5).

%% @doc Each with its line, its time, and what it was.
-spec json([failure()]) -> [atoll_cli_json:object()].
json(Failed) ->
    [
        {[{line, Line}, {ms, Ms}, {expectation, text(Expectation)}, {was, was(Was)}]}
     || #{place := {_, Line}, ms := Ms, expectation := Expectation, was := Was} <- Failed
    ].

was(Share) when is_number(Share) -> Share;
was(Those) -> [text(One) || One <- Those].

%% @doc Done, or the sentence that says which failed first of so many.
-spec judge(file:filename(), [failure()], Count :: non_neg_integer(), Again :: string()) ->
    atoll_cli_command:outcome().
judge(_, [], _, _) ->
    ok;
judge(File, [#{place := {_, Line}, ms := Ms, expectation := Expectation, was := Was} | _] = Failed, Count, Again) ->
    {failed, io_lib:format(
        "~b of ~b expectations failed, the first at ~ts:~b, after ~ts: ~ts was expected, ~ts; again: ~ts",
        [length(Failed), Count, File, Line, atoll_cli_table:seconds(Ms), text(Expectation), but(Was), Again]
    )}.

but(Share) when is_number(Share) -> ["and it was ", text(Share)];
but([]) -> "but no living node is in that group";
but(Those) when length(Those) =< ?NAMED -> ["but not so for ", listed(Those)];
but(Those) ->
    ["but not so for ", listed(lists:sublist(Those, ?NAMED)), " and ", integer_to_list(length(Those) - ?NAMED), " more"].

listed(Those) -> lists:join(", ", [text(One) || One <- Those]).

text(Term) -> unicode:characters_to_binary(atoll_sim_term:text(Term)).
