%% SPDX-License-Identifier: Apache-2.0
%% @doc What a watch knows, in a directory and at hand: the process that gets all events of a watch
%% ({@link atoll_watch}) and keeps series, alarms, notifications and the inventory of nodes.
%%
%% Who reads asks ETS or the files, and never waits for this process. All tables are bounded: alarms as
%% {@link atoll_watch_alarm} bounds them, notifications to 5,000 and as many of what nodes have logged, the feed of what has just happened to 1,000; a node
%% has a row.
%%
%% The inventory: which nodes are known, were named by people, or were removed by them. Another watch goes on from it.
%% What people do is on disk before they are told that it is done, see sync/0. A directory has one watch at a time.
-module(atoll_watch_store).

-behaviour(gen_server).

-export([start_link/1, restored/0, watching/1, watch/0, about/0, rules/0, sync/0]).
-export([nodes/0, node/1, looked/1, alarms/1, alarm/1, notes/0, feed/1, position/0, count/1, added/2, said/4, told/2, series_dir/0, is_by_hand/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-compile({no_auto_import, [nodes/0, node/1]}).

-export_type([options/0, row/0, note/0, happened/0]).

-type options() :: #{dir := file:filename(), name := unicode:chardata(), period := pos_integer(), notes => pos_integer(), rules => [atoll_watch_rule:rule()]}.

-type row() :: #{
    node := node(),
    state := atoll_watch_core:state(),
    %% System time, in milliseconds, as all times here.
    since := integer(),
    why := none | unicode:chardata(),
    %% Of the last answer.
    at := integer() | none,
    figures := #{atom() => number()}
}.

-type note() :: #{
    id := pos_integer(),
    time := integer(),
    kind := state | restarted | forgotten | added | removed | alarm | watch | log,
    severity := atoll_watch_rule:severity() | info,
    node := node() | none,
    text := binary(),
    %% Of what a node has logged.
    level => logger:level()
}.

-type happened() :: {gone, node()} | {alarm, atoll_watch_alarm:alarm()} | {note, note()}.

%% Its numbers, oldest first, and how many.
-type ring() :: {atoll_watch_journal:journal(), queue:queue(pos_integer()), non_neg_integer()}.

-record(state, {
    dir :: file:filename(),
    notes_kept :: pos_integer(),
    journal :: atoll_watch_journal:journal(),
    notes :: ring(),
    %% Of their own, so that a node that logs much takes no place from other notifications.
    logged :: ring(),
    series :: atoll_watch_series:writer(),
    %% What is stored of a metric.
    stored :: #{atoll_watch_metric:name() => gauge | counter},
    next :: pos_integer(),
    feed = 1 :: pos_integer(),
    %% How many looks at nodes there were.
    looks = 1 :: pos_integer(),
    %% Whether series can be written.
    disk = ok :: ok | {error, file:posix()},
    lock :: gen_tcp:socket() | none
}).

-define(TABLES, [{atoll_watch_nodes, set}, {atoll_watch_alarms, ordered_set}, {atoll_watch_history, ordered_set}, {atoll_watch_notes, ordered_set},
                 {atoll_watch_feed, ordered_set}, {atoll_watch_inventory, set}, {atoll_watch_room, set}]).
-define(NOTES, 5000).
-define(FEED, 1000).
-define(HISTORY, 1000).
%% More terms than these make a journal that is written anew.
-define(JOURNAL, 20000).
%% Series of metrics with a label.
-define(LABELLED, 160).
-define(DAY_MS, 86400000).
-define(MONTH_S, (31 * 86400)).

%% @doc Opens the directory, which is made if it is not there.
-spec start_link(options()) -> {ok, pid()} | {error, {unable, unicode:chardata()}}.
start_link(Options) ->
    case gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []) of
        {ok, Pid} -> {ok, Pid};
        {error, {shutdown, {unable, _} = Unable}} -> {error, Unable}
    end.

