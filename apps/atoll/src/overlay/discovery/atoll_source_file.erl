%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The discovery source `file': a file of contacts.
%%
%% One contact a line: `name@host', and after it, if the node is reached at another
%% address than that of its name, `= address' or `= address:port'. An IPv6 address
%% with a port stands in brackets, and may do so without one. A `#' begins a
%% comment; empty lines do not count. A line that is wrong is told of by its number
%% and the others count.
%%
%% ```
%% app@app1.example.net                       # as the name says, by EPMD
%% app@app2.example.net = 203.0.113.7         # the EPMD at another address
%% app@app3.example.net = [2001:db8::7]:9100  # and a port, so no EPMD at all
%% '''
%%
%% The file is to be replaced, not written in place: whoever reads it meanwhile would
%% see a part. That does no harm, since nothing is forgotten that was read before.
-module(atoll_source_file).

-behaviour(atoll_source).

-export([check/1, read/1, deadline/1, label/1, format_error/1, parse/1]).

-include_lib("kernel/include/file.hrl").

%% A file of more bytes is not one of contacts.
-define(MAX_BYTES, 1048576).
%% So many wrong lines are told of one by one.
-define(MAX_LINES, 8).

-define(DEADLINE_MS, 5000).

-type reason() :: {file, file:posix() | badarg | terminated | system_limit | not_regular | {larger_than, pos_integer()}}.

-type complaint() ::
    %% A line, by its number.
    {bad_line, pos_integer(), no_node_name | no_address | no_port}
    %% So many lines more.
    | {more_bad_lines, pos_integer()}.

%% @private
-spec check(term()) -> ok | {error, bad_path}.
check(Path) ->
    case atoll_source:is_path(Path) of
        true -> ok;
        false -> {error, bad_path}
    end.

%% @doc The contacts in this file now.
-spec read(file:name_all()) -> atoll_source:reading().
read(Path) ->
    %% Raw, past the file server: a file system that hangs must not hold it up.
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{type = regular, size = Size}} when Size > ?MAX_BYTES ->
            {error, {file, {larger_than, ?MAX_BYTES}}};
        {ok, #file_info{type = regular}} ->
            read_regular(Path);
        {ok, #file_info{}} ->
            %% Opening a pipe would wait for its writer.
            {error, {file, not_regular}};
        {error, Reason} ->
            {error, {file, Reason}}
    end.

read_regular(Path) ->
    case file:open(Path, [read, raw, binary]) of
        {ok, File} ->
            Read = file:read(File, ?MAX_BYTES),
            _ = file:close(File),
            case Read of
                {ok, Text} -> parsed(Text);
                eof -> parsed(<<>>);
                {error, Reason} -> {error, {file, Reason}}
            end;
        {error, Reason} ->
            {error, {file, Reason}}
    end.

parsed(Text) ->
    {Contacts, Complaints} = parse(Text),
    {ok, Contacts, Complaints}.

%% @private
%% A reader that waits for a file is not killed: it would be gone and the runtime's thread
%% that waits for the file system still be taken, one more each time, until the node can
%% read no file at all.
-spec deadline(file:name_all()) -> atoll_source:deadline().
deadline(_Path) ->
    {leave, ?DEADLINE_MS}.

%% @private
-spec label(file:name_all()) -> unicode:chardata().
label(Path) ->
    io_lib:format("the file ~ts", [Path]).

%% @private
-spec format_error(bad_path | reason() | complaint()) -> unicode:chardata().
format_error(bad_path) ->
    "the path of a file must be a text that is not empty";
format_error({file, not_regular}) ->
    "it is no ordinary file";
format_error({file, {larger_than, Bytes}}) ->
    io_lib:format("it is larger than ~b bytes", [Bytes]);
format_error({file, Reason}) ->
    file:format_error(Reason);
format_error({bad_line, Number, no_node_name}) ->
    io_lib:format("line ~b has no name of a node, name@host", [Number]);
format_error({bad_line, Number, no_address}) ->
    io_lib:format("line ~b has no IP address after the =", [Number]);
format_error({bad_line, Number, no_port}) ->
    io_lib:format("line ~b has no port from 1 to 65535 after the address", [Number]);
format_error({more_bad_lines, Count}) ->
    io_lib:format("~b more lines are wrong", [Count]).

%% @doc The contacts in a text, in its order, and what is wrong with it.
-spec parse(binary()) -> {[atoll_source:contact()], [complaint()]}.
parse(Text) ->
    Lines = binary:split(Text, <<"\n">>, [global]),
    Parsed = [{N, line(Line)} || {N, Line} <- lists:zip(lists:seq(1, length(Lines)), Lines)],
    Bad = [{bad_line, N, Why} || {N, {error, Why}} <- Parsed],
    {[Contact || {_, {ok, Contact}} <- Parsed], first(Bad)}.

first(Bad) when length(Bad) =< ?MAX_LINES ->
    Bad;
first(Bad) ->
    {Some, More} = lists:split(?MAX_LINES, Bad),
    Some ++ [{more_bad_lines, length(More)}].

line(Line) ->
    [Code | _Comment] = binary:split(Line, <<"#">>),
    case [trim(Part) || Part <- binary:split(Code, <<"=">>)] of
        [<<>>] -> empty;
        [Name] -> contact(Name, {ok, #{}});
        [Name, Where] -> contact(Name, way(Where))
    end.

%% Bytes, since a text that is not UTF-8 is a wrong line and no crash.
trim(Part) ->
    re:replace(Part, "^[ \t\r]+|[ \t\r]+$", "", [global, {return, binary}]).

contact(Name, Way) ->
    case {atoll_source_names:is_name(Name), Way} of
        {true, {ok, Known}} -> {ok, {Name, Known}};
        {true, {error, _} = Error} -> Error;
        {false, _} -> {error, no_node_name}
    end.

%% [V6]:Port, [V6], V4:Port or V4.
way(<<"[", Rest/binary>>) ->
    case binary:split(Rest, <<"]">>) of
        [Address, <<>>] -> way(fun inet:parse_ipv6strict_address/1, Address, none);
        [Address, <<":", Port/binary>>] -> way(fun inet:parse_ipv6strict_address/1, Address, {port, Port});
        _ -> {error, no_address}
    end;
way(Text) ->
    case binary:split(Text, <<":">>) of
        [Address] -> way(fun inet:parse_ipv4strict_address/1, Address, none);
        [Address, Port] -> way(fun inet:parse_ipv4strict_address/1, Address, {port, Port})
    end.

way(Parse, Text, Port) ->
    case Parse(binary_to_list(Text)) of
        {ok, Address} -> with_port(#{address => Address}, Port);
        {error, einval} -> {error, no_address}
    end.

with_port(Way, none) ->
    {ok, Way};
with_port(Way, {port, Text}) ->
    try binary_to_integer(Text) of
        Port when Port >= 1, Port =< 65535 -> {ok, Way#{port => Port}};
        _ -> {error, no_port}
    catch
        error:badarg -> {error, no_port}
    end.
