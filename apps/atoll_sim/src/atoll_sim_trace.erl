%% SPDX-License-Identifier: Apache-2.0
%% @doc The trace: what happened in a cluster, as a text file that explains and
%% repeats itself.
%%
%% The first line is `{atoll_trace, Version, Header}.', a map that says what ran and
%% which command repeats it; then comes one event a line, `{Ms, Where, What}.',
%% in the order in which they happened; and the last line, `{atoll_trace_end,
%% Events}.', says how many these are. Terms are written by {@link
%% atoll_sim_term}, so one seed gives one file, byte by byte. A file without its
%% last line, or with another number of events, was cut: what is left of it is
%% read, and it is told from a whole one.
-module(atoll_sim_trace).

-export([header/1, line/3, ending/1, what/1, read/1, fold/3, format_error/1]).
-export([state_at/2, empty/0, replay/2, picture/1]).

-export_type([header/0, event/0, what/0, state/0, picture/0, error/0]).

-type header() :: #{
    %% The command that gives this trace again.
    repeat => iodata(),
    seed => integer(),
    nodes => pos_integer(),
    strategy => atom(),
    atom() => term()
}.

-type event() :: {Ms :: non_neg_integer(), node() | world, what()}.

-type what() ::
    %% The first time, or again.
    {started, Incarnation :: pos_integer()}
    | killed
    | left
    | paused
    | stalled
    | resumed
    | {slow, Ms :: non_neg_integer()}
    | {link_up, node()}
    | {link_down, node()}
    | {neighbour_up, node()}
    | {neighbour_down, node(), Why :: term()}
    | {suspect, node()}
    | {cleared, node()}
    | {dead, node(), Incarnation :: pos_integer()}
    %% It was delivered here; the identity is the payload.
    | {broadcast, From :: node(), Id :: term()}
    | {missed, From :: node(), Count :: pos_integer()}
    %% Something else that the node's overlay or whoever drives the world said.
    | {notice, term()}
    %% A step of a fault script.
    | {fault, term()}
    | {sent, To :: node(), term()}
    | {lost, To :: node(), term()}
    | {got, From :: node(), term()}.

-type picture() :: #{node() => {alive | paused | dead, Neighbours :: [node()]}}.

-opaque state() :: #{node() => {alive | paused | dead, #{node() => []}}}.

-type error() :: {file:filename_all(), Line :: non_neg_integer(), reason()}.
%% Line 0 is no line of the file.

-type reason() ::
    {unreadable, file:posix() | badarg | terminated | system_limit}
    | no_trace
    | {version, term()}
    | {bad_header, Key :: term()}
    | {syntax, iolist()}
    | cut_off
    | {miscounted, Events :: non_neg_integer(), Says :: non_neg_integer()}
    | no_event
    | after_end
    | {backwards, integer(), integer()}
    | too_long.

-define(VERSION, 1).
%% What is kept in memory at a time.
-define(MAX_EVENTS, 2000000).
%% A line that is longer has no end.
-define(MAX_LINE, 1000000).

%% Writing

%% @doc The first line.
-spec header(header()) -> iolist().
header(#{repeat := Repeat} = Header) ->
    Written = Header#{repeat := unicode:characters_to_binary(Repeat)},
    ["{atoll_trace,", integer_to_list(?VERSION), $,, atoll_sim_term:text(Written), "}.\n"];
header(Header) ->
    header(Header#{repeat => ""}).

%% @doc The line of an event.
-spec line(non_neg_integer(), node() | world, what()) -> iolist().
line(Ms, Where, What) ->
    [${, integer_to_binary(Ms), $,, atoll_sim_term:text(Where), $,, atoll_sim_term:text(What), "}.\n"].

%% @doc The last line, after so many events.
-spec ending(non_neg_integer()) -> iolist().
ending(Events) ->
    ["{atoll_trace_end,", integer_to_binary(Events), "}.\n"].

%% @doc What a watcher of {@link atoll_sim_world} saw, as the what of an event;
%% `none' for what has no place in a trace.
-spec what(atoll_sim_world:sight()) -> what() | none.
what({deed, _}) -> none;
what({reply, _, _}) -> none;
what({room, _, _}) -> none;
what({note, Remark}) -> notice(Remark);
what({notice, Notice}) -> notice(Notice);
what(Sight) -> Sight.

notice({neighbour_up, _} = Notice) -> Notice;
notice({neighbour_down, _, _} = Notice) -> Notice;
notice({suspect, Peer, _Ms}) -> {suspect, Peer};
notice({cleared, _} = Notice) -> Notice;
notice({dead, _, _} = Notice) -> Notice;
notice({broadcast, _, _} = Notice) -> Notice;
notice({missed, _, _} = Notice) -> Notice;
notice({fault, _} = Notice) -> Notice;
notice(left) -> left;
notice(Notice) -> {notice, Notice}.

%% Reading

