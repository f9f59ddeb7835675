%% SPDX-License-Identifier: Apache-2.0
%% @doc Clients as load, very many, and what is said of what they got. Each checks at
%% its end that what it got is a status, and then what the history says that came after it, without a gap and in order.
%%
%% Some hundreds of them share a process ({@link matchstream_viewer}). They come from several addresses of this machine, since one address has some
%% twenty-eight thousand ports.
-module(matchstream_viewers).
-behaviour(gen_server).

-export([start/1, start_alone/1, connected/2, ended/2, judge/2, verdict/3, merge/1, addresses/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0, viewers/0, truth/0, verdict/0]).

-type options() :: #{
    host := inet:ip_address(),
    ports := [inet:port_number(), ...],
    match := matchstream_match:id() | first,
    count := pos_integer(),
    %% so many connect at a time
    at_once := pos_integer(),
    %% from which addresses, by turns
    from => [inet:ip_address(), ...],
    does => matchstream_viewer:does(),
    greeted => boolean()
}.

-type viewers() :: pid().

-type truth() :: #{about := matchstream_match:about(), history := [matchstream_match:event()], sent := #{pos_integer() => integer()}}.
%% The whole history of a match, and when the watcher has sent which event.

-type verdict() :: #{
    clients := non_neg_integer(), connected := non_neg_integer(), complete := non_neg_integer(),
    %% clients that got another sequence than the history has
    wrong := non_neg_integer(),
    %% ended before the last event, or never began
    cut := non_neg_integer(), refused := non_neg_integer(), unconnected := non_neg_integer(),
    %% how often clients have connected again
    again := non_neg_integer(),
    received := non_neg_integer(),
    %% from when a watcher sent an event to when a client had it, microseconds, sorted
    latencies := [integer()]
}.

-record(state, {
    groups :: [pid()],
    connected = #{} :: #{pid() => {non_neg_integer(), non_neg_integer()}},
    ended = #{} :: #{pid() => [matchstream_viewer:seen()]},
    %% who waits for all to have connected, or ended
    waiting = [] :: [{connected | ended, gen_server:from()}]
}).

-define(GROUP, 200).
-define(GIVE_UP_MS, 20000).
%% So many latencies are told by one VM to another.
-define(TOLD, 10000).

%% @doc Begins to connect them; they end with the caller.
-spec start(options()) -> viewers().
start(Options) ->
    {ok, Viewers} = gen_server:start_link(?MODULE, Options, []),
    Viewers.

%% @doc The same, and they end with their VM: for a call from another one.
-spec start_alone(options()) -> viewers().
start_alone(Options) ->
    {ok, Viewers} = gen_server:start(?MODULE, Options, []),
    Viewers.

%% @doc Waits until each has connected, or could not; how many have.
-spec connected(viewers(), timeout()) -> {ok, {Connected :: non_neg_integer(), Failed :: non_neg_integer()}} | timeout.
connected(Viewers, Ms) -> asked(Viewers, connected, Ms).

%% @doc Waits until the service has closed each, and gives up those that it has not closed by then; what they have seen.
-spec ended(viewers(), timeout()) -> {ok, [matchstream_viewer:seen()]} | timeout.
ended(Viewers, Ms) ->
    case asked(Viewers, ended, Ms) of
        timeout ->
            ok = gen_server:cast(Viewers, give_up),
            asked(Viewers, ended, ?GIVE_UP_MS);
        Ended -> Ended
    end.

asked(Viewers, What, Ms) ->
    try {ok, gen_server:call(Viewers, What, Ms)}
    catch exit:{timeout, _} -> timeout
    end.

