%% @doc What can be wrong with a discovery source that is read, and the words for it.
-module(atoll_source_reason).

-export([format/1]).

-export_type([reason/0, complaint/0, trouble/0]).

-type reason() ::
    %% No answer within so many milliseconds.
    {late, pos_integer()}
    %% A file that cannot be read, or is none.
    | {file, file:posix() | badarg | terminated | system_limit | not_regular | {larger_than, pos_integer()}}
    %% What the resolver said.
    | {dns, term()}
    %% The reader itself failed.
    | {crashed, term()}.
%% Nothing was read.

-type complaint() ::
    %% A line of a file, by its number.
    {bad_line, pos_integer(), no_node_name | no_address | no_port}
    %% So many lines more.
    | {more_bad_lines, pos_integer()}
    %% The DNS name is not there, or has no records of that type.
    | {no_records, a | aaaa | srv}
    %% So many records that make no name of a node.
    | {bad_records, pos_integer()}
    %% Names beyond so many, which were refused.
    | {names_beyond, pos_integer()}.
%% What was read beside it counts.

-type trouble() :: {failing, reason()} | {incomplete, [complaint(), ...]}.

%% @doc Half a sentence for it, whose beginning is the source.
-spec format(trouble()) -> unicode:chardata().
format({failing, Reason}) -> ["cannot be read: ", reason(Reason)];
format({incomplete, Complaints}) -> ["is not all of use: ", lists:join("; ", lists:map(fun complaint/1, Complaints))].

reason({late, Ms}) ->
    io_lib:format("there was no answer within ~b ms", [Ms]);
reason({file, not_regular}) ->
    "it is no ordinary file";
reason({file, {larger_than, Bytes}}) ->
    io_lib:format("it is larger than ~b bytes", [Bytes]);
reason({file, Reason}) ->
    file:format_error(Reason);
reason({dns, timeout}) ->
    "no name server answered in time";
reason({dns, formerr}) ->
    "what the name server answered cannot be understood";
reason({dns, Reason}) ->
    io_lib:format("the name servers' answer was ~tp", [Reason]);
reason({crashed, Reason}) ->
    io_lib:format("the reader ended with ~tp", [Reason]).

complaint({bad_line, Number, no_node_name}) ->
    io_lib:format("line ~b has no name of a node, name@host", [Number]);
complaint({bad_line, Number, no_address}) ->
    io_lib:format("line ~b has no IP address after the =", [Number]);
complaint({bad_line, Number, no_port}) ->
    io_lib:format("line ~b has no port from 1 to 65535 after the address", [Number]);
complaint({more_bad_lines, Count}) ->
    io_lib:format("~b more lines are wrong", [Count]);
complaint({no_records, Type}) ->
    io_lib:format("the name is not there, or has no records of type ~s", [string:uppercase(atom_to_list(Type))]);
complaint({bad_records, Count}) ->
    io_lib:format("~b records give no name of a node", [Count]);
complaint({names_beyond, Max}) ->
    io_lib:format("this node takes ~b names from all sources, and the others are refused", [Max]).