%% @doc The header and all events of a file, as long as they are not more than
%% two million; a longer one is to be folded over. Of a file that was cut, what
%% there is, and what is wrong with the rest.
-spec read(file:filename_all()) ->
    {ok, header(), [event()]} | {cut, header(), [event()], error()} | {error, error()}.
read(File) ->
    Keep = fun
        (_Event, {?MAX_EVENTS, _}) -> {stop, too_long};
        (Event, {Count, Events}) -> {Count + 1, [Event | Events]}
    end,
    case fold(Keep, {0, []}, File) of
        {ok, _Header, {stop, too_long}} -> {error, {File, 0, too_long}};
        {ok, Header, {_, Events}} -> {ok, Header, lists:reverse(Events)};
        {cut, Header, {_, Events}, Error} -> {cut, Header, lists:reverse(Events), Error};
        {error, _} = Error -> Error
    end.

%% @doc Folds over the events of a file, one line in memory at a time. A fun that
%% returns `{stop, _}' is called no more.
-spec fold(fun((event(), Acc) -> Acc | {stop, term()}), Acc, file:filename_all()) ->
    {ok, header(), Acc | {stop, term()}} | {cut, header(), Acc, error()} | {error, error()}.
fold(Fun, Acc, File) ->
    case file:open(File, [read, raw, binary, {read_ahead, 65536}]) of
        {ok, Device} ->
            try
                first(file:read_line(Device), Device, Fun, Acc)
            of
                {ok, Header, Result} -> {ok, Header, Result};
                {cut, Header, Result, Line, Reason} -> {cut, Header, Result, {File, Line, Reason}};
                {error, Line, Reason} -> {error, {File, Line, Reason}}
            after
                file:close(Device)
            end;
        {error, Reason} ->
            {error, {File, 0, {unreadable, Reason}}}
    end.

first({ok, Text}, Device, Fun, Acc) ->
    case term(Text) of
        {ok, {atoll_trace, ?VERSION, Header}} when is_map(Header) ->
            case [Key || {Key, Value} <- maps:to_list(Header), not is_fact(Key, Value)] of
                [] -> lines(file:read_line(Device), 2, 0, Device, Header, Fun, Acc);
                Strange -> {error, 1, {bad_header, lists:min(Strange)}}
            end;
        {ok, {atoll_trace, Version, _}} ->
            {error, 1, {version, Version}};
        _ ->
            {error, 1, no_trace}
    end;
first(eof, _Device, _Fun, _Acc) ->
    {error, 1, no_trace};
first({error, Reason}, _Device, _Fun, _Acc) ->
    {error, 0, {unreadable, Reason}}.

lines({ok, Text}, Line, Last, Device, Header, Fun, Acc) ->
    case term(Text) of
        {ok, {Ms, Where, What} = Event} when is_integer(Ms), Ms >= Last, is_atom(Where) ->
            case is_what(What) of
                true -> next(Fun(Event, Acc), Line + 1, Ms, Device, Header, Fun);
                false -> {error, Line, no_event}
            end;
        {ok, {Ms, Where, _}} when is_integer(Ms), is_atom(Where) ->
            {error, Line, {backwards, Last, Ms}};
        {ok, {atoll_trace_end, Events}} when is_integer(Events) ->
            ended(file:read_line(Device), Events, Line, Header, Acc);
        {ok, _} ->
            {error, Line, no_event};
        {error, cut_off} ->
            {cut, Header, Acc, Line, cut_off};
        {error, Reason} ->
            {error, Line, Reason}
    end;
lines(eof, Line, _Last, _Device, Header, _Fun, Acc) ->
    {cut, Header, Acc, Line, cut_off};
lines({error, Reason}, Line, _Last, _Device, _Header, _Fun, _Acc) ->
    {error, Line, {unreadable, Reason}}.

%% Before the line of the end are the header's and one for each event.
ended(eof, Events, Line, Header, Acc) when Events =:= Line - 2 ->
    {ok, Header, Acc};
ended(eof, Events, Line, Header, Acc) ->
    {cut, Header, Acc, Line, {miscounted, Line - 2, Events}};
ended({ok, _}, _Events, Line, _Header, _Acc) ->
    {error, Line + 1, after_end};
ended({error, Reason}, _Events, Line, _Header, _Acc) ->
    {error, Line, {unreadable, Reason}}.

next({stop, _} = Stop, _Line, _Last, _Device, Header, _Fun) ->
    {ok, Header, Stop};
next(Acc, Line, Last, Device, Header, Fun) ->
    lines(file:read_line(Device), Line, Last, Device, Header, Fun, Acc).

term(Text) when byte_size(Text) > ?MAX_LINE ->
    {error, {syntax, "the line is too long"}};
term(Text) ->
    case binary:last(Text) of
        $\n -> parsed(unicode:characters_to_list(Text));
        _ -> {error, cut_off}
    end.

parsed(Text) when is_list(Text) ->
    case erl_scan:string(Text) of
        {ok, Tokens, _} ->
            case erl_parse:parse_term(Tokens) of
                {ok, Term} -> {ok, Term};
                {error, {_, Module, What}} -> {error, {syntax, Module:format_error(What)}}
            end;
        {error, {_, Module, What}, _} ->
            {error, {syntax, Module:format_error(What)}}
    end;
parsed(_) ->
    {error, {syntax, "it is not UTF-8"}}.

%% Of what ran. A repeat is written as a binary, whatever it was.
is_fact(repeat, Repeat) -> is_binary(Repeat) andalso is_list(unicode:characters_to_list(Repeat));
is_fact(seed, Seed) -> is_integer(Seed);
is_fact(nodes, Nodes) -> is_integer(Nodes) andalso Nodes > 0;
is_fact(strategy, Strategy) -> is_atom(Strategy);
is_fact(Key, _) -> is_atom(Key).

is_what(killed) -> true;
is_what(left) -> true;
is_what(paused) -> true;
is_what(stalled) -> true;
is_what(resumed) -> true;
is_what({started, N}) -> is_integer(N);
is_what({slow, Ms}) -> is_integer(Ms);
is_what({Name, _}) when Name =:= notice; Name =:= fault -> true;
is_what({Name, Peer}) ->
    is_atom(Peer) andalso
        lists:member(Name, [link_up, link_down, neighbour_up, suspect, cleared]);
is_what({Name, Peer, _}) ->
    is_atom(Peer) andalso
        lists:member(Name, [neighbour_down, dead, broadcast, missed, sent, lost, got]);
is_what(_) -> false.

%% @doc One sentence for an error, which begins with where it is.
-spec format_error(error()) -> unicode:chardata().
format_error({File, 0, Reason}) ->
    io_lib:format("~ts: ~ts", [File, reason(Reason)]);
format_error({File, Line, Reason}) ->
    io_lib:format("~ts:~b: ~ts", [File, Line, reason(Reason)]).

reason({unreadable, Reason}) -> ["it cannot be read: ", file:format_error(Reason)];
reason(no_trace) -> "this is no trace: its first line is not {atoll_trace, Version, Header}.";
reason({version, Version}) ->
    ["this trace is of version ", atoll_sim_term:text(Version), ", and only version 1 can be read"];
reason({bad_header, Key}) ->
    ["the header of a trace has no such ", atoll_sim_step:short(Key)];
reason({syntax, What}) -> ["this is no Erlang term: ", What];
reason(cut_off) -> "the trace is cut off here";
reason({miscounted, Events, Says}) ->
    io_lib:format("the trace was cut: its end counts ~b events, and ~b are there", [Says, Events]);
reason(after_end) -> "the trace has ended before this line";
reason(no_event) -> "this is no event of a trace";
reason({backwards, Last, Ms}) ->
    io_lib:format("times do not go backwards, and ~b ms comes after ~b ms", [Ms, Last]);
reason(too_long) -> io_lib:format("it has more than ~b events", [?MAX_EVENTS]).

%% Replay

%% @doc Who was there at a moment, after all that happened in that millisecond, and
%% the neighbours that each named, in the order in which people count.
-spec state_at(Ms :: non_neg_integer(), [event()]) -> picture().
state_at(Ms, Events) ->
    Before = lists:takewhile(fun({At, _, _}) -> At =< Ms end, Events),
    picture(lists:foldl(fun replay/2, empty(), Before)).

%% @doc Before the first event.
-spec empty() -> state().
empty() -> #{}.

%% @doc After one more event.
-spec replay(event(), state()) -> state().
replay({_Ms, Node, {started, _}}, State) -> State#{Node => {alive, #{}}};
replay({_Ms, Node, killed}, State) -> State#{Node => {dead, #{}}};
replay({_Ms, Node, left}, State) -> State#{Node => {dead, #{}}};
replay({_Ms, Node, Still}, State) when Still =:= paused; Still =:= stalled -> status(paused, Node, State);
replay({_Ms, Node, resumed}, State) -> status(alive, Node, State);
replay({_Ms, Node, {neighbour_up, Peer}}, State) ->
    {Status, Peers} = node(Node, State),
    State#{Node => {Status, Peers#{Peer => []}}};
replay({_Ms, Node, {neighbour_down, Peer, _}}, State) ->
    {Status, Peers} = node(Node, State),
    State#{Node => {Status, maps:remove(Peer, Peers)}};
replay(_Event, State) ->
    State.

status(Status, Node, State) ->
    {_, Peers} = node(Node, State),
    State#{Node => {Status, Peers}}.

%% A trace of part of the nodes' life may not have their start.
node(Node, State) -> maps:get(Node, State, {alive, #{}}).

%% @doc The state, to be looked at.
-spec picture(state()) -> picture().
picture(State) ->
    maps:map(fun(_, {Status, Peers}) -> {Status, by_number(maps:keys(Peers))} end, State).

by_number(Names) ->
    [Name || {_, Name} <- lists:sort([{atoll_sim_term:natural(Name), Name} || Name <- Names])].