%% @private
-spec init(options()) -> {ok, #state{}}.
init(#{count := Count, at_once := AtOnce} = Options) ->
    Gate = spawn_link(fun() -> gate(AtOnce) end),
    %% A process connects its clients one after the other, so there are as many processes as are to connect at a time.
    Size = max(1, min(?GROUP, Count div AtOnce)),
    {ok, #state{groups = [matchstream_viewer:group(Gate, lists:seq(First, min(First + Size - 1, Count)), Options) || First <- lists:seq(1, Count, Size)]}}.

gate(0) -> receive done -> gate(1) end;
gate(Free) ->
    receive
        {may, Pid} -> Pid ! {self(), go}, gate(Free - 1);
        done -> gate(Free + 1)
    end.

%% @private
-spec handle_call(connected | ended, gen_server:from(), #state{}) -> {noreply, #state{}}.
handle_call(What, From, #state{waiting = Waiting} = S) -> {noreply, answered(S#state{waiting = [{What, From} | Waiting]})}.

%% @private
-spec handle_cast(give_up, #state{}) -> {noreply, #state{}}.
handle_cast(give_up, #state{groups = Groups} = S) ->
    _ = [Group ! give_up || Group <- Groups],
    {noreply, S}.

%% @private
-spec handle_info({pid(), connected, non_neg_integer(), non_neg_integer()} | {pid(), ended, [matchstream_viewer:seen()]}, #state{}) -> {noreply, #state{}}.
handle_info({Group, connected, N, Failed}, #state{connected = Connected} = S) -> {noreply, answered(S#state{connected = Connected#{Group => {N, Failed}}})};
handle_info({Group, ended, Seen}, #state{ended = Ended} = S) -> {noreply, answered(S#state{ended = Ended#{Group => Seen}})}.

answered(#state{groups = Groups, connected = Connected, ended = Ended, waiting = Waiting} = S) ->
    All = length(Groups),
    S#state{waiting = lists:filter(
        fun({connected, From}) when map_size(Connected) =:= All ->
                {N, Failed} = lists:unzip(maps:values(Connected)),
                gen_server:reply(From, {lists:sum(N), lists:sum(Failed)}),
                false;
           ({ended, From}) when map_size(Ended) =:= All ->
                gen_server:reply(From, lists:append(maps:values(Ended))),
                false;
           (_) -> true
        end, Waiting)}.

%% @doc Waits as {@link ended/2} does, and says what came of it, with some of the latencies: evenly chosen, the longest is among them.
-spec verdict(viewers(), truth(), timeout()) -> {ok, verdict()} | timeout.
verdict(Viewers, Truth, Ms) ->
    case ended(Viewers, Ms) of
        {ok, Seen} ->
            #{latencies := Latencies} = Verdict = judge(Seen, Truth),
            {ok, Verdict#{latencies := thinned(list_to_tuple(Latencies))}};
        timeout -> timeout
    end.

thinned(Sorted) when tuple_size(Sorted) =< ?TOLD -> tuple_to_list(Sorted);
thinned(Sorted) -> [element(N * tuple_size(Sorted) div ?TOLD, Sorted) || N <- lists:seq(1, ?TOLD)].

%% @doc One of several, of which each has as many clients.
-spec merge([verdict(), ...]) -> verdict().
merge([First | Others]) ->
    lists:foldl(fun(One, All) ->
        maps:map(fun(latencies, Is) -> lists:merge(Is, maps:get(latencies, One)); (Key, Is) -> Is + maps:get(Key, One) end, All)
    end, First, Others).

%% @doc What came of it, beside the whole history of the match.
-spec judge([matchstream_viewer:seen()], truth()) -> verdict().
judge(Seens, #{about := About, history := History, sent := Sent}) ->
    {ok, New} = matchstream_match:new(About),
    Total = length(History),
    %% By the numbers that a status has: not each event changes it.
    {Statuses, _} = lists:mapfoldl(fun(Event, Match) -> Next = matchstream_match:replay(Event, Match), {{status(Next), matchstream_match:seq(Next)}, Next} end, New, History),
    ByStatus = maps:groups_from_list(fun({Status, _}) -> Status end, fun({_, Seq}) -> Seq end, [{status(New), 0} | Statuses]),
    Texts = [matchstream_protocol:event(Event) || Event <- History],
    Begun = [0 | lists:append(maps:values(maps:with(lists:usort([Status || #{status := Status} <- Seens]), ByStatus)))],
    Hashes = maps:from_list([{After, lists:foldl(fun matchstream_viewer:hashed/2, 0, lists:nthtail(After, Texts))} || After <- Begun]),
    Words = [{word(Seen, ByStatus, Hashes, Total), Seen} || Seen <- Seens],
    Count = fun(Word) -> length([1 || {Is, _} <- Words, Is =:= Word]) end,
    #{
        clients => length(Seens), connected => length(Seens) - Count(unconnected), complete => Count(complete), wrong => Count(wrong), cut => Count(cut),
        refused => Count(refused), unconnected => Count(unconnected), again => lists:sum([Again || #{again := Again} <- Seens]),
        received => lists:sum([length(At) || #{at := At} <- Seens]),
        latencies => lists:sort([
            Came - At
         || {complete, #{at := Times}} <- Words, {Back, Came} <- lists:zip(lists:seq(0, length(Times) - 1), Times), {ok, At} <- [maps:find(Total - Back, Sent)]
        ])
    }.

status(Match) -> matchstream_protocol:event(matchstream_match:status(Match)).

word(#{failed := {connect, _}}, _, _, _) -> unconnected;
word(#{failed := {told, _}}, _, _, _) -> refused;
word(#{failed := none, status := Status, wants_all := WantsAll, hash := Hash, at := At, last := Last}, ByStatus, Hashes, Total) ->
    After = Total - length(At),
    case lists:member(After, case WantsAll of true -> [0]; false -> maps:get(Status, ByStatus, []) end) of
        true -> case Hashes of #{After := Hash} -> complete; #{} -> wrong end;
        false when Last =:= <<"stop">>; Last =:= <<"cancel">> -> wrong;
        false -> cut
    end;
word(_, _, _, _) -> cut.

%% @doc So many addresses of the loopback network, from 127.0.0.2 on.
-spec addresses(pos_integer()) -> [inet:ip_address(), ...].
addresses(Count) -> [{127, 0, N div 250, 2 + N rem 250} || N <- lists:seq(0, Count - 1)].
