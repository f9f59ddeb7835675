%% SPDX-License-Identifier: Apache-2.0
%% @doc What counts the traffic of a node that is observed. It is put into the running node ({@link atoll_view_put}) with its parts,
%% stands alone, and takes functions of OTP that every node has loaded.
%%
%% Promised: it looks when it is asked and at no other time. It traces as long as somebody who asks wants that, never more than
%% {@link atoll_flow_governor} lets it; its own node's traffic with programs that look is not counted. Several may ask at once,
%% and there is one process that traces. It is gone when the last one that asked has left or is lost, in whatever way, and with it
%% go its flags, patterns, process and modules.
%%
%% Not promised: that old code stays away if it is killed by force on its node. Then its modules stay until the next one there ends;
%% its flags and its session end with it, and patterns of OTP 25 and 26 stay.
%%
%% What it says counts from some time on, `epoch': who asks again takes the difference.
-module(atoll_flow_probe).

-behaviour(gen_server).

-export([modules/0, version/0, start/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([look/0, wants/0, request/0, answer/0, tracing/0, load/0]).

-type wants() :: #{
    %% Whether messages are counted one by one, by tracing.
    trace := boolean(),
    %% By whom they are sent, too.
    by := atoll_flow_noted:by(),
    %% Above so many messages a second only a part of them is traced.
    limit := pos_integer(),
    %% Run queues, migrations and mailboxes, too.
    load := boolean()
}.

-type look() :: #{
    %% Monotonic time there, in microseconds.
    at := integer(),
    %% Unlike that of any other life of the node.
    life := term(),
    %% Its s_groups, where it has any implementation of them.
    groups := [{Group :: term(), [node()]}] | none,
    %% The nodes that it is visibly connected with.
    peers := [node()],
    %% What has left over each connection: packets, which are messages and what else the runtime sends; and bytes.
    connections := [{node(), Packets :: non_neg_integer() | unknown, Bytes :: non_neg_integer() | unknown}],
    tracing := off | busy | tracing(),
    sent := [{atoll_flow_counts:key(), number(), number()}],
    load := none | load()
}.

-type tracing() :: #{
    epoch := reference(),
    %% Since the epoch, in microseconds: so long it was traced, and so long it is.
    traced := non_neg_integer(),
    all := non_neg_integer(),
    %% Whether it is traced all the time now.
    whole := boolean(),
    %% Messages that were traced, the most that waited to be counted, and those that were not traced but taken from others.
    seen := non_neg_integer(),
    longest := non_neg_integer(),
    estimated := number()
}.

-type load() :: #{
    queues := [non_neg_integer()],
    %% Processes that were seen on another scheduler than before, since the epoch.
    migrations := [{From :: pos_integer(), To :: pos_integer(), pos_integer()}],
    %% Of registered processes, the longest.
    mailboxes := [{Name :: atom(), non_neg_integer()}],
    topology := term()
}.

%% It comes as `{atoll_flow_probe, From, Request}', and `{From, Answer}' goes to the alias From.
-type request() :: {look, Watcher :: pid(), Version :: term(), wants()} | {leave, Watcher :: pid()}.
-type answer() :: {ok, look()} | {error, other_version} | ok.

-record(tracing, {
    epoch :: reference(),
    of_what :: atoll_flow_tracing:what(),
    limit :: pos_integer(),
    flags :: atoll_flow_tracing:tracing(),
    governor :: atoll_flow_governor:governor(),
    noted :: atoll_flow_noted:noted(),
    %% What is traced counts from then until then, by the VM's clock: an atom is later than all.
    opened :: integer(),
    closed = never :: integer() | never,
    %% All that is under way has come when this comes.
    draining = none :: none | reference(),
    timer = none :: none | reference(),
    uncounted = 0 :: non_neg_integer(),
    seen = 0 :: non_neg_integer(),
    %% So many waited at most.
    longest = 0 :: non_neg_integer()
}).

-record(state, {
    watchers :: #{pid() => {reference(), wants()}},
    leaves :: [[term()], ...],
    %% Where somebody else traces it is tried again then.
    tracing = off :: off | {busy, Us :: integer()} | #tracing{},
    %% Who waits until all that was sent before he asked is counted.
    flushing = [] :: [{reference(), From :: reference()}],
    groups = none :: none | [{term(), [node()]}],
    groups_at = none :: none | integer(),
    %% Who asks another implementation for them.
    asking = none :: none | {pid(), reference()}
}).

