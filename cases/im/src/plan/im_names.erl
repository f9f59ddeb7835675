%% SPDX-License-Identifier: Apache-2.0
%% @doc The names of the databases, and the way to the main one of a shard from any node.
%%
%% In the shard's own group a look-up is one read of a table: of `global' in mode rd, of
%% `atoll_name' in mode rsd. From another group there are two ways. With `atoll' a member of the group is
%% asked for the name, by a process of its own; the answer is used for a second. With
%% `relays', as in the paper, an operation goes over processes, and its answer back over the same ones:
%% ```
%% caller -> a relay of its own group     {im, relay, {Server, Kind}, Op, [From]}
%% relay  -> a router process of each     {im, forward, {Server, Kind}, Op, [Relay, From]}
%% router -> database, if it is its own   {im_op, {Router, {hops, [Relay, From]}}, Op}
%% database -> router                     {im_db, {hops, [Relay, From]}, Reply}
%% router -> relay                        {im, back, [From], Reply}
%% relay  -> caller                       {im_db, Tag, Reply}
%% '''
%% {@link relay/1} is what a relay and a router do with these.
%%
%% Not promised: that an operation arrives, or its answer. Operations may be repeated.
%%
%% A clash of two parts of a cluster that meet leaves the name with the higher epoch in rsd
%% (`name_rules' of the group: `{keep, max}'), and with neither in rd: whoever stays main takes it again.
-module(im_names).

-export([create_table/0, register/5, unregister/3, whereis/3, count/1, call/4, cast/4, relay/1]).

-export_type([from/0]).

%% Who gets `{im_db, Tag, Reply}'.
-type from() :: {pid() | reference(), Tag :: term()}.

%% How long the process that was found in another group is used before it is looked for again.
-define(KEPT_MS, 1000).
%% After so long without an answer an operation is said again.
-define(AGAIN_MS, 500).
-define(PAUSE_MS, 20).

%% @doc Makes the table of what was found in other groups; the caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ok.

%% @doc Gives a database its name, with the epoch of its main.
-spec register(im_plan:server(), 1 | 2, im_plan:kind(), pid(), im_replica:epoch()) -> yes | no.
register(Server, Copy, Kind, Pid, Epoch) ->
    Plan = im_plan:this(),
    Name = im_plan:db_name(Server, Copy, Kind, Plan),
    case im_plan:setting(mode, Plan) of
        rd ->
            global:register_name(Name, Pid, fun global:notify_all_name/3);
        rsd ->
            case atoll_name:register(im_plan:group_of(Server, Plan), Name, Pid, Epoch) of
                yes -> yes;
                {no, _} -> no
            end
    end.

%% @doc Takes the name away.
-spec unregister(im_plan:server(), 1 | 2, im_plan:kind()) -> ok.
unregister(Server, Copy, Kind) ->
    Plan = im_plan:this(),
    Name = im_plan:db_name(Server, Copy, Kind, Plan),
    _ = case im_plan:setting(mode, Plan) of
            rd -> global:unregister_name(Name);
            rsd -> atoll_name:unregister(im_plan:group_of(Server, Plan), Name)
        end,
    ok.

%% @doc Who has the name, as a node of the shard's group knows it.
-spec whereis(im_plan:server(), 1 | 2, im_plan:kind()) -> pid() | undefined.
whereis(Server, Copy, Kind) ->
    Plan = im_plan:this(),
    Name = im_plan:db_name(Server, Copy, Kind, Plan),
    case im_plan:setting(mode, Plan) of
        rd -> global:whereis_name(Name);
        rsd -> atoll_name:whereis(im_plan:group_of(Server, Plan), Name)
    end.

%% @doc How many names there are in a shard's group, as a node of that knows it.
-spec count(im_plan:server()) -> non_neg_integer().
count(Server) ->
    Plan = im_plan:this(),
    case im_plan:setting(mode, Plan) of
        rd ->
            length(global:registered_names());
        rsd ->
            length(atoll_name:names(im_plan:group_of(Server, Plan)))
    end.

%% @doc Asks the main database of a shard, whatever group it is in, until it answers or the time is over:
%% `unavailable' if there was no main, or one without a majority.
-spec call(im_plan:server(), im_plan:kind(), im_table:op(), TimeoutMs :: non_neg_integer()) ->
    {ok, im_table:reply()} | {error, unavailable | timeout}.
call(Server, Kind, Op, Timeout) ->
    Alias = alias(),
    try
        call(Server, Kind, Op, Alias, now_ms() + Timeout)
    after
        unalias(Alias),
        drop(Alias)
    end.

call(Server, Kind, Op, Alias, Deadline) ->
    ok = cast(Server, Kind, Op, {Alias, Alias}),
    Answer = receive
                 {im_db, Alias, not_main} -> unavailable;
                 {im_db, Alias, {error, no_majority}} -> unavailable;
                 {im_db, Alias, Reply} -> {ok, Reply}
             after max(0, min(?AGAIN_MS, Deadline - now_ms())) -> timeout
             end,
    case {Answer, now_ms() + ?PAUSE_MS < Deadline} of
        {{ok, _}, _} -> Answer;
        {_, false} -> {error, Answer};
        {timeout, true} -> call(Server, Kind, Op, Alias, Deadline);
        {unavailable, true} -> receive after ?PAUSE_MS -> call(Server, Kind, Op, Alias, Deadline) end
    end.

%% Answers to what was said twice.
drop(Alias) ->
    receive {im_db, Alias, _} -> drop(Alias) after 0 -> ok end.

now_ms() -> erlang:monotonic_time(millisecond).

%% @doc Sends an operation to the main database of a shard and does not wait. The answer comes as
%% `{im_db, Tag, Reply}', with `not_main' for one that must be sent again.
-spec cast(im_plan:server(), im_plan:kind(), im_table:op(), from()) -> ok.
cast(Server, Kind, Op, From) ->
    Plan = im_plan:this(),
    case im_plan:setting(mode, Plan) =:= rd orelse lists:member(node(), im_plan:members(Server, Plan)) of
        true -> deliver(whereis(Server, 1, Kind), Op, From);
        false ->
            case im_plan:setting(reach, Plan) of
                atoll -> deliver(found(Server, Kind, Plan), Op, From);
                relays -> deliver_by(own_relay(Plan), {im, relay, {Server, Kind}, Op, [From]}, From)
            end
    end.

deliver(Pid, Op, From) when is_pid(Pid) ->
    Pid ! {im_op, From, Op},
    ok;
deliver({ask, Server, Kind}, Op, From) ->
    _ = spawn(fun() -> deliver(ask(Server, Kind), Op, From) end),
    ok;
deliver(undefined, _, From) ->
    none(From).

deliver_by(undefined, _, From) ->
    none(From);
deliver_by(Relay, Message, _) ->
    Relay ! Message,
    ok.

%% Who asks again at once must find something new.
none({To, Tag}) ->
    _ = case is_pid(To) of
            true -> erlang:send_after(?PAUSE_MS, To, {im_db, Tag, not_main});
            false -> To ! {im_db, Tag, not_main}
        end,
    ok.

%% What is old is still used while one process looks for the new.
found(Server, Kind, _) ->
    Now = now_ms(),
    try ets:lookup(?MODULE, {Server, Kind}) of
        [{_, Pid, Until}] when Now < Until ->
            Pid;
        [{Key, Pid, _}] ->
            _ = ets:insert(?MODULE, {Key, Pid, Now + ?KEPT_MS}),
            _ = spawn(fun() -> ask(Server, Kind) end),
            Pid;
        [] ->
            {ask, Server, Kind}
    catch
        %% A node that keeps nothing.
        error:badarg -> {ask, Server, Kind}
    end.

ask(Server, Kind) ->
    Plan = im_plan:this(),
    Found = atoll_name:find(im_plan:group_of(Server, Plan), im_plan:db_name(Server, 1, Kind, Plan)),
    try
        case Found of
            {ok, Pid} -> true = ets:insert(?MODULE, {{Server, Kind}, Pid, now_ms() + ?KEPT_MS}), Pid;
            {error, _} -> true = ets:delete(?MODULE, {Server, Kind}), undefined
        end
    catch
        error:badarg -> case Found of {ok, At} -> At; {error, _} -> undefined end
    end.

own_relay(Plan) ->
    case [Group || {Group, Members} <- im_plan:groups(Plan), Group =/= routers_group, lists:member(node(), Members)] of
        [Group] -> atoll_name:whereis(Group, im_plan:relay_name(rand:uniform(im_plan:setting(relays, Plan))));
        [] -> undefined
    end.

%% @doc What a relay or a router process does with a message of the ways above.
-spec relay({im, relay | forward, {im_plan:server(), im_plan:kind()}, im_table:op(), [pid() | from(), ...]}
            | {im, back, [from(), ...], im_table:reply()}
            | {im_db, {hops, [pid() | from(), ...]}, im_table:reply()}) -> ok.
relay({im, relay, Database, Op, Hops}) ->
    Plan = im_plan:this(),
    lists:foreach(fun(Node) -> {router(Plan), Node} ! {im, forward, Database, Op, [self() | Hops]} end, im_plan:routers(Plan));
relay({im, forward, {Server, Kind}, Op, Hops}) ->
    case lists:member(node(), im_plan:members(Server, im_plan:this())) of
        true -> cast(Server, Kind, Op, {self(), {hops, Hops}});
        false -> ok
    end;
relay({im_db, {hops, [Relay | Hops]}, Reply}) ->
    Relay ! {im, back, Hops, Reply},
    ok;
relay({im, back, [{To, Tag}], Reply}) ->
    To ! {im_db, Tag, Reply},
    ok.

router(Plan) -> im_plan:router_name(rand:uniform(im_plan:setting(routers_per_node, Plan))).
