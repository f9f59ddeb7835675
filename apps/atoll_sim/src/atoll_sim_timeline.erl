%% SPDX-License-Identifier: Apache-2.0
%% @doc A trace as a time line for people: what ran and how to repeat it, then
%% what happened, about a hundred columns wide.
%%
%% Few events stand one a line. Many are counted in spans of time, of a length
%% that makes the lines as few as asked for; a step of a fault script always has a
%% line of its own (the first five hundred do), and a span ends there.
-module(atoll_sim_timeline).

-export([text/3]).

-export_type([options/0]).

-type options() :: #{
    %% What happened from here to there, both included. Default: all of it.
    from => non_neg_integer(),
    to => non_neg_integer(),
    %% What happened at this node, or to it at others; and the faults.
    node => node(),
    %% About how many lines. Default 60.
    lines => pos_integer()
}.

-define(LINES, 60).
-define(WIDTH, 100).
-define(MAX_FAULTS, 500).
%% Cells of the bar that shows how much happened.
-define(BAR, 8).
%% Where the words begin in a line of a span.
-define(INDENT, 42).

-define(KINDS, [
    started, restarted, killed, left, paused, stalled, resumed, slow, dead, suspect, cleared,
    neighbour_up, neighbour_down, link_up, link_down, broadcast, missed, sent, lost, got, notice
]).

%% @doc The time line.
-spec text(atoll_sim_trace:header(), [atoll_sim_trace:event()], options()) -> unicode:chardata().
text(Header, Events, Options) ->
    From = maps:get(from, Options, 0),
    To = maps:get(to, Options, infinity),
    InTime = [Event || {Ms, _, _} = Event <- Events, Ms >= From, Ms =< To],
    Shown = [Event || Event <- InTime, concerns(Options, Event)],
    [
        head(Header, Events, Shown, Options),
        case length(Shown) =< maps:get(lines, Options, ?LINES) of
            true -> one_by_one(Shown);
            false -> spans(Shown, Events, Options)
        end
    ].

