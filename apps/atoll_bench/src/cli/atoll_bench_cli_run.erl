%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll bench run': measures, and keeps every sample in a file.
-module(atoll_bench_cli_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, options/1, more/0, operands/0, examples/0, run/2]).
-export([listed/1, timely/2]).

-define(MAX_ROUNDS, 1000).
-define(MAX_VALUE, 1000000000).

-spec summary() -> string().
summary() -> "run a benchmark, and keep what it measured in a file".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => rounds, value => "N", default => "10", read => atoll_cli_read:whole(1, ?MAX_ROUNDS),
          help => "how often each point is measured"},
        #{name => starts, value => "N", default => "5", read => atoll_cli_read:whole(1, ?MAX_ROUNDS),
          help => "how often the nodes are started anew, at most once a round"},
        #{name => seed, value => "N", default => "1", read => atoll_cli_read:whole(0, 1000000000),
          help => "of the order in which that is done"},
        #{name => out, value => "FILE", help => "the result file (atoll-bench-NAME-TIME.jsonl unless told)"}
    ] ++ atoll_deploy_cluster:options() ++ [atoll_cli_json:switch()].

%% @doc With those of the benchmark that is named: a list of values for each of its
%% parameters.
-spec options([string()]) -> {ok, [atoll_cli_options:option()]} | {error, unicode:chardata()}.
options(Args) ->
    case named(Args) of
        none ->
            {ok, options()};
        {ok, Name} ->
            case atoll_bench:find(Name) of
                {ok, Module} -> {ok, [swept(Parameter) || Parameter <- Module:parameters()] ++ options()};
                {error, _} -> {error, unknown(Name)}
            end
    end.

-spec more() -> unicode:chardata().
more() ->
    "Each benchmark has options of its own too, with commas between the values;\n\"atoll bench list NAME\" says which".

%% The first word that is neither an option nor the value of one: a file may be called
%% like a benchmark. All options but the switches take a value.
named(["--", Name | _]) ->
    {ok, Name};
named(["--" ++ _ = Option | Args]) ->
    Switches = [atoll_cli_options:flag(Switch) || #{name := Switch} = O <- options(), not is_map_key(value, O)],
    case {lists:member($=, Option) orelse lists:member(Option, Switches), Args} of
        {false, [_Value | Rest]} -> named(Rest);
        {_, _} -> named(Args)
    end;
named([[C | _] = Name | _]) when C =/= $- ->
    {ok, Name};
named([_ | Args]) ->
    named(Args);
named([]) ->
    none.

unknown(Name) ->
    case atoll_cli_nearest:of_words(Name, [N || {N, _} <- atoll_bench:all()]) of
        {ok, Near} -> ["there is no benchmark \"", Name, "\"; did you mean ", Near, "?"];
        none -> atoll_bench:format_error({no_benchmark, Name})
    end.

swept(#{name := Name, values := Values, help := Help} = Parameter) ->
    #{name => Name, value => "V,V,...", default => listed(Values), help => Help, read => values(Parameter)}.

values(Parameter) ->
    fun(Text) ->
        Read = [value(Word, Parameter) || Word <- string:split(Text, ",", all)],
        case [Must || {error, Must} <- Read] of
            [] -> {ok, [Value || {ok, Value} <- Read]};
            [Must | _] -> {error, Must}
        end
    end.

value(Word, #{type := atom, one_of := Words}) ->
    (atoll_cli_read:one_of(Words))(Word);
value(Word, #{type := integer} = Parameter) ->
    (atoll_cli_read:whole(maps:get(min, Parameter, 1), maps:get(max, Parameter, ?MAX_VALUE)))(Word);
value(Word, #{type := number} = Parameter) ->
    (atoll_cli_read:number(maps:get(min, Parameter, 1), maps:get(max, Parameter, ?MAX_VALUE)))(Word).

%% @doc Values as they are typed.
-spec listed([number() | atom()]) -> string().
listed(Values) ->
    lists:flatten(lists:join($,, [spelt(Value) || Value <- Values])).

spelt(Value) when is_atom(Value) -> atom_to_list(Value);
spelt(Value) when is_float(Value) -> float_to_list(Value, [short]);
spelt(Value) -> integer_to_list(Value).

-spec operands() -> [string()].
operands() -> ["NAME"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll bench run names --nodes 2,4 --callers 1 --rounds 3",
        "atoll bench run dist --kind request --actors 1,16 --size 100,1024 --json",
        "atoll bench run dist --rtt 0,1,20 --actors 16 --size 524288"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json} = Values, [Name]) ->
    case atoll_bench:find(Name) of
        {ok, Module} ->
            File = maps:get(out, Values, timely("atoll-bench-" ++ Name, ".jsonl")),
            Sweep = maps:with([Key || #{name := Key} <- Module:parameters()], Values),
            Options = (maps:with([rounds, starts, seed], Values))#{
                sweep => Sweep,
                file => File,
                command => command(Name, Values, Sweep),
                progress => progress(Name, File)
            },
            show(Json, atoll_bench_run:run(Module, Options));
        {error, _} ->
            {usage, unknown(Name)}
    end.

%% It is called with 0 when there is a file. Whoever ends this program by Ctrl-C hears
%% no more from it, and so is told before.
progress(Name, File) ->
    Bar = atoll_cli_progress:bar("Measuring " ++ Name),
    fun(Done, Total) ->
        _ = [atoll_cli_io:say([File, " keeps every round; Ctrl-C ends the run and leaves it there, partial."]) || Done =:= 0],
        Bar(Done, Total)
    end.

%% @doc A name for what is kept, with the time in it.
-spec timely(Begin :: string(), Ending :: string()) -> string().
timely(Begin, Ending) ->
    {{Year, Month, Day}, {Hour, Minute, Second}} = calendar:universal_time(),
    lists:flatten(
        io_lib:format("~ts-~4..0b~2..0b~2..0bT~2..0b~2..0b~2..0bZ~ts", [Begin, Year, Month, Day, Hour, Minute, Second, Ending])
    ).

command(Name, #{rounds := Rounds, starts := Starts, seed := Seed} = Given, Sweep) ->
    Swept = [[$\s, atoll_cli_options:flag(Key), $\s, listed(Values)] || {Key, Values} <- lists:sort(maps:to_list(Sweep))],
    %% The machine that is told of is this one, and that family's hosts are others.
    Family = [[" --family ", Of] || #{family := Of} <- [Given]],
    io_lib:format("atoll bench run ~ts~ts --rounds ~b --starts ~b --seed ~b~ts", [Name, Swept, Rounds, Starts, Seed, Family]).

show(Json, {ok, #{file := File, failed := Failed}}) ->
    ok = atoll_cli_progress:done(),
    {ok, Run} = atoll_bench_file:read(File),
    ok = atoll_bench_cli_result:print(Json, Run),
    case Failed of
        [] -> ok;
        [{_Point, Why} | _] ->
            {failed, io_lib:format("~b of the points could not be measured; the first: ~ts", [length(Failed), Why])}
    end;
show(_Json, {error, {file, _} = Error}) ->
    {unable, atoll_bench_run:format_error(Error)};
show(_Json, {error, {write, _, _} = Error}) ->
    {unable, atoll_bench_run:format_error(Error)};
show(_Json, {error, Error}) ->
    {usage, atoll_bench_run:format_error(Error)}.
