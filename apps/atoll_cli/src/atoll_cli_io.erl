%% SPDX-License-Identifier: Apache-2.0
%% @doc The two ways to the user: data goes to standard output, and talk to
%% standard error.
-module(atoll_cli_io).

-export([init/0, print/1, print_json/1, has_printed/0, say/1, say_over/1, columns/0, screen/0]).

-define(STDOUT, 1).

%% @doc Has talk written in UTF-8, as data is. A failure is left to the writing.
-spec init() -> ok.
init() ->
    _ = io:setopts(standard_error, [{encoding, unicode}]),
    ok.

%% @doc Prints data; it has been written when this returns. Throws a sentence
%% if it cannot be. If nobody reads it any more the program ends, without a word,
%% since there is nothing left to do for it.
-spec print(unicode:chardata()) -> ok | no_return().
print(Text) ->
    case prim_file:write(stdout(), unicode:characters_to_binary(Text)) of
        ok ->
            _ = put({?MODULE, printed}, true),
            ok;
        {error, epipe} ->
            halt(atoll_cli_exit:status(unable), [{flush, false}]);
        {error, Reason} ->
            throw({not_printed, ["the output could not be written: ", file:format_error(Reason)]})
    end.

%% The VM's own device answers before it has written, and never tells that it
%% could not. A file that is no longer referred to is closed: this one is kept.
stdout() ->
    case get(?MODULE) of
        undefined ->
            {ok, File} = prim_file:file_desc_to_ref(?STDOUT, [write]),
            undefined = put(?MODULE, File),
            File;
        File ->
            File
    end.

%% @doc Prints an object, on a line.
-spec print_json(atoll_cli_json:object()) -> ok.
print_json(Object) ->
    print([atoll_cli_json:encode(Object), $\n]).

%% @doc Whether this process has printed anything.
-spec has_printed() -> boolean().
has_printed() ->
    get({?MODULE, printed}) =:= true.

%% @doc Says a line.
-spec say(unicode:chardata()) -> ok.
say(Text) ->
    write_error([over(), Text, $\n]).

%% @doc On a terminal, says what the next thing said will take the place of.
%% Nothing elsewhere.
-spec say_over(unicode:chardata()) -> ok.
say_over(Text) ->
    case columns() of
        none -> ok;
        Columns -> write_error([over(), string:slice(Text, 0, Columns - 1)])
    end.

%% @doc The width of the terminal that standard error is, if it is one. What
%% started this VM has looked: no OTP before 26 can tell.
-spec columns() -> pos_integer() | none.
columns() ->
    case string:to_integer(os:getenv("ATOLL_STDERR_COLUMNS", "")) of
        {N, []} when is_integer(N), N > 0 -> N;
        _ -> none
    end.

%% @doc The size of the terminal that standard output is, if it is one.
-spec screen() -> {Rows :: pos_integer(), Columns :: pos_integer()} | none.
screen() ->
    case [string:to_integer(Text) || Text <- string:lexemes(os:getenv("ATOLL_STDOUT_SIZE", ""), " ")] of
        [{Rows, []}, {Columns, []}] when is_integer(Rows), Rows > 0, is_integer(Columns), Columns > 0 -> {Rows, Columns};
        _ -> none
    end.

over() ->
    case columns() of
        none -> "";
        _ -> "\r\e[K"
    end.

%% Talk that nobody hears is no reason to end.
write_error(Text) ->
    try
        io:put_chars(standard_error, Text)
    catch
        error:_ -> ok
    end.
