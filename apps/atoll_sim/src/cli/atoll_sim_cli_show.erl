%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll sim show': a trace as a time line, and the overlay at a moment as a
%% drawing.
-module(atoll_sim_cli_show).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

%% Longer than any run.
-define(MAX_MS, 1000000000).

-spec summary() -> string().
summary() -> "show the trace of a simulation as a time line, or as a drawing".

-spec options() -> [atoll_cli_options:option()].
options() ->
    Ms = atoll_cli_read:whole(0, ?MAX_MS),
    [
        #{name => from, value => "MS", read => Ms, help => "the time line begins there"},
        #{name => to, value => "MS", read => Ms, help => "the time line ends there"},
        #{name => node, value => "NODE", help => "only what happened at this node, or to it"},
        #{name => svg, value => "FILE", help => "draw the overlay into this file"},
        #{name => at, value => "MS", read => Ms, help => "the moment that is drawn (the end unless told)"}
    ].

-spec operands() -> [string()].
operands() -> ["TRACE"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll sim show reef.trace",
        "atoll sim show reef.trace --from 60000 --to 70000 --node n001",
        "atoll sim show reef.trace --at 61000 --svg reef.svg"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{from := From, to := To}, [_]) when From > To ->
    {usage, io_lib:format("--to must be at least --from, which is ~b, not \"~b\"", [From, To])};
run(#{at := _} = Values, [_]) when not is_map_key(svg, Values) ->
    {usage, "--at says what is drawn, and --svg, the file for it, is missing"};
run(Values, [File]) ->
    case is_map_key(svg, Values) andalso atoll_sim_cli_file:is_same(File, map_get(svg, Values)) of
        true -> {usage, ["--svg ", map_get(svg, Values), " is the trace itself"]};
        false -> show(File, Values)
    end.

show(File, Values) ->
    case atoll_sim_cluster:isolated(fun() -> look(File, Values) end) of
        {ok, Cut, Line, Drawing} ->
            _ = [atoll_cli_io:say(Sentence) || Sentence <- Cut],
            %% First, since the reader of the line may have had enough of it.
            case draw(Drawing) of
                ok -> atoll_cli_io:print(Line);
                {unable, _} = Unable -> Unable
            end;
        {error, Sentence} ->
            {usage, Sentence}
    end.

%% Texts leave as binaries: they are not copied from process to process.
look(File, Values) ->
    case atoll_sim_trace:read(File) of
        {ok, Header, Events} -> look(Header, Events, [], Values);
        {cut, Header, Events, Error} -> look(Header, Events, [atoll_sim_trace:format_error(Error)], Values);
        {error, Error} -> {error, atoll_sim_trace:format_error(Error)}
    end.

look(Header, Events, Cut, Values) ->
    case focus(Values, Events) of
        {ok, Focus} ->
            Line = atoll_sim_timeline:text(Header, Events, Focus),
            {ok, Cut, unicode:characters_to_binary(Line), drawing(Values, Header, Events)};
        {error, _} = Error ->
            Error
    end.

focus(#{node := Typed} = Values, Events) ->
    case [Node || {_, Node, _} <- Events, atom_to_list(Node) =:= Typed] of
        [Node | _] -> {ok, (maps:with([from, to], Values))#{node => Node}};
        [] -> {error, ["--node must be a node of the trace", such_as(Events), ", not \"", Typed, $"]}
    end;
focus(Values, _) ->
    {ok, maps:with([from, to], Values)}.

such_as(Events) ->
    case [Node || {_, Node, _} <- Events, Node =/= world] of
        [Node | _] -> [", such as ", atom_to_list(Node)];
        [] -> ""
    end.

drawing(#{svg := Svg} = Values, Header, Events) ->
    End = lists:max([0 | [Ms || {Ms, _, _} <- Events]]),
    At = maps:get(at, Values, End),
    Drawing = atoll_sim_svg:svg(Header, At, atoll_sim_trace:state_at(At, Events)),
    {Svg, unicode:characters_to_binary(Drawing), At};
drawing(_, _, _) ->
    none.

draw(none) ->
    ok;
draw({File, Drawing, At}) ->
    case file:write_file(File, Drawing) of
        ok ->
            atoll_cli_io:say(["The overlay at ", atoll_cli_table:seconds(At), " is drawn in ", File, $.]);
        {error, Reason} ->
            {unable, ["the drawing ", File, " could not be written: ", file:format_error(Reason)]}
    end.