%% @doc What a watch goes on from, as its options.
-spec restored() -> atoll_watch:options().
restored() ->
    Inventory = ets:tab2list(atoll_watch_inventory),
    #{
        alarms => alarms(standing) ++ alarms(cleared),
        rules => rules(),
        known => [Node || {Node, known} <- Inventory],
        named => [Node || {Node, named} <- Inventory],
        removed => [Node || {Node, removed} <- Inventory],
        subscriber => whereis(?MODULE)
    }.

%% @doc This process watches.
-spec watching(pid()) -> ok.
watching(Watch) -> gen_server:call(?MODULE, {watching, Watch}).

%% @doc The process that watches.
-spec watch() -> pid().
watch() -> ets:lookup_element(atoll_watch_room, watch, 2).

%% @doc Name, period, and when it was started.
-spec about() -> #{name := binary(), period := pos_integer(), started := integer()}.
about() -> ets:lookup_element(atoll_watch_room, about, 2).

%% @doc When which alarm is raised.
-spec rules() -> [atoll_watch_rule:rule()].
rules() -> ets:lookup_element(atoll_watch_room, rules, 2).

%% @doc Where the series are.
-spec series_dir() -> file:filename().
series_dir() -> ets:lookup_element(atoll_watch_room, series, 2).

%% @doc What has happened before is known here, and on disk.
-spec sync() -> ok.
sync() -> gen_server:call(?MODULE, sync, infinity).

%% @doc All nodes, sorted.
-spec nodes() -> [row()].
nodes() -> [Row || {_, Row, _} <- lists:keysort(1, ets:tab2list(atoll_watch_nodes))].

%% @doc One of them.
-spec node(node()) -> {ok, row()} | error.
node(Node) ->
    case ets:lookup(atoll_watch_nodes, Node) of
        [{_, Row, _}] -> {ok, Row};
        [] -> error
    end.

%% @doc Those that were looked at since, and where that is now.
-spec looked(After :: non_neg_integer()) -> {Last :: non_neg_integer(), [row()]}.
looked(After) ->
    Rows = lists:sort(ets:select(atoll_watch_nodes, [{{'_', '$1', '$2'}, [{'>', '$2', After}], [{{'$2', '$1'}}]}])),
    {lists:max([After | [Look || {Look, _} <- Rows]]), [Row || {_, Row} <- Rows]}.

%% @doc Alarms, the last one first.
-spec alarms(standing | cleared) -> [atoll_watch_alarm:alarm()].
alarms(standing) -> [Alarm || {_, Alarm} <- lists:reverse(ets:tab2list(atoll_watch_alarms))];
alarms(cleared) -> [Alarm || {_, Alarm} <- lists:reverse(ets:tab2list(atoll_watch_history))].

%% @doc One of them.
-spec alarm(integer()) -> {ok, atoll_watch_alarm:alarm()} | error.
alarm(Id) ->
    case [Alarm || {_, Alarm} <- ets:lookup(atoll_watch_alarms, Id) ++ ets:match_object(atoll_watch_history, {{'_', Id}, '_'})] of
        [Alarm | _] -> {ok, Alarm};
        [] -> error
    end.

%% @doc What was seen, the last first.
-spec notes() -> [note()].
notes() -> [Note || {_, Note} <- lists:reverse(ets:tab2list(atoll_watch_notes))].

%% @doc What has happened since, oldest first, and how much of it is there no more.
-spec feed(After :: non_neg_integer()) -> {Lost :: non_neg_integer(), Last :: non_neg_integer(), [happened()]}.
feed(After) ->
    Rows = ets:select(atoll_watch_feed, [{{'$1', '$2'}, [{'>', '$1', After}], [{{'$1', '$2'}}]}]),
    case Rows of
        [] -> {0, After, []};
        [{First, _} | _] -> {First - After - 1, element(1, lists:last(Rows)), [Happened || {_, Happened} <- Rows]}
    end.