-define(PARTS, [atoll_flow_facts, atoll_flow_governor, atoll_flow_counts, atoll_flow_noted, atoll_flow_tracing]).
-define(BACKLOG, 10000).
%% So many are counted before it is looked how many wait.
-define(AT_ONCE, 250).
%% Another implementation of groups is asked no more often, however much is traced: about once for each look.
-define(GROUPS_US, 100000).
-define(BUSY_US, 1000000).
-define(NOTHING, #{trace => false, by => any, limit => 1000000, load => false}).

%% @doc What is put into a node; the order is that in which it is.
-spec modules() -> [module()].
modules() -> ?PARTS ++ [?MODULE].

%% @doc Two of the same version are the same code.
-spec version() -> term().
version() -> [Module:module_info(md5) || Module <- modules()].

%% @doc Starts it, for whoever asks first.
-spec start(atoll_view_put:guest()) -> ok.
start(Guest) ->
    case gen_server:start({local, ?MODULE}, ?MODULE, Guest, []) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok;
        ignore -> ok
    end.

%% @private
-spec init(atoll_view_put:guest()) -> {ok, #state{}} | ignore.
init(#{watcher := Watcher, leaves := Leaves}) ->
    %% The one before this may have taken them away just now.
    case lists:all(fun(Module) -> erlang:function_exported(Module, module_info, 0) end, modules()) of
        true ->
            true = group_leader(whereis(init), self()),
            _ = process_flag(trap_exit, true),
            _ = process_flag(priority, high),
            {ok, #state{watchers = #{Watcher => {monitor(process, Watcher), ?NOTHING}}, leaves = Leaves}};
        false ->
            ignore
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _From, _) -> error({unknown_call, Request}).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private What others send it, whom it never asked, is let go.
-spec handle_info(Message, #state{}) -> {noreply, #state{}} | {stop, normal, #state{}} when
    Message ::
        tuple() %% of tracing
        | {?MODULE, From :: reference(), request()}
        | {?MODULE, groups, none | [{term(), [node()]}]}
        | {trace_delivered, all, reference()}
        | {timeout, reference(), govern}
        | {'DOWN', reference(), process, pid(), term()}
        | term().
handle_info(Trace, #state{tracing = #tracing{}} = State0) when element(1, Trace) =:= trace_ts ->
    %% What comes is counted by the groups as they are now.
    #state{tracing = Tracing} = State = grouped(State0),
    {noreply, State#state{tracing = governed(counted(Trace, ?AT_ONCE, Tracing))}};
handle_info({?MODULE, groups, Groups}, State) ->
    {noreply, in_groups(Groups, State)};
handle_info({?MODULE, From, {look, Watcher, Version, Wants}}, State0) ->
    case version() of
        Version ->
            case traced(watched(Watcher, Wants, State0)) of
                #state{tracing = #tracing{flags = Flags}, flushing = Waiting} = State ->
                    {noreply, State#state{flushing = [{atoll_flow_tracing:delivered(Flags), From} | Waiting]}};
                State ->
                    {noreply, answered(From, State)}
            end;
        _ ->
            ok = reply(From, {error, other_version}),
            unless_alone(State0)
    end;
handle_info({?MODULE, From, {leave, Watcher}}, State0) ->
    %% What it has set is taken back before he hears that it is.
    State = traced(left(Watcher, State0)),
    ok = reply(From, ok),
    unless_alone(State);
handle_info({trace_delivered, all, Ref}, #state{flushing = Waiting} = State0) ->
    State = case State0 of
        #state{tracing = #tracing{draining = Ref, noted = Noted} = Tracing} ->
            State0#state{tracing = stepped(drained, Tracing#tracing{draining = none, noted = atoll_flow_noted:counted(fun atoll_flow_counts:folded/1, Noted)})};
        #state{} -> State0
    end,
    case lists:keytake(Ref, 1, Waiting) of
        {value, {_, From}, Others} -> {noreply, answered(From, State#state{flushing = Others})};
        false -> {noreply, State}
    end;
handle_info({timeout, Timer, govern}, #state{tracing = #tracing{timer = Timer} = Tracing} = State) ->
    {noreply, State#state{tracing = governed(Tracing#tracing{timer = none})}};
handle_info({'DOWN', Ref, process, Pid, _}, #state{asking = {Pid, Ref}} = State) ->
    {noreply, State#state{asking = none}};
handle_info({'DOWN', _, process, Watcher, _}, State) ->
    unless_alone(traced(left(Watcher, State)));
handle_info(_, State) ->
    unless_alone(State).

unless_alone(#state{watchers = Watchers} = State) when map_size(Watchers) =:= 0 -> {stop, normal, State};
unless_alone(State) -> {noreply, State}.

watched(Watcher, Wants, #state{watchers = Watchers} = State) ->
    Ref = case Watchers of #{Watcher := {Is, _}} -> Is; #{} -> monitor(process, Watcher) end,
    State#state{watchers = Watchers#{Watcher => {Ref, Wants}}}.

left(Watcher, #state{watchers = Watchers} = State) ->
    case maps:take(Watcher, Watchers) of
        {{Ref, _}, Others} -> _ = demonitor(Ref, [flush]), State#state{watchers = Others};
        error -> State
    end.

reply(From, Answer) ->
    _ = erlang:send(From, {From, Answer}, [noconnect, nosuspend]),
    ok.

%% Tracing is what all who ask want together. What was counted stays when they want something else.
traced(#state{watchers = Watchers, tracing = Tracing} = State) ->
    All = [Wants || {_, Wants} <- maps:values(Watchers)],
    What = #{sent => lists:any(fun(#{trace := Trace}) -> Trace end, All), schedulers => lists:any(fun(#{load := Load}) -> Load end, All)},
    By = hd([By || #{trace := true, by := By} <- All, By =/= any] ++ [any]),
    Limit = lists:min([Limit || #{trace := true, limit := Limit} <- All] ++ [1000000]),
    Now = now_us(),
    State#state{tracing = case {What, Tracing} of
        {#{sent := false, schedulers := false}, _} -> ended(Tracing);
        {#{sent := Sent}, #tracing{of_what = #{sent := Sent}}} -> otherwise(What, limited(Limit, by_whom(By, Tracing)));
        {_, {busy, Again}} when Now < Again -> Tracing;
        {_, _} -> off = ended(Tracing), began(What, By, Limit, State)
    end}.

by_whom(By, #tracing{noted = Noted} = Tracing) -> Tracing#tracing{noted = atoll_flow_noted:by_whom(By, Noted)}.

limited(Limit, #tracing{limit = Limit} = Tracing) -> Tracing;
limited(Limit, #tracing{governor = Governor} = Tracing) -> Tracing#tracing{limit = Limit, governor = atoll_flow_governor:limited(limits(Limit), Governor)}.

limits(Limit) -> #{limit => Limit, backlog => ?BACKLOG}.

began(What, By, Limit, #state{groups = Groups}) ->
    case atoll_flow_tracing:start(What) of
        {ok, Flags} ->
            ok = atoll_flow_tracing:open(Flags),
            {Opened, Now} = {erlang:monotonic_time(), now_us()},
            governed(#tracing{
                epoch = make_ref(), of_what = What, limit = Limit, flags = Flags, opened = Opened, noted = atoll_flow_noted:new(By, Groups, meters(Now)),
                governor = atoll_flow_governor:new(limits(Limit), Now)
            });
        {error, busy} ->
            {busy, now_us() + ?BUSY_US}
    end.

otherwise(What, #tracing{of_what = What} = Tracing) ->
    Tracing;
otherwise(What, #tracing{flags = Before, governor = Governor, draining = Draining} = Tracing) ->
    ok = atoll_flow_tracing:stop(Before),
    case atoll_flow_tracing:start(What) of
        {ok, Flags} ->
            _ = [ok = atoll_flow_tracing:open(Flags) || atoll_flow_governor:is_open(Governor)],
            Tracing#tracing{of_what = What, flags = Flags, draining = case Draining of none -> none; _ -> atoll_flow_tracing:delivered(Flags) end};
        {error, busy} ->
            {busy, now_us() + ?BUSY_US}
    end.

ended(#tracing{flags = Flags, timer = Timer}) ->
    _ = [erlang:cancel_timer(Timer) || Timer =/= none],
    ok = atoll_flow_tracing:stop(Flags),
    off;
ended(_) ->
    off.

%% Of what waits only so many are taken before it is looked how many wait.
counted(Trace, Left, #tracing{uncounted = N, opened = Opened, closed = Closed, noted = Noted} = Tracing0) ->
    Tracing1 = Tracing0#tracing{uncounted = N + 1},
    Tracing = case element(tuple_size(Trace), Trace) of
        Time when Time >= Opened, Time =< Closed -> Tracing1#tracing{noted = atoll_flow_noted:noted(Trace, Noted)};
        %% It was sent in the moment that it takes to begin or to stop, and the connection's bytes are those of within it.
        _ -> Tracing1
    end,
    case Left of
        0 -> Tracing;
        _ ->
            receive
                Next when element(1, Next) =:= trace_ts -> counted(Next, Left - 1, Tracing)
            after 0 -> Tracing
            end
    end.

governed(#tracing{uncounted = N, seen = Seen, longest = Longest} = Tracing) ->
    {message_queue_len, Waiting} = erlang:process_info(self(), message_queue_len),
    stepped({seen, N, Waiting}, Tracing#tracing{uncounted = 0, seen = Seen + N, longest = max(Longest, Waiting)}).

stepped(Event, #tracing{governor = Governor0, flags = Flags, noted = Noted} = Tracing) ->
    Now = now_us(),
    {Action, Governor} = atoll_flow_governor:step(Event, Now, Governor0),
    timed(Now, case Action of
        none ->
            Tracing#tracing{governor = Governor};
        close ->
            Until = erlang:monotonic_time(),
            Meters = meters(Now),
            Closed = atoll_flow_noted:counted(fun(Counts) -> atoll_flow_counts:closed(Meters, Counts) end, Noted),
            ok = atoll_flow_tracing:close(Flags),
            Tracing#tracing{governor = Governor, noted = Closed, closed = Until, draining = atoll_flow_tracing:delivered(Flags)};
        open ->
            ok = atoll_flow_tracing:open(Flags),
            From = erlang:monotonic_time(),
            Meters = meters(now_us()),
            Open = case atoll_flow_governor:is_whole(Governor) of
                true -> fun(Counts) -> atoll_flow_counts:whole(Meters, Counts) end;
                false -> fun(Counts) -> atoll_flow_counts:opened(Meters, Counts) end
            end,
            Tracing#tracing{governor = Governor, noted = atoll_flow_noted:rested(atoll_flow_noted:counted(Open, Noted)), opened = From, closed = never}
    end).

timed(Now, #tracing{timer = none, governor = Governor} = Tracing) ->
    case atoll_flow_governor:due(Governor) of
        none -> Tracing;
        Due -> Tracing#tracing{timer = erlang:start_timer(max(1, (Due - Now + 999) div 1000), self(), govern)}
    end;
timed(Now, #tracing{timer = Timer} = Tracing) ->
    _ = erlang:cancel_timer(Timer),
    timed(Now, Tracing#tracing{timer = none}).

now_us() -> erlang:monotonic_time(microsecond).

meters(Now) ->
    {Now, maps:from_list([{Node, {case Packets of unknown -> Bytes; _ -> Packets end, Bytes}} || {Node, Packets, Bytes} <- atoll_flow_facts:connections(), Bytes =/= unknown])}.

answered(From, #state{} = State0) ->
    #state{groups = Groups, tracing = Tracing, watchers = Watchers} = State = grouped(State0),
    Load = lists:any(fun({_, #{load := Is}}) -> Is end, maps:values(Watchers)),
    ok = reply(From, {ok, #{
        at => now_us(),
        life => {os:getpid(), erlang:system_info(creation), erlang:system_info(start_time)},
        groups => Groups,
        peers => [Node || Node <- nodes(), not atoll_flow_facts:is_view(Node)],
        connections => atoll_flow_facts:connections(),
        tracing => told(Tracing),
        sent => case Tracing of #tracing{noted = Noted} -> [Is || {{Peer, _, _, _}, _, _} = Is <- atoll_flow_counts:totals(atoll_flow_noted:counts(Noted)), not atoll_flow_facts:is_view(Peer)]; _ -> [] end,
        load => case Load of true -> load(Tracing); false -> none end
    }}),
    State.

told(#tracing{epoch = Epoch, governor = Governor, noted = Noted, seen = Seen, uncounted = N, longest = Longest}) ->
    {Traced, All} = atoll_flow_governor:traced(now_us(), Governor),
    #{epoch => Epoch, traced => Traced, all => All, whole => atoll_flow_governor:is_whole(Governor), seen => Seen + N, longest => Longest, estimated => atoll_flow_counts:estimated(atoll_flow_noted:counts(Noted))};
told({busy, _}) -> busy;
told(off) -> off.

load(Tracing) ->
    (atoll_flow_facts:load())#{migrations => case Tracing of #tracing{noted = Noted} -> atoll_flow_noted:migrations(Noted); _ -> [] end}.

%% Atoll's are read at once. Those of another implementation may take their time: they come by a process of their own.
grouped(#state{groups_at = At, asking = Asking} = State) ->
    Now = now_us(),
    case {whereis(atoll_sup), erlang:function_exported(s_group, own_s_groups, 0)} of
        {Pid, true} when is_pid(Pid) -> in_groups(atoll_flow_facts:groups(), State);
        {_, true} when Asking =:= none, At =:= none; Asking =:= none, Now - At >= ?GROUPS_US ->
            Self = self(),
            State#state{groups_at = Now, asking = spawn_monitor(fun() -> Self ! {?MODULE, groups, atoll_flow_facts:groups()} end)};
        {_, true} -> State;
        {_, false} -> in_groups(none, State)
    end.

in_groups(Groups, #state{groups = Groups} = State) -> State;
in_groups(Groups, #state{tracing = #tracing{noted = Noted} = Tracing} = State) -> State#state{groups = Groups, tracing = Tracing#tracing{noted = atoll_flow_noted:in_groups(Groups, Noted)}};
in_groups(Groups, State) -> State#state{groups = Groups}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{tracing = Tracing, leaves = Leaves}) ->
    off = ended(Tracing),
    true = unregister(?MODULE),
    Last = spawn(lists, zipwith3, [fun erlang:apply/3 | Leaves]),
    try register(?MODULE, Last) of
        true -> ok
    catch
        %% It is done already.
        error:badarg -> ok
    end.
