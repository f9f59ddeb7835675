%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll watch record': the traffic of a running cluster in a file, which the page plays without the cluster.
-module(atoll_flow_cli_record).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, more/0, run/2]).

%% The page opens no more, and a file of a day is not to fill a disk.
-define(MOST_BYTES, 500000000).

-spec summary() -> string().
summary() -> "record the traffic of a running cluster in a file".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options(looks) ++
    [atoll_flow_cli:seconds(for, "60", "seconds for which it records; 5m is five minutes")] ++
    atoll_flow_cli:options() ++
    [#{name => load, value => "NODE", read => fun atom/1, help => "record the run queues, migrations and mailboxes of this node, too"}].

%% A name that is none is told when there is no such node.
atom(Text) ->
    case atoll_view_join:node_names(Text) of
        {ok, [Node]} -> {ok, Node};
        _ -> {error, "must be the whole name of a node, as in a@host"}
    end.

-spec operands() -> [string()].
operands() -> ["RECORDING"].

-spec examples() -> [string()].
examples() -> ["atoll watch record traffic.flow --for 60s", "atoll watch record traffic.flow -c reef --trace --for 5m", "atoll watch record load.flow --load reef1@127.0.0.1"].

-spec more() -> unicode:chardata().
more() -> "The file is not to be there yet. Ctrl-C ends it earlier, and the file is whole. The page of \"atoll watch\" opens it under Traffic; docs/traffic.md says what stands in it".

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{for := Ms} = Values, [File]) ->
    case file:open(File, [write, exclusive, raw, binary, delayed_write]) of
        {ok, Io} ->
            Outcome = atoll_cli_interrupt:catching(fun() -> atoll_flow_cli:observing(Values, #{}, fun(_, Flow) -> begun(File, Io, Ms, Flow, Values) end) end),
            _ = file:close(Io),
            %% One with nothing in it is no recording.
            _ = [file:delete(File) || filelib:file_size(File) =:= 0],
            Outcome;
        {error, Reason} -> {unable, [File, " cannot be made: ", file:format_error(Reason)]}
    end.

begun(File, Io, Ms, Flow, Values) ->
    case [Node || #{load := Node} <- [Values], not lists:keymember(Node, 1, maps:get(nodes, atoll_flow:status(Flow)))] of
        [Node | _] ->
            {unable, ["The cluster has no node ", atom_to_list(Node), $.]};
        [] ->
            ok = atoll_flow:subscribe(Flow),
            _ = [ok = atoll_flow:load(Flow, Node) || #{load := Node} <- [Values]],
            Timer = erlang:start_timer(Ms, self(), over),
            case recorded(Io, Timer, Flow, atoll_flow_frame:new(), 0, 0) of
                {ok, Frames, Bytes} ->
                    lists:foreach(fun atoll_cli_io:say/1, atoll_flow_cli:said(atoll_flow:status(Flow))),
                    atoll_cli_io:print([atoll_cli_table:count(Frames), " frames, ", atoll_cli_table:count(Bytes), " bytes in ", File, $\n]);
                {error, Reason} ->
                    {unable, [File, " cannot be written: ", file:format_error(Reason)]}
            end
    end.

recorded(Io, Timer, Flow, Writer0, Frames, Bytes) ->
    receive
        interrupted -> {ok, Frames, Bytes};
        {timeout, Timer, over} -> {ok, Frames, Bytes};
        {'EXIT', Flow, Reason} -> exit(Reason);
        {atoll_flow, Flow, Frame} when Bytes < ?MOST_BYTES ->
            {Object, Writer} = atoll_flow_frame:object(Frame, Writer0),
            Line = [atoll_cli_json:encode(Object), $\n],
            case file:write(Io, Line) of
                ok -> recorded(Io, Timer, Flow, Writer, Frames + 1, Bytes + iolist_size(Line));
                {error, Reason} -> {error, Reason}
            end;
        {atoll_flow, Flow, _} ->
            ok = atoll_cli_io:say("It ends here: the page opens no larger file."),
            {ok, Frames, Bytes}
    end.
