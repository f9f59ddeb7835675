%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds what somebody may have meant who mistyped a word.
-module(atoll_cli_nearest).

-export([of_words/2]).

%% @doc The nearest of the words, if it is near enough to be worth a question:
%% about a third of its letters away at most; the dashes before an option are no
%% letters. `none' if it is longer than any word.
-spec of_words(string(), [string()]) -> {ok, string()} | none.
of_words(Typed, Words) ->
    Bare = bare(Typed),
    Near = [{D, Word} || Word <- Words, W <- [bare(Word)], length(Bare) =< 2 * length(W),
                         D <- [distance(Bare, W)], 3 * D =< length(W) + 2],
    case lists:sort(Near) of
        [{_, Word} | _] -> {ok, Word};
        [] -> none
    end.

bare(Word) ->
    string:trim(Word, leading, "-").

%% Letters to insert, delete or replace (Wagner and Fischer, 1974). A row of
%% the table holds the distances of a prefix of A to all prefixes of B.
distance(A, B) ->
    lists:last(lists:foldl(fun(C, Row) -> next_row(C, B, Row) end, lists:seq(0, length(B)), A)).

next_row(C, B, [First | _] = Row) ->
    [First + 1 | next_cells(C, B, Row, First + 1)].

next_cells(C, [D | Ds], [Diagonal, Above | Row], Left) ->
    Replaced = case C of D -> Diagonal; _ -> Diagonal + 1 end,
    Cell = lists:min([Replaced, Above + 1, Left + 1]),
    [Cell | next_cells(C, Ds, [Above | Row], Cell)];
next_cells(_, [], _, _) ->
    [].
