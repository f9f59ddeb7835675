%% SPDX-License-Identifier: Apache-2.0
%% @doc Writes the trace of a simulation into a file while it runs.
-module(atoll_sim_cli_trace).

-export([writing/3]).

%% What is kept before it is written, and for how long.
-define(BUFFER_BYTES, 262144).
-define(BUFFER_MS, 2000).

%% @doc Runs Fun with the option of a cluster that writes the trace; with none if
%% there is no file. The file is open before Fun runs, and has its name when it is
%% whole; until then what stood there stays. An error is a sentence; then Fun was
%% not run, or was broken off.
-spec writing(file:filename() | none, atoll_sim_trace:header(), fun((#{trace => fun()}) -> Result)) ->
    {ok, Result} | {error, unicode:chardata()}.
writing(none, _, Fun) ->
    {ok, Fun(#{})};
writing(File, Header, Fun) ->
    case atoll_sim_cli_file:replacing(File, fun(Part) -> writing_part(Part, Header, Fun) end) of
        {ok, Result} -> {ok, Result};
        {error, Reason} -> {error, ["the trace ", File, " could not be written: ", file:format_error(Reason)]}
    end.

writing_part(File, Header, Fun) ->
    %% Raw: it is this process that writes, and nobody in between.
    case file:open(File, [write, raw, binary, {delayed_write, ?BUFFER_BYTES, ?BUFFER_MS}]) of
        {ok, Device} -> writing_to(Device, Header, Fun);
        {error, _} = Error -> Error
    end.

writing_to(Device, Header, Fun) ->
    Events = counters:new(1, []),
    try
        ok = write(Device, atoll_sim_trace:header(Header)),
        Result = Fun(#{trace => fun(Now, Where, Sight) -> trace(Device, Events, Now, Where, Sight) end}),
        ok = write(Device, atoll_sim_trace:ending(counters:get(Events, 1))),
        ok = done(file:close(Device)),
        {ok, Result}
    catch
        throw:{?MODULE, Reason} -> {error, Reason}
    after
        file:close(Device)
    end.

trace(Device, Events, Now, Where, Sight) ->
    case atoll_sim_trace:what(Sight) of
        none ->
            ok;
        What ->
            ok = counters:add(Events, 1, 1),
            write(Device, atoll_sim_trace:line(Now, Where, What))
    end.

write(Device, Text) ->
    done(file:write(Device, Text)).

done(ok) -> ok;
done({error, Reason}) -> throw({?MODULE, Reason}).