%% @doc Where the feed is now.
-spec position() -> non_neg_integer().
position() ->
    case ets:last(atoll_watch_feed) of
        '$end_of_table' -> 0;
        Last -> Last
    end.

%% @doc What was counted by that name.
-spec count(atom()) -> integer().
count(Name) ->
    case ets:lookup(atoll_watch_room, {count, Name}) of
        [{_, N}] -> N;
        [] -> 0
    end.

%% @doc Counts.
-spec added(atom(), integer()) -> integer().
added(Name, By) ->
    case ets:update_counter(atoll_watch_room, {count, Name}, By, {{count, Name}, 0}) of
        N when is_integer(N) -> N
    end.

%% @doc Whether a node was added by people.
-spec is_by_hand(node()) -> boolean().
is_by_hand(Node) -> ets:lookup(atoll_watch_inventory, Node) =:= [{Node, named}].

%% @doc Something is to be known: a node was added or removed by people.
-spec said(added | removed, node(), atoll_watch_rule:severity() | info, unicode:chardata()) -> ok.
said(Kind, Node, Severity, Text) -> gen_server:call(?MODULE, {said, Kind, Node, Severity, unicode:characters_to_binary(Text)}, infinity).

%% @doc Something is to be known of the watch itself.
-spec told(atoll_watch_rule:severity() | info, unicode:chardata()) -> ok.
told(Severity, Text) -> gen_server:call(?MODULE, {told, Severity, unicode:characters_to_binary(Text)}, infinity).

