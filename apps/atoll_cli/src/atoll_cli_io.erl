%% @doc The two ways to the user: data goes to standard output, and talk to
%% standard error.
-module(atoll_cli_io).

-export([init/0, print/1, print_json/1, say/1, say_over/1, columns/0]).

%% @doc Has both written in UTF-8. A failure is left to the writing.
-spec init() -> ok.
init() ->
    _ = io:setopts(standard_io, [{encoding, unicode}]),
    _ = io:setopts(standard_error, [{encoding, unicode}]),
    ok.

%% @doc Prints data. If nobody reads it any more the program ends, without a
%% word, since there is nothing left to do for it.
-spec print(unicode:chardata()) -> ok.
print(Text) ->
    try
        io:put_chars(standard_io, Text)
    catch
        error:_ -> halt(1, [{flush, false}])
    end.

%% @doc Prints an object, on a line.
-spec print_json(atoll_cli_json:object()) -> ok.
print_json(Object) ->
    print([atoll_cli_json:encode(Object), $\n]).

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