concerns(#{node := Node}, {_, Where, What}) ->
    Where =:= Node orelse is_fault(What) orelse
        (is_tuple(What) andalso tuple_size(What) > 1 andalso element(2, What) =:= Node);
concerns(#{}, _Event) ->
    true.

is_fault({fault, _}) -> true;
is_fault(_) -> false.

%% The head

head(Header, Events, Shown, Options) ->
    [
        ["trace   ", lists:join(", ", ran(Header)), "\n"],
        [["repeat  ", Repeat, "\n"] || #{repeat := Repeat} <- [Header], iolist_size(Repeat) > 0],
        ["shows   ", shows(length(Events), length(Shown), Options), "\n\n"]
    ].

ran(Header) ->
    Main = [
        [atoll_sim_term:text(Strategy)] || #{strategy := Strategy} <- [Header]
    ] ++ [
        [atoll_sim_term:text(map_get(Key, Header)), [$\s, Word]]
     || {Key, Word} <- [{nodes, "nodes"}], is_map_key(Key, Header)
    ] ++ [
        ["seed ", atoll_sim_term:text(Seed)] || #{seed := Seed} <- [Header]
    ],
    Rest = lists:sort([
        [atom_to_list(Key), $\s, atoll_sim_term:text(Value)]
     || {Key, Value} <- maps:to_list(maps:without([strategy, nodes, seed, repeat], Header))
    ]),
    case Main ++ Rest of
        [] -> ["of something"];
        Parts -> Parts
    end.

shows(All, All, _Options) ->
    [count(All), " events"];
shows(All, Shown, Options) ->
    [
        [count(Shown), " of ", count(All), " events"],
        [[", from ", clock(Ms), " s"] || #{from := Ms} <- [Options]],
        [[", to ", clock(Ms), " s"] || #{to := Ms} <- [Options]],
        [[", of ", atoll_sim_term:text(Node)] || #{node := Node} <- [Options]]
    ].

%% One by one

one_by_one(Events) ->
    Names = [string:length(atoll_sim_term:text(Where)) || {_, Where, What} <- Events, not is_fault(What)],
    Width = lists:max([4 | Names]),
    [
        ["    time s  ", string:pad("node", Width), "  what\n"]
        | [event(Event, Width) || Event <- Events]
    ].

event({Ms, world, {fault, Step}}, _Width) ->
    fault(Ms, Step);
event({Ms, Where, What}, Width) ->
    Name = string:pad(atoll_sim_term:text(Where), Width),
    [time(Ms), "  ", Name, "  ", cut(sentence(What), ?WIDTH - 14 - Width), $\n].

sentence({started, N}) -> ["started, incarnation ", integer_to_list(N)];
sentence({slow, 0}) -> "quick again";
sentence({slow, Ms}) -> io_lib:format("slow, ~b ms an event", [Ms]);
sentence({link_up, Peer}) -> ["link with ", text(Peer)];
sentence({link_down, Peer}) -> ["no link with ", text(Peer)];
sentence({neighbour_up, Peer}) -> ["+ neighbour ", text(Peer)];
sentence({neighbour_down, Peer, Why}) -> ["- neighbour ", text(Peer), ", ", text(Why)];
sentence({suspect, Peer}) -> ["suspects ", text(Peer)];
sentence({cleared, Peer}) -> ["clears ", text(Peer)];
sentence({dead, Peer, N}) -> ["declares ", text(Peer), " dead, incarnation ", text(N)];
sentence({broadcast, From, Id}) -> ["delivers ", text(Id), " from ", text(From)];
sentence({missed, From, Count}) -> ["missed ", text(Count), " from ", text(From)];
sentence({sent, To, Message}) -> ["-> ", text(To), "  ", text(Message)];
sentence({lost, To, Message}) -> ["-x ", text(To), "  ", text(Message)];
sentence({got, From, Message}) -> ["<- ", text(From), "  ", text(Message)];
sentence({notice, Notice}) -> ["says ", text(Notice)];
sentence(Word) -> atom_to_list(Word).

fault(Ms, Step) ->
    [time(Ms), "  ", cut(["==== ", text(Step)], ?WIDTH - 17), " ====\n"].

text(Term) -> atoll_sim_term:text(Term).

%% In spans

-record(span, {
    from :: non_neg_integer(),
    to :: non_neg_integer(),
    kinds :: #{atom() => pos_integer()},
    events :: pos_integer(),
    %% Nodes that run at its end.
    alive :: non_neg_integer()
}).

-record(state, {
    length :: pos_integer(),
    options :: options(),
    %% Whether each node that was heard of runs.
    nodes = #{} :: #{node() => boolean()},
    alive = 0 :: non_neg_integer(),
    span = none :: none | #span{},
    faults = 0 :: non_neg_integer(),
    rows = [] :: [#span{} | {fault, non_neg_integer(), term()}]
}).

spans(Shown, Events, Options) ->
    {First, Last} = {element(1, hd(Shown)), element(1, lists:last(Shown))},
    Faults = length([Step || {_, _, {fault, Step}} <- Shown]),
    Lines = max(5, maps:get(lines, Options, ?LINES) - 2 * min(Faults, ?MAX_FAULTS)),
    Length = nice((Last - First) div Lines + 1, 1),
    Done = lists:foldl(fun step/2, #state{length = Length, options = Options}, Events),
    Rows = lists:reverse((flush(Done))#state.rows),
    Most = lists:max([1 | [N || #span{events = N} <- Rows]]),
    [
        "    from s          to   alive   events\n",
        [row(Row, Most) || Row <- Rows],
        [
            io_lib:format("and ~b steps of the script more~n", [Faults - ?MAX_FAULTS])
         || Faults > ?MAX_FAULTS
        ]
    ].

%% 1, 2 or 5 times a power of ten, from Ms on.
nice(Ms, Unit) when Ms =< Unit -> Unit;
nice(Ms, Unit) when Ms =< 2 * Unit -> 2 * Unit;
nice(Ms, Unit) when Ms =< 5 * Unit -> 5 * Unit;
nice(Ms, Unit) -> nice(Ms, 10 * Unit).

step({Ms, _, _} = Event, #state{options = Options} = State) ->
    InTime = Ms >= maps:get(from, Options, 0) andalso Ms =< maps:get(to, Options, infinity),
    case InTime andalso concerns(Options, Event) of
        true -> living(Event, shown(Event, over(Ms, State)));
        false -> living(Event, State)
    end.

%% A span ends where the next one begins.
over(Ms, #state{span = #span{from = From}, length = Length} = State) when Ms div Length > From div Length ->
    flush(State);
over(_Ms, State) ->
    State.

shown({Ms, _, {fault, Step}}, State0) ->
    #state{faults = Faults, rows = Rows} = State = flush(State0),
    case Faults < ?MAX_FAULTS of
        true -> State#state{faults = Faults + 1, rows = [{fault, Ms, Step} | Rows]};
        false -> State
    end;
shown({Ms, _, _} = Event, #state{span = none} = State) ->
    Span = #span{from = Ms, to = Ms, kinds = #{kind(Event, State) => 1}, events = 1, alive = 0},
    State#state{span = Span};
shown({Ms, _, _} = Event, #state{span = #span{kinds = Kinds0, events = N} = Span} = State) ->
    Kinds = maps:update_with(kind(Event, State), fun(Count) -> Count + 1 end, 1, Kinds0),
    State#state{span = Span#span{to = Ms, kinds = Kinds, events = N + 1}}.

flush(#state{span = none} = State) ->
    State;
flush(#state{span = Span, alive = Alive, rows = Rows} = State) ->
    State#state{span = none, rows = [Span#span{alive = Alive} | Rows]}.

kind({_, Node, {started, _}}, #state{nodes = Nodes}) when is_map_key(Node, Nodes) -> restarted;
kind({_, _, What}, _State) when is_tuple(What) -> element(1, What);
kind({_, _, What}, _State) -> What.

living({_, Node, {started, _}}, State) -> runs(Node, true, State);
living({_, Node, killed}, State) -> runs(Node, false, State);
living({_, Node, left}, State) -> runs(Node, false, State);
living(_Event, State) -> State.

runs(Node, Runs, #state{nodes = Nodes, alive = Alive} = State) ->
    Change =
        case {maps:get(Node, Nodes, false), Runs} of
            {Runs, Runs} -> 0;
            {false, true} -> 1;
            {true, false} -> -1
        end,
    State#state{nodes = Nodes#{Node => Runs}, alive = max(0, Alive + Change)}.

row({fault, Ms, Step}, _Most) ->
    fault(Ms, Step);
row(#span{from = From, to = To, kinds = Kinds, events = Events, alive = Alive}, Most) ->
    Words = [[count(N), $\s, phrase(Kind)] || Kind <- ?KINDS, #{Kind := N} <- [Kinds]],
    [First | Rest] = wrapped(Words),
    [
        [
            time(From), "  ", time(To), "  ", string:pad(count(Alive), 6, leading), "  ",
            string:pad(count(Events), 7, leading), " ", bar(Events, Most), "  ", First, $\n
        ]
        | [[lists:duplicate(?INDENT + ?BAR, $\s), Line, $\n] || Line <- Rest]
    ].

phrase(neighbour_up) -> "+neighbour";
phrase(neighbour_down) -> "-neighbour";
phrase(link_up) -> "+link";
phrase(link_down) -> "-link";
phrase(dead) -> "declared dead";
phrase(suspect) -> "suspected";
phrase(broadcast) -> "delivered";
phrase(Kind) -> atom_to_list(Kind).

%% As many words in a line as fit.
wrapped(Words) ->
    {Lines, Line} = lists:foldl(
        fun(Word, {Lines, Line}) ->
            Joined = join(Line, Word),
            case string:length(Joined) > ?WIDTH - ?INDENT - ?BAR of
                true -> {[Line | Lines], Word};
                false -> {Lines, Joined}
            end
        end,
        {[], ""},
        Words
    ),
    lists:reverse(Lines, [Line]).

join("", Word) -> Word;
join(Line, Word) -> [Line, ", ", Word].

%% A bar of eighths of cells; something is never nothing.
bar(Events, Most) ->
    Eighths = max(1, round(8 * ?BAR * Events / Most)),
    Part = [[16#2590 - Eighths rem 8] || Eighths rem 8 > 0],
    string:pad([lists:duplicate(Eighths div 8, 16#2588), Part], ?BAR).

%% Numbers and times

time(Ms) -> string:pad(clock(Ms), 10, leading).

clock(Ms) -> io_lib:format("~b.~3..0b", [Ms div 1000, Ms rem 1000]).

%% With a comma every three digits.
count(N) ->
    Digits = integer_to_list(N),
    case length(Digits) > 3 of
        true ->
            {High, Low} = lists:split(length(Digits) - 3, Digits),
            [count(list_to_integer(High)), $,, Low];
        false ->
            Digits
    end.

cut(Text, Width) ->
    case string:length(Text) > Width of
        true -> [string:slice(Text, 0, Width - 3), "..."];
        false -> Text
    end.