%% @private
-spec init(options()) -> {ok, #state{}} | {stop, {shutdown, {unable, unicode:chardata()}}}.
init(#{dir := Dir, name := Name, period := Period} = Options) ->
    _ = process_flag(trap_exit, true),
    case opened(Dir) of
        {ok, Lock, [{Journal0, Terms, Whole}, {Notes, Noted, NotesWhole}, {Logged, Log, LogWhole}]} ->
            lists:foreach(fun({Table, Type}) -> Table = ets:new(Table, [Type, named_table, public, {read_concurrency, true}]) end, ?TABLES),
            lists:foreach(fun learn/1, Terms),
            Most = maps:get(notes, Options, ?NOTES),
            Kept = [[Note || #{id := _} = Note <- lists:nthtail(max(0, length(Is) - Most), Is)] || Is <- [Noted, Log]],
            [Ids, LogIds] = [[Id || #{id := Id} <- Is] || Is <- Kept],
            ets:insert(atoll_watch_notes, [{Id, Note} || #{id := Id} = Note <- lists:append(Kept)]),
            Series = filename:join(Dir, "nodes"),
            ets:insert(atoll_watch_room, [{about, #{name => unicode:characters_to_binary(Name), period => Period, started => now_ms()}}, {series, Series}, {rules, maps:get(rules, Options, atoll_watch_rule:all())}]),
            {ok, Journal} = atoll_watch_journal:replace(snapshot(), Journal0),
            ok = atoll_watch_journal:sync(Journal),
            Metrics = maps:from_list([{Metric, Kind} || #{name := Metric, kind := Kind} = Is <- atoll_watch_metric:all(), atoll_watch_metric:is_stored(Is)]),
            State = #state{
                dir = Dir, notes_kept = Most, journal = Journal, notes = {Notes, queue:from_list(Ids), length(Ids)}, logged = {Logged, queue:from_list(LogIds), length(LogIds)}, series = atoll_watch_series:new(Series, ?LABELLED),
                stored = Metrics, next = lists:max([0 | Ids ++ LogIds]) + 1, lock = Lock
            },
            self() ! expire,
            {ok, lists:foldl(fun(File, Acc) ->
                noted(watch, major, none, ["the file ", File, " could not be read, was put aside, and begun anew"], Acc)
            end, noted(watch, info, none, "the watch was started", State), [File || {File, put_aside} <- [{"journal", Whole}, {"notifications", NotesWhole}, {"logged", LogWhole}]])};
        {error, Sentence} ->
            {stop, {shutdown, {unable, Sentence}}}
    end.

opened(Dir) ->
    case filelib:ensure_path(Dir) of
        ok ->
            _ = file:change_mode(Dir, 8#700),
            case locked(Dir) of
                {ok, Lock} -> opened(Dir, Lock);
                {error, eaddrinuse} -> {error, ["Another watch has its data in ", Dir, ": --data names another directory."]};
                {error, Reason} -> {error, [Dir, " cannot be locked: ", inet:format_error(Reason), $.]}
            end;
        {error, Reason} ->
            {error, [Dir, " cannot be made: ", file:format_error(Reason), $.]}
    end.

opened(Dir, Lock) ->
    Opened = [atoll_watch_journal:open(filename:join(Dir, File), Kind) || {File, Kind} <- [{"journal", whole}, {"notifications", ring}, {"logged", ring}]],
    case [Reason || {error, Reason} <- Opened] of
        [] -> {ok, Lock, [{Journal, Terms, Whole} || {ok, Journal, Terms, Whole} <- Opened]};
        [Reason | _] -> {error, [Dir, " cannot be used: ", disk_log:format_error(Reason)]}
    end.

%% A socket without a file: it goes with whoever has it. Other systems than Linux have none.
locked(Dir) ->
    case os:type() of
        {unix, linux} ->
            Name = binary:encode_hex(crypto:hash(sha256, unicode:characters_to_binary(filename:absname(Dir)))),
            gen_tcp:listen(0, [{ifaddr, {local, <<0, "atoll_watch_", Name/binary>>}}]);
        _ ->
            {ok, none}
    end.

%% The journal: the last of each alarm and node counts.

learn({alarm, #{id := Id, node := Node} = Alarm}) ->
    _ = [ets:delete(atoll_watch_alarms, Id) || #{state := cleared} <- [Alarm]],
    %% One of an earlier version is of one node.
    kept(maps:merge(#{nodes => [Node], information => none}, Alarm));
learn({node, Node, gone}) ->
    ets:delete(atoll_watch_inventory, Node);
learn({node, Node, How}) ->
    ets:insert(atoll_watch_inventory, {Node, How}).

kept(#{id := Id, state := cleared, cleared := Cleared} = Alarm) ->
    ets:delete(atoll_watch_alarms, Id),
    ets:insert(atoll_watch_history, {{Cleared, Id}, Alarm}),
    case ets:info(atoll_watch_history, size) > ?HISTORY of
        true -> ets:delete(atoll_watch_history, ets:first(atoll_watch_history));
        false -> true
    end;
kept(#{id := Id} = Alarm) ->
    ets:insert(atoll_watch_alarms, {Id, Alarm}).

snapshot() ->
    [{alarm, Alarm} || {_, Alarm} <- ets:tab2list(atoll_watch_history) ++ ets:tab2list(atoll_watch_alarms)] ++
    [{node, Node, How} || {Node, How} <- ets:tab2list(atoll_watch_inventory)].

learned(Terms, #state{journal = Journal0} = State) ->
    lists:foreach(fun learn/1, Terms),
    Size = atoll_watch_journal:size(Journal0),
    case if Size > ?JOURNAL -> atoll_watch_journal:replace(snapshot(), Journal0); true -> atoll_watch_journal:add(Terms, Journal0) end of
        {ok, Journal} ->
            _ = atoll_watch_journal:sync(Journal),
            State#state{journal = Journal};
        {error, _} ->
            _ = added(unwritten, length(Terms)),
            State
    end.

%% @private
-spec handle_call({watching, pid()} | sync | {told, atom(), binary()} | {said, added | removed, node(), atom(), binary()}, gen_server:from(), #state{}) -> {reply, ok, #state{}}.
handle_call({watching, Watch}, _From, State) ->
    ets:insert(atoll_watch_room, {watch, Watch}),
    {reply, ok, State};
handle_call({said, Kind, Node, Severity, Text}, _From, State) ->
    {reply, ok, noted(Kind, Severity, Node, Text, learned([{node, Node, case Kind of added -> named; removed -> removed end}], State))};
handle_call({told, Severity, Text}, _From, State) ->
    {reply, ok, noted(watch, Severity, none, Text, State)};
handle_call(sync, _From, #state{notes = {Notes, _, _}} = State) ->
    _ = atoll_watch_journal:sync(Notes),
    {reply, ok, State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info({atoll_watch, pid(), atoll_watch:event()} | expire, #state{}) -> {noreply, #state{}}.
handle_info({atoll_watch, _, Event}, State) ->
    {noreply, happened(Event, State)};
handle_info(expire, State) ->
    _ = erlang:send_after(?DAY_MS, self(), expire),
    _ = atoll_watch_series:expire(series_dir(), erlang:system_time(second) - ?MONTH_S),
    {noreply, State}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{journal = Journal, notes = {Notes, _, _}, logged = {Logged, _, _}}) ->
    lists:foreach(fun atoll_watch_journal:close/1, [Journal, Notes, Logged]).

happened({looked, #{node := Node, state := Is, since := Since, why := Why, readings := Readings, rates := Rates} = Seen}, #state{looks = Look} = State) ->
    Now = now_ms(),
    Before = case node(Node) of {ok, #{at := Last}} -> Last; error -> none end,
    ets:insert(atoll_watch_nodes, {Node, #{
        node => Node, state => Is, since => Now - (erlang:monotonic_time(millisecond) - Since), why => Why,
        at => case Is of up -> Now; _ -> Before end, figures => case Is of up -> figures(Readings, Rates); _ -> #{} end
    }, Look}),
    stored(Now, Seen, State#state{looks = Look + 1});
happened({met, Nodes}, State) ->
    lists:foreach(fun(Node) ->
        Row = #{node => Node, state => unknown, since => now_ms(), why => none, at => none, figures => #{}},
        ets:insert_new(atoll_watch_nodes, {Node, Row, 0})
    end, Nodes),
    learned([{node, Node, known} || Node <- Nodes, ets:lookup(atoll_watch_inventory, Node) =:= []], State);
happened({Gone, Node}, State) when Gone =:= forgotten; Gone =:= removed ->
    ets:delete(atoll_watch_nodes, Node),
    #state{series = Series} = Known = case Gone of
        forgotten -> noted(forgotten, info, Node, "down for an hour, and known to nobody: forgotten", learned([{node, Node, gone}], State));
        removed -> State
    end,
    fed({gone, Node}, Known#state{series = atoll_watch_series:forget(Node, Series)});
happened({state, _, unknown, up}, State) ->
    State;
happened({state, Node, Was, Is}, State) ->
    noted(state, case Is of down -> critical; silent -> major; refused -> warning; _ -> info end, Node, [atom_to_list(Was), " before, ", atom_to_list(Is), " now"], State);
happened({manager_lost, Id}, State) ->
    noted(watch, minor, none, ["manager ", integer_to_list(Id), " was lost, and another one takes its place"], State);
happened({restarted, Node}, State) ->
    noted(restarted, minor, Node, "started again", State);
happened({said, Node, Log}, State) ->
    Now = now_ms(),
    lists:foldl(fun({Ago, Level, Text}, Acc) ->
        Severity = case Level of error -> major; warning -> warning; _ -> critical end,
        noted(#{time => Now - Ago, kind => log, severity => Severity, node => Node, text => Text, level => Level}, Acc)
    end, State, Log);
happened({alarm, {What, #{node := Node, rule := Rule, instance := Of, severity := Severity} = Alarm}}, State) ->
    Text = [atom_to_list(Rule), case Of of none -> ""; _ -> [" of ", text(Of)] end, $\s, atom_to_list(What), by(What, Alarm)],
    noted(alarm, case What of raised -> Severity; _ -> info end, Node, Text, fed({alarm, Alarm}, learned([{alarm, Alarm}], State))).

by(acknowledged, #{acknowledged := {_, Who}}) -> [" by ", Who];
by(commented, #{comments := [{_, Who, Text} | _]}) -> [" on by ", Who, ": ", Text];
by(raised, #{information := Said}) when Said =/= none -> [": ", Said];
by(_, _) -> "".

text(Of) when is_atom(Of) -> atom_to_list(Of);
text(Of) -> Of.

figures(Readings, Rates) ->
    maps:from_list(
        [{Name, Value} || {Name, Key} <- [{utilisation, utilisation}, {run_queue, run_queue_total}, {memory, memory_total}, {processes, processes},
                                          {processes_limit, processes_limit}, {mailbox_longest, mailbox_longest}, {uptime_ms, uptime}],
                          #{Key := Value} <- [Readings]] ++
        [{reductions_per_s, Value} || #{reductions := Value} <- [Rates]] ++
        [{Name, lists:sum([Rate || {{Of, _}, Rate} <- maps:to_list(Rates), Of =:= Key])} || {Name, Key} <- [{dist_in_per_s, dist_in}, {dist_out_per_s, dist_out}], map_size(Rates) > 0]).

stored(Now, #{node := Node, state := up, readings := Readings, rates := Rates}, #state{series = Series0, stored = Stored, disk = Disk} = State) ->
    Kept = maps:merge(of_kind(gauge, Readings, Stored), of_kind(counter, Rates, Stored)),
    case atoll_watch_series:write(Node, Now, Kept, Series0) of
        {ok, Series} ->
            ets:insert(atoll_watch_room, {{count, series_beyond}, atoll_watch_series:omitted(Series)}),
            Written = State#state{series = Series, disk = ok},
            case Disk of ok -> Written; _ -> noted(watch, info, none, "series can be written again", Written) end;
        {error, Reason, Series} ->
            _ = added(unwritten, 1),
            Failed = State#state{series = Series, disk = {error, Reason}},
            case Disk of {error, Reason} -> Failed; _ -> noted(watch, critical, none, ["series cannot be written: ", file:format_error(Reason)], Failed) end
    end;
stored(_, _, State) ->
    State.

of_kind(Kind, Readings, Stored) ->
    maps:filter(fun(Key, _) -> maps:get(case Key of {Name, _} -> Name; Name -> Name end, Stored, none) =:= Kind end, Readings).

noted(Kind, Severity, Node, Text, State) ->
    noted(#{time => now_ms(), kind => Kind, severity => Severity, node => Node, text => unicode:characters_to_binary(Text)}, State).

noted(#{kind := Kind} = Told, #state{next = Id, notes = Notes, logged = Logged, notes_kept = Most} = State) ->
    Note = Told#{id => Id},
    ets:insert(atoll_watch_notes, {Id, Note}),
    fed({note, Note}, case Kind of
        log -> State#state{next = Id + 1, logged = ring(Note, Most, Logged)};
        _ -> State#state{next = Id + 1, notes = ring(Note, Most, Notes)}
    end).

ring(#{id := Id} = Note, Most, {Journal0, Ids, Size}) ->
    Journal = case atoll_watch_journal:add([Note], Journal0) of
        {ok, Is} -> Is;
        {error, _} -> _ = added(unwritten, 1), Journal0
    end,
    case queue:in(Id, Ids) of
        Longer when Size < Most ->
            {Journal, Longer, Size + 1};
        Longer ->
            {{value, Oldest}, Left} = queue:out(Longer),
            ets:delete(atoll_watch_notes, Oldest),
            {Journal, Left, Size}
    end.

fed(Happened, #state{feed = Next} = State) ->
    ets:insert(atoll_watch_feed, {Next, Happened}),
    ets:delete(atoll_watch_feed, Next - ?FEED),
    State#state{feed = Next + 1}.

now_ms() -> erlang:system_time(millisecond).
