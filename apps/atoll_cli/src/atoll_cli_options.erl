%% SPDX-License-Identifier: Apache-2.0
%% @doc Reads the options of a command, and says in a sentence what is wrong
%% with them. The sentence names the flag as the user types it.
-module(atoll_cli_options).

-export([parse/3, flag/1, inputs/4, first/2]).

-export_type([option/0, values/0, reader/0]).

-type option() :: #{
    %% the key in values(); `group_size' is typed `--group-size'
    name := atom(),
    help := unicode:chardata(),
    %% A letter that is typed for it as well: `-c'.
    short => char(),
    %% What stands for the value in the help; an option without is a switch.
    value => string(),
    %% Read as if it had been typed. An option that has none and is not given is
    %% not in values(), unless it is a switch: that is true or false.
    default => string(),
    %% May be given several times; values() has a list then, in that order.
    repeat => true,
    %% Without one the value is any text that is not empty.
    read => reader(),
    %% The other way round, where a line is printed that repeats a run.
    spell => fun((Value :: term()) -> string()),
    %% It names a file that the command reads.
    is_read => true,
    %% What is done before the command runs, if it is given; an error is why it cannot.
    first => fun((values()) -> ok | {error, unicode:chardata()})
}.

%% Reads a value. What it says against one completes "--space ...".
-type reader() :: fun((string()) -> {ok, term()} | {error, unicode:chardata()}).

-type values() :: #{atom() => term()}.

%% Operands that are files which a command reads.
-define(FILES, ["CONFIG", "FILE", "SCRIPT", "TRACE"]).
%% For who names it as an argument, or with --name, as commands once took it.
-define(CLUSTER, "; a cluster is named with --cluster, or -c").

%% @doc Reads the arguments of a command. Operands are what it takes beside
%% options, such as `["N", "[NAME]"]', where NAME may be left out; `"[NAME...]"', the
%% last one, stands for any number.
-spec parse([option()], Operands :: [string()], [string()]) ->
    {ok, values(), [string()]} | {error, unicode:chardata()}.
parse(Options, Operands, Args) ->
    %% Called by a variable: rebar3 has another getopt inside, and does not show
    %% the system's to dialyzer.
    {module, Getopt} = code:ensure_loaded(getopt),
    case Getopt:parse([getopt_spec(Option) || Option <- Options], Args) of
        {ok, {Given, Rest}} -> check(Options, Operands, Given, Rest);
        {error, {missing_option_arg, Name}} -> {error, [flag(Name), " needs a value"]};
        {error, {invalid_option, Typed}} -> {error, unknown(head(Typed), Options)};
        {error, {invalid_option_arg, Typed}} -> {error, [head(Typed), " takes no value"]}
    end.

