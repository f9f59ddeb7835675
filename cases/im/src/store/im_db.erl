%% SPDX-License-Identifier: Apache-2.0
%% @doc A database of a shard, of its clients or of its sessions: the process that does what
%% {@link im_replica} says. There is one on each node that may have a copy, under a local name. The main
%% one, which answers, and the replica have names in the group too ({@link im_names}).
%%
%% An operation comes as `{im_op, {Pid, Tag}, Op}', and its answer goes as `{im_db, Tag, Reply}'.
%% An answer to a node whose connection is full is dropped: whoever asked asks again.
-module(im_db).
-behaviour(gen_server).

-export([start_link/2, here/1, info/2, tell/0, init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(db, {
    server :: im_plan:server(),
    kind :: im_plan:kind(),
    table :: module(),
    local :: atom(),
    core :: im_replica:state(),
    monitors = #{} :: #{pid() => reference()},
    %% which name it is to have, and the process that sees to it
    role = standby :: im_replica:role(),
    epoch = 0 :: im_replica:epoch(),
    naming = none :: none | reference()
}).

%% How often it looks whether it has its name: a clash may have taken it.
-define(LOOK_MS, 1000).
-define(PAUSE_MS, 20).

%% @doc Starts that of a shard and a kind on this node, by the plan of this node.
-spec start_link(im_plan:server(), im_plan:kind()) -> gen_server:start_ret().
start_link(Server, Kind) ->
    gen_server:start_link({local, im_plan:local_name(Server, Kind, im_plan:this())}, ?MODULE, {Server, Kind},
                          [{spawn_opt, [{message_queue_data, off_heap}]}]).

%% @doc Those that there are on this node.
-spec here(im_plan:plan()) -> [{im_plan:server(), im_plan:kind()}].
here(Plan) ->
    [{Server, Kind} || Server <- im_plan:servers(Plan), lists:member(node(), im_plan:peers(Server, Plan)), Kind <- [client_db, chat_db]].

%% @doc What that on this node is, how many rows it has, and what was counted.
-spec info(im_plan:server(), im_plan:kind()) -> #{role := im_replica:role(), rows := non_neg_integer(), _ => _}.
info(Server, Kind) ->
    gen_server:call(im_plan:local_name(Server, Kind, im_plan:this()), info).

%% @doc Has the main ones of this node tell the supervisor, which was started again, of all their rows.
-spec tell() -> ok.
tell() ->
    Plan = im_plan:this(),
    lists:foreach(fun(Name) ->
        case whereis(Name) of
            undefined -> ok;
            Pid -> Pid ! tell, ok
        end
    end, [im_plan:local_name(Server, Kind, Plan) || {Server, Kind} <- here(Plan)]).

%% @private
-spec init({im_plan:server(), im_plan:kind()}) -> {ok, #db{}}.
init({Server, Kind}) ->
    Plan = im_plan:this(),
    ok = net_kernel:monitor_nodes(true),
    Members = im_plan:members(Server, Plan),
    Table = case Kind of client_db -> im_client_table; chat_db -> im_chat_table end,
    {Core, Effects} = im_replica:new(#{
        self => node(),
        peers => im_plan:peers(Server, Plan),
        members => Members,
        up => [Node || Node <- nodes(), lists:member(Node, Members)],
        table => Table,
        limits => #{max_sessions => im_plan:setting(max_sessions, Plan), away_messages => im_plan:setting(away_messages, Plan)},
        replication => im_plan:setting(replication, Plan),
        max_waiting => im_plan:setting(max_waiting, Plan)
    }, now_ms()),
    _ = erlang:send_after(?LOOK_MS, self(), look),
    %% The one before may have been main.
    ok = supervisor_told({im_db, role, Server, Kind, standby}),
    {ok, effects(Effects, #db{server = Server, kind = Kind, table = Table, local = im_plan:local_name(Server, Kind, Plan), core = Core})}.

%% @private
-spec handle_call(info, gen_server:from(), #db{}) -> {reply, map(), #db{}}.
handle_call(info, _, #db{table = Table, core = Core} = S) ->
    #{table := Rows} = Info = im_replica:info(Core),
    Count = case Rows of undefined -> 0; _ -> {N, unchanged} = Table:apply(count, Rows), N end,
    {reply, (maps:remove(table, Info))#{rows => Count}, S}.

%% @private
-spec handle_cast(term(), #db{}) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(term(), #db{}) -> {noreply, #db{}}.
handle_info({im_op, From, Op}, S) ->
    {noreply, happens({op, From, Op}, S)};
handle_info({im_replica, Pid, Message}, S) ->
    {noreply, happens({from, node(Pid), Pid, Message}, S)};
handle_info({'DOWN', Ref, process, _, _}, #db{naming = Ref} = S) ->
    {noreply, named(S#db{naming = none})};
handle_info({'DOWN', _, process, Pid, _}, #db{monitors = Monitors} = S) ->
    {noreply, happens({down, Pid}, S#db{monitors = maps:remove(Pid, Monitors)})};
handle_info({What, Node}, #db{server = Server} = S) when What =:= nodeup; What =:= nodedown ->
    case lists:member(Node, im_plan:members(Server, im_plan:this())) of
        true -> {noreply, happens({What, Node}, S)};
        false -> {noreply, S}
    end;
handle_info(tell, #db{role = main, server = Server, kind = Kind, table = Table, core = Core} = S) ->
    ok = supervisor_told({im_db, role, Server, Kind, main}),
    #{table := Rows} = im_replica:info(Core),
    ok = supervisor_told({im_db, main, Server, Kind, [], Table:rows(Rows)}),
    {noreply, S};
handle_info(tell, #db{role = Role, server = Server, kind = Kind} = S) ->
    ok = supervisor_told({im_db, role, Server, Kind, Role}),
    {noreply, S};
handle_info(wake, S) ->
    {noreply, happens(wake, S)};
handle_info(look, S) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    {noreply, named(S)};
%% A name that two had: the next look takes it again.
handle_info(Conflict, S) when element(1, Conflict) =:= global_name_conflict; element(1, Conflict) =:= name_conflict ->
    {noreply, S}.

now_ms() -> erlang:system_time(millisecond).

happens(Event, #db{core = Core} = S) ->
    {Next, Effects} = im_replica:handle(Event, now_ms(), Core),
    effects(Effects, S#db{core = Next}).

effects(Effects, S) -> lists:foldl(fun effect/2, S, Effects).

effect({answer, {To, Tag}, Reply}, S) ->
    _ = erlang:send(To, {im_db, Tag, Reply}, [nosuspend]),
    S;
effect({send, Pid, Message}, S) ->
    Pid ! {im_replica, self(), Message},
    S;
%% Whoever is connected later says hello itself.
effect({hello, Node, Message}, #db{local = Local} = S) ->
    _ = erlang:send({Local, Node}, {im_replica, self(), Message}, [noconnect]),
    S;
effect({monitor, Pid}, #db{monitors = Monitors} = S) ->
    S#db{monitors = Monitors#{Pid => monitor(process, Pid)}};
effect({demonitor, Pid}, #db{monitors = Monitors} = S) ->
    case maps:take(Pid, Monitors) of
        {Ref, Left} -> true = demonitor(Ref, [flush]), S#db{monitors = Left};
        error -> S
    end;
effect({role, Role, Epoch}, #db{server = Server, kind = Kind} = S) ->
    ok = supervisor_told({im_db, role, Server, Kind, Role}),
    named(S#db{role = Role, epoch = Epoch});
effect({main, Why, Rows}, #db{server = Server, kind = Kind, table = Table} = S) ->
    ok = supervisor_told({im_db, main, Server, Kind, Why, adopted(Why, Table:rows(Rows), Table)}),
    S;
effect({wake, Ms}, S) ->
    _ = erlang:send_after(Ms, self(), wake),
    S;
effect({clash, Node, Epoch}, #db{local = Local} = S) ->
    logger:warning(#{what => two_mains, database => Local, other => Node, epoch => Epoch}),
    S.

%% If it is not there it asks when it is.
supervisor_told(Message) ->
    _ = case whereis(server_supervisor) of
            undefined -> ok;
            Pid -> Pid ! Message
        end,
    ok.

%% Those whose process was on a lost node, or is not here.
adopted(handed_over, Rows, Table) -> [Pair || {_, Row} = Pair <- Rows, node(Table:pid(Row)) =/= node()];
adopted(Lost, Rows, Table) -> [Pair || {_, Row} = Pair <- Rows, lists:member(node(Table:pid(Row)), Lost)].

%% In a process of its own: a name needs other nodes.
named(#db{naming = none, server = Server, kind = Kind, role = Role, epoch = Epoch} = S) ->
    Self = self(),
    Has = [Copy || Copy <- [1, 2], im_names:whereis(Server, Copy, Kind) =:= Self],
    Wanted = case Role of main -> [1]; replica -> [2]; standby -> [] end,
    case Has of
        Wanted -> S;
        _ ->
            {_, Ref} = spawn_monitor(fun() ->
                _ = [im_names:unregister(Server, Copy, Kind) || Copy <- Has -- Wanted],
                _ = [im_names:register(Server, Copy, Kind, Self, Epoch) || Copy <- Wanted -- Has],
                %% A pause, if somebody else has it still.
                receive after ?PAUSE_MS -> ok end
            end),
            S#db{naming = Ref}
    end;
named(S) ->
    S.
