%% SPDX-License-Identifier: Apache-2.0
%% @doc How a command ends: the exit statuses of all commands, and what is said with them. A sentence
%% goes to standard error; with `--json' it is an object too, `{"error": ...}', unless one
%% was printed already: there is one object on standard output, however it ends.
-module(atoll_cli_exit).

-export([table/0, status/1, run/1]).

-export_type([word/0]).

-type word() :: done | failed | usage | unable | fault | interrupted.

%% @doc The table.
-spec table() -> [{0..255, word(), Meaning :: string()}].
table() ->
    [
        {0, done, "done"},
        {1, failed, "it was done, and what came of it is not as it should be"},
        {2, usage, "the command line is wrong"},
        {3, unable, "it could not be done"},
        {70, fault, "a fault of this program"},
        {130, interrupted, "Ctrl-C"}
    ].

%% @doc The status that a word stands for.
-spec status(word()) -> 0..255.
status(Word) ->
    {Status, Word, _} = lists:keyfind(Word, 2, table()),
    Status.

%% @doc Calls what runs a command line, says how it ended, and gives the status.
-spec run(fun(() -> {Who :: string(), Json :: boolean(), atoll_cli_command:outcome()})) -> 0..255.
run(Fun) ->
    try Fun() of
        {Who, Json, Outcome} -> ended(Who, Json, Outcome)
    catch
        throw:{not_printed, Sentence} ->
            said("atoll", false, unable, Sentence);
        Class:Reason:Stack ->
            said("atoll", false, fault, ["this is a fault of the program: ", erl_error:format_exception(Class, Reason, Stack)])
    end.

ended(_Who, _Json, ok) -> status(done);
ended(Who, _Json, interrupted) -> said(Who, false, interrupted, "interrupted; all is healed");
ended(Who, Json, {Word, Sentence}) -> said(Who, Json, Word, Sentence).

said(Who, Json, Word, Sentence) ->
    _ = [ok = atoll_cli_io:print_json({[{error, first_line(Sentence)}]}) || Json, not atoll_cli_io:has_printed()],
    ok = atoll_cli_io:say([Who, ": ", Sentence]),
    status(Word).

%% A picture of the place, below it, is for people.
first_line(Sentence) ->
    [First | _] = string:split(unicode:characters_to_list(Sentence), "\n"),
    unicode:characters_to_binary(First).
