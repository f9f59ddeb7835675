%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of a load, in the form of Basho Bench: a file of Erlang terms, each `{Key, Value}', which DE-Bench and the load of stores both have. Which keys there are is said by
%% rules, and what is missing has the default that stands with its rule.
%%
%% The first fault is a sentence, with its line: a key that is not known, one that stands there twice, a value that is wrong.
-module(atoll_bench_config).

-export([read/2, check/2, intervals/2, format_error/1]).
-export([whole/2, number/2, kept/1, checked/1, rate/1, operations/1, is_label/1]).

-export_type([rule/0, read/0, error/0, weighted/1]).

-type rule() :: {Key :: atom(), Default :: term() | required, read(), Must :: string()}.
%% After `Key must be' stands what it must be.

-type read() :: fun((Value :: term()) -> {ok, term()} | error | {error, AfterTheKey :: unicode:chardata()}).

-type reason() ::
    atoll_bench_terms:error()
    | {line, pos_integer(), What :: unicode:chardata()}
    | {missing, atom()}
    | {intervals, Minutes :: number(), Seconds :: number(), Most :: pos_integer()}.

-type error() :: {file:filename_all() | none, reason()}.

-type weighted(Operation) :: {Label :: atom(), Operation, Weight :: number()}.

%% Each interval is kept until the files are written.
-define(MOST_INTERVALS, 10_000).

%% @doc Reads a file, and has its terms checked.
-spec read(file:filename_all(), fun(([atoll_bench_terms:placed()]) -> {ok, Config} | {error, error()})) -> {ok, Config} | {error, error()}.
read(File, Check) ->
    case atoll_bench_terms:read(File) of
        {ok, Terms} ->
            case Check(Terms) of
                {ok, Config} -> {ok, Config};
                {error, {none, Reason}} -> {error, {File, Reason}}
            end;
        {error, Reason} ->
            {error, {File, Reason}}
    end.

%% @doc The value of each key that there is a rule for.
-spec check([atoll_bench_terms:placed()], [rule()]) -> {ok, #{atom() => term()}} | {error, error()}.
check(Terms, Rules) -> check(Terms, Rules, #{}).

check([], Rules, Given) ->
    case [Key || {Key, required, _, _} <- Rules, not is_map_key(Key, Given)] of
        [] -> {ok, maps:merge(maps:from_list([{Key, Default} || {Key, Default, _, _} <- Rules]), Given)};
        [Key | _] -> {error, {none, {missing, Key}}}
    end;
check([{Line, {Key, Value}} | Terms], Rules, Given) ->
    case lists:keyfind(Key, 1, Rules) of
        false ->
            bad(Line, "there is no key ~tp", [Key]);
        {Key, _, _, _} when is_map_key(Key, Given) ->
            bad(Line, "~ts stands there twice", [Key]);
        {Key, _, Read, Must} ->
            case Read(Value) of
                {ok, Is} -> check(Terms, Rules, Given#{Key => Is});
                {error, Why} -> bad(Line, "~ts ~ts", [Key, Why]);
                error -> bad(Line, "~ts must be ~ts, not ~0tP", [Key, Must, Value, 12])
            end
    end;
check([{Line, Term} | _], _, _) ->
    bad(Line, "a term must be {Key, Value}, not ~0tP", [Term, 12]).

bad(Line, Format, Args) -> {error, {none, {line, Line, io_lib:format(Format, Args)}}}.

%% @doc Whether a load of so many minutes has few enough intervals of so many seconds.
-spec intervals(Minutes :: number(), Seconds :: number()) -> ok | {error, error()}.
intervals(Minutes, Seconds) ->
    case 60 * Minutes / Seconds =< ?MOST_INTERVALS of
        true -> ok;
        false -> {error, {none, {intervals, Minutes, Seconds, ?MOST_INTERVALS}}}
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({none, Reason}) -> reason(Reason);
format_error({File, Reason}) -> [File, ": ", reason(Reason)].

reason({missing, Key}) -> io_lib:format("it does not say which ~ts", [Key]);
reason({intervals, Minutes, Seconds, Most}) ->
    io_lib:format("a duration of ~p minutes has more than ~b intervals of ~p seconds (report_interval)", [Minutes, Most, Seconds]);
reason(Reason) -> atoll_bench_terms:format_error(Reason).

%% Kinds of values

%% @doc A whole number of that range.
-spec whole(integer(), integer()) -> read().
whole(Min, Max) -> kept(fun(N) -> is_integer(N) andalso N >= Min andalso N =< Max end).

%% @doc A number above the first and up to the second.
-spec number(Above :: number(), Max :: number()) -> read().
number(Above, Max) -> kept(fun(N) -> is_number(N) andalso N > Above andalso N =< Max end).

%% @doc A value that is as it must be, as it stands there.
-spec kept(fun((term()) -> boolean())) -> read().
kept(Test) -> fun(Value) -> case Test(Value) of true -> {ok, Value}; false -> error end end.

%% @doc The same where the test says what is wrong.
-spec checked(fun((term()) -> ok | {error, unicode:chardata()})) -> read().
checked(Test) -> fun(Value) -> case Test(Value) of ok -> {ok, Value}; {error, _} = Error -> Error end end.

%% @doc Operations in a second, or `closed' ({@link atoll_bench_pace}).
-spec rate(Max :: pos_integer()) -> read().
rate(Max) -> kept(fun(closed) -> true; (N) -> is_integer(N) andalso N >= 1 andalso N =< Max end).

%% @doc A list of `{Operation, Weight}' and `{Label, Operation, Weight}', each of which must be right, and no label stands there twice.
-spec operations(fun((weighted(term())) -> ok | {error, unicode:chardata()})) -> read().
operations(Check) ->
    fun
        ([_ | _] = List) when length(List) > 0 ->
            Full = [weighted(One) || One <- List],
            Labels = [Label || {Label, _, _} <- Full],
            case {lists:member(error, Full), [Error || {_, _, _} = One <- Full, {error, _} = Error <- [Check(One)]], Labels -- lists:usort(Labels)} of
                {true, _, _} -> error;
                {false, [Error | _], _} -> Error;
                {false, [], [Twice | _]} -> {error, io_lib:format("has the label ~ts twice", [Twice])};
                {false, [], []} -> {ok, Full}
            end;
        (_) ->
            error
    end.

weighted({Operation, Weight}) when is_tuple(Operation), tuple_size(Operation) > 0 -> {element(1, Operation), Operation, Weight};
weighted({Operation, Weight}) -> {Operation, Operation, Weight};
weighted({_, _, _} = Weighted) -> Weighted;
weighted(_) -> error.

%% @doc Whether that can be a label: it is part of a file's name.
-spec is_label(term()) -> boolean().
is_label(Label) ->
    is_atom(Label) andalso re:run(atom_to_list(Label), "^[a-zA-Z0-9_]{1,60}$", [dollar_endonly, {capture, none}]) =:= match.