%% @doc The files that a command is to read, by its options and its operands.
-spec inputs([option()], Operands :: [string()], values(), [string()]) -> [file:filename()].
inputs(Options, Operands, Values, Typed) ->
    [File || #{name := Name, is_read := true} <- Options, #{Name := File} <- [Values]] ++
        [File || {Operand, File} <- named(Operands, Typed), lists:member(Operand, ?FILES)].

%% @doc Does what is to be done before the command runs, and says why it cannot be.
-spec first([option()], values()) -> ok | {error, unicode:chardata()}.
first([#{name := Name, first := First} | Options], Values) when is_map_key(Name, Values) ->
    case First(Values) of
        ok -> first(Options, Values);
        {error, _} = Error -> Error
    end;
first([_ | Options], Values) -> first(Options, Values);
first([], _) -> ok.

%% The last operand stands for all that follow.
named([Operand, Next | Operands], [Text | Texts]) -> [{Operand, Text} | named([Next | Operands], Texts)];
named([Operand], Texts) -> [{string:trim(Operand, both, "[.]"), Text} || Text <- Texts];
named(_, []) -> [];
named([], _) -> [].

%% @doc An option's name as it is typed.
-spec flag(atom()) -> string().
flag(Name) ->
    "--" ++ long(Name).

%% getopt is not let to read values: its complaints do not say what is allowed.
getopt_spec(#{name := Name} = Option) ->
    {Name, maps:get(short, Option, undefined), long(Name), case Option of #{value := _} -> string; #{} -> undefined end, ""}.

long(Name) ->
    [case C of $_ -> $-; _ -> C end || C <- atom_to_list(Name)].

%% `--flag=value' without its value.
head(Typed) ->
    hd(string:split(Typed, "=")).

unknown(Typed, Options) ->
    Known = [flag(Name) || #{name := Name} <- Options],
    case {Typed =:= "--name" andalso has_cluster(Options), atoll_cli_nearest:of_words(Typed, Known)} of
        {true, _} -> ["there is no option --name", ?CLUSTER];
        {false, {ok, Near}} -> ["there is no option ", Typed, "; did you mean ", Near, "?"];
        {false, none} -> ["there is no option ", Typed]
    end.

has_cluster(Options) ->
    lists:any(fun(#{name := Name}) -> Name =:= cluster end, Options).

check(Options, Operands, Given, Rest) ->
    Repeated = [Name || #{name := Name, repeat := true} <- Options],
    Typed = [name(G) || G <- Given, not lists:member(name(G), Repeated)],
    case {Typed -- lists:usort(Typed), operands(Operands, Rest, Options)} of
        {[Twice | _], _} -> {error, [flag(Twice), " is given twice"]};
        {[], {error, _} = Error} -> Error;
        {[], ok} -> read(Options, Given, #{}, Rest)
    end.

name({Name, _}) -> Name;
name(Name) -> Name.

operands(Operands, Rest, Options) when length(Rest) > length(Operands) ->
    case lists:suffix("...]", lists:last(["" | Operands])) of
        true -> ok;
        false -> {error, ["the argument \"", lists:nth(length(Operands) + 1, Rest), "\" is one too many",
                          [?CLUSTER || Operands =:= [], has_cluster(Options)]]}
    end;
operands(Operands, Rest, _Options) ->
    case [O || O <- lists:nthtail(length(Rest), Operands), hd(O) =/= $[] of
        [] -> ok;
        [Missing | _] -> {error, ["the argument ", Missing, " is missing"]}
    end.

read([#{name := Name} = Option | Options], Given, Values, Rest) ->
    case value(Option, Given) of
        {ok, Value} -> read(Options, Given, Values#{Name => Value}, Rest);
        none -> read(Options, Given, Values, Rest);
        {error, _} = Error -> Error
    end;
read([], _, Values, Rest) ->
    {ok, Values, Rest}.

value(#{name := Name, repeat := true} = Option, Given) ->
    read_all([Text || {Key, Text} <- Given, Key =:= Name], Option, []);
value(#{name := Name, value := _} = Option, Given) ->
    case {lists:keyfind(Name, 1, Given), Option} of
        {{_, Text}, _} -> read_value(Text, Option);
        {false, #{default := Text}} -> read_value(Text, Option);
        {false, _} -> none
    end;
value(#{name := Name}, Given) ->
    {ok, lists:member(Name, Given)}.

read_all([], _, Values) ->
    {ok, lists:reverse(Values)};
read_all([Text | Texts], Option, Values) ->
    case read_value(Text, Option) of
        {ok, Value} -> read_all(Texts, Option, [Value | Values]);
        {error, _} = Error -> Error
    end.

read_value(Text, #{name := Name, read := Read}) ->
    case Read(Text) of
        {ok, Value} -> {ok, Value};
        {error, Must} -> {error, [flag(Name), $\s, Must, ", not \"", Text, $"]}
    end;
read_value("", #{name := Name}) ->
    {error, [flag(Name), " needs a value"]};
read_value(Text, #{}) ->
    {ok, Text}.
