%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process that stands by for one singleton on one node, and does what {@link
%% atoll_singleton_core} decides: it looks into the tables of names and groups, follows the
%% process that has the name, and has its supervisor start and end the server. It waits for
%% nobody: what takes long is done by helpers, of which there are at most three.
%%
%% It has a name in the group, by which the other nodes know that this one stands by.
-module(atoll_singleton_keeper).

-behaviour(gen_server).

-export([start_link/1, stand_bys/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([config/0]).

%% A helper ends with exit/1 by design.
-dialyzer({nowarn_function, help/3}).

-type config() :: #{
    supervisor := pid(),
    group := atom(),
    name := term(),
    %% The server, as a temporary child.
    server := supervisor:child_spec(),
    params := atoll_place:params()
}.

-record(keeper, {
    config :: config(),
    core :: atoll_singleton_core:state(),
    %% On the application; without it there is nobody to ask.
    application = none :: none | reference(),
    followed = none :: none | {reference(), atoll_singleton_core:process()},
    %% The server that runs here, by the name that it has as a child.
    server = none :: none | {reference(), pid(), Child :: term()},
    timers = #{} :: #{look | 'try' => reference()},
    helpers = #{} :: #{reference() => started | placed | ended | standing_by}
}).

-define(EVENTS, [name_conflict, s_group_created, s_group_deleted, s_group_node_added, s_group_node_removed]).

%% How long after it could not get its own name it looks again.
-define(AGAIN_MS, 500).

%% @doc Starts to stand by.
-spec start_link(config()) -> gen_server:start_ret().
start_link(Config) ->
    gen_server:start_link(?MODULE, Config, []).

%% @doc The nodes that stand by, as this one knows, and the processes that do; sorted. One look-up
%% for each member.
-spec stand_bys(atom(), term()) -> [{node(), pid()}].
stand_bys(Group, Name) ->
    Members =
        case members(Group) of
            none -> [];
            Nodes -> lists:sort(Nodes)
        end,
    [{Node, Pid} || Node <- Members, Pid <- [atoll_name:whereis(Group, standing_by(Name, Node))], is_pid(Pid)].

standing_by(Name, Node) -> {atoll_singleton, Name, Node}.

%% Free nodes are not listed anywhere, but are connected.
members(undefined) ->
    case {whereis(atoll_name), atoll_group:own()} of
        {Pid, []} when is_pid(Pid) -> [node() | nodes()];
        _ -> none
    end;
members(Group) ->
    case atoll_group:own(Group) of
        {ok, {_, _, Nodes}} -> Nodes;
        none -> none
    end.

%% @private
-spec init(config()) -> {ok, #keeper{}}.
init(#{name := Name, params := Params} = Config) ->
    {Core, Effects} = atoll_singleton_core:init(
        #{self => node(), name => Name, placed => placed(Params), options => atoll_singleton_core:defaults()}, now_ms()
    ),
    {ok, perform(Effects, #keeper{config = Config, core = Core})}.

placed(Params) when Params =:= #{} -> no;
placed(#{near := _}) -> ranked;
placed(#{rank := _}) -> ranked;
placed(_) -> fits.

%% @private
-spec handle_call(info | stop | leave, gen_server:from(), #keeper{}) ->
    {reply, atoll_singleton:info(), #keeper{}} | {noreply, #keeper{}} | {stop, normal, #keeper{}}.
handle_call(info, _From, #keeper{core = Core} = Keeper) ->
    {reply, atoll_singleton_core:info(Core), Keeper};
handle_call(Request, From, Keeper) when Request =:= stop; Request =:= leave ->
    handle({Request, From}, Keeper).

%% @private
-spec handle_cast(term(), #keeper{}) -> no_return().
handle_cast(Message, _Keeper) ->
    error({unexpected, Message}).

%% @private
-spec handle_info(term(), #keeper{}) -> {noreply, #keeper{}} | {stop, normal, #keeper{}}.
handle_info({timeout, Ref, Key}, #keeper{timers = Timers} = Keeper0) ->
    Keeper = Keeper0#keeper{timers = maps:remove(Key, Timers)},
    case Timers of
        #{Key := Ref} when Key =:= look -> look(Keeper);
        #{Key := Ref} -> handle({Key, view(Keeper)}, Keeper);
        #{} -> {noreply, Keeper0}
    end;
handle_info({atoll, name_conflict, Details}, #keeper{config = #{group := Group, name := Name}} = Keeper) ->
    case Details of
        #{group := Group, name := Name, loser := Pid, winner := Winner} -> handle({lost, {node(Pid), Pid}, Winner}, Keeper);
        #{} -> {noreply, Keeper}
    end;
handle_info({atoll, _, #{group := Group}}, #keeper{config = #{group := Own}} = Keeper) ->
    case Group =:= Own orelse Own =:= undefined of
        true -> look(Keeper);
        false -> {noreply, Keeper}
    end;
handle_info({'DOWN', Ref, process, _, _}, #keeper{application = Ref} = Keeper) ->
    look(Keeper#keeper{application = none});
handle_info({'DOWN', Ref, process, _, Reason}, #keeper{followed = {Ref, Holder}} = Keeper0) ->
    Keeper = Keeper0#keeper{followed = none},
    handle({gone, Holder, Reason, view(Keeper)}, Keeper);
handle_info({'DOWN', Ref, process, Pid, Reason}, #keeper{server = {Ref, Pid, _}} = Keeper0) ->
    Keeper = Keeper0#keeper{server = none},
    handle({ended, {node(), Pid}, Reason, view(Keeper)}, Keeper);
handle_info({'DOWN', Ref, process, _, Answer}, #keeper{helpers = Helpers} = Keeper) ->
    {Task, Rest} = maps:take(Ref, Helpers),
    answered(Task, Answer, Keeper#keeper{helpers = Rest}).

look(Keeper0) ->
    Keeper = there(Keeper0),
    handle({look, view(Keeper)}, Keeper).

handle(Event, #keeper{core = Core0} = Keeper0) ->
    {Core, Effects} = atoll_singleton_core:handle(Event, now_ms(), Core0),
    Keeper = perform(Effects, Keeper0#keeper{core = Core}),
    case lists:member(stop, Effects) of
        true -> {stop, normal, Keeper};
        false -> {noreply, Keeper}
    end.

%% What this node knows now.

view(#keeper{application = none}) ->
    away;
view(#keeper{config = #{group := Group, name := Name}}) ->
    case members(Group) of
        none -> away;
        _ -> #{holder => holder(atoll_name:whereis(Group, Name)), standbys => [N || {N, _} <- stand_bys(Group, Name)]}
    end.

%% One that has just died here has its name until its node has heard of it.
holder(undefined) ->
    none;
holder(Pid) ->
    case node(Pid) =:= node() andalso not is_process_alive(Pid) of
        true -> none;
        false -> {node(Pid), Pid}
    end.

%% The application runs here, and this process is known to hear of its group and to stand by.
there(#keeper{application = none} = Keeper) ->
    case whereis(atoll_sup) of
        undefined ->
            Keeper;
        Pid ->
            try atoll_events:subscribe(?EVENTS) of
                ok -> stand_by(Keeper#keeper{application = erlang:monitor(process, Pid)})
            catch
                %% It is starting, or stopping.
                exit:{_, {gen_server, call, _}} -> Keeper
            end
    end;
there(Keeper) ->
    stand_by(Keeper).

stand_by(#keeper{config = #{group := Group, name := Name}, helpers = Helpers} = Keeper) ->
    Self = self(),
    Own = standing_by(Name, node()),
    case
        atoll_name:whereis(Group, Own) =:= Self orelse members(Group) =:= none orelse
            lists:member(standing_by, maps:values(Helpers))
    of
        true -> Keeper;
        false -> help(standing_by, fun() -> atoll_name:register(Group, Own, Self) end, Keeper)
    end.

%% Effects

perform(Effects, Keeper) ->
    lists:foldl(fun act/2, Keeper, Effects).

act({timer, Key, Ms}, Keeper) ->
    #keeper{timers = Timers} = Cancelled = act({cancel, Key}, Keeper),
    Cancelled#keeper{timers = Timers#{Key => erlang:start_timer(Ms, self(), Key)}};
act({cancel, Key}, #keeper{timers = Timers} = Keeper) ->
    _ = [erlang:cancel_timer(Ref) || #{Key := Ref} <- [Timers]],
    Keeper#keeper{timers = maps:remove(Key, Timers)};
act({follow, {_, Pid} = Holder}, Keeper) ->
    #keeper{} = Free = act(unfollow, Keeper),
    Free#keeper{followed = {erlang:monitor(process, Pid), Holder}};
act(unfollow, #keeper{followed = none} = Keeper) ->
    Keeper;
act(unfollow, #keeper{followed = {Ref, _}} = Keeper) ->
    true = erlang:demonitor(Ref, [flush]),
    Keeper#keeper{followed = none};
act({place, Candidates}, #keeper{config = #{params := Params}} = Keeper) ->
    help(placed, fun() -> place(Candidates, Params) end, Keeper);
act(start, #keeper{config = Config} = Keeper) ->
    help(started, fun() -> start(Config) end, Keeper);
act({'end', {_, Pid}}, #keeper{config = #{supervisor := Supervisor}, server = {_, Pid, Child}} = Keeper) ->
    help(ended, fun() -> supervisor:terminate_child(Supervisor, Child) end, Keeper);
%% It has ended by itself, and that is on its way.
act({'end', _}, Keeper) ->
    Keeper;
act({kill, {_, Pid}}, Keeper) ->
    true = exit(Pid, kill),
    Keeper;
act({reply, From}, Keeper) ->
    gen_server:reply(From, ok),
    Keeper;
act({note, What, Why}, #keeper{config = #{group := Group, name := Name}} = Keeper) ->
    logger:warning(#{what => What, group => Group, name => Name, why => Why}),
    Keeper;
act(stop, Keeper) ->
    Keeper.

place(Candidates, Params) when is_map(Params) ->
    case atoll_place:nodes(Params#{among => Candidates}) of
        {ok, #{nodes := Nodes}} -> {ok, Nodes};
        {error, _} -> failed
    end;
place(Candidates, Where) ->
    place(Candidates, #{where => Where}).

%% Each has a name of its own as a child: the last one may just be going.
start(#{supervisor := Supervisor, group := Group, name := Name, server := #{id := Id} = Server}) ->
    Child = {Id, erlang:unique_integer([positive])},
    case supervisor:start_child(Supervisor, Server#{id := Child}) of
        {ok, Pid} when is_pid(Pid) -> registered(Group, Name, Pid, Child, Supervisor);
        {ok, Pid, _} -> registered(Group, Name, Pid, Child, Supervisor);
        {ok, undefined} -> {failed, ignore};
        {error, {already_started, _}} -> taken;
        {error, {{already_started, _}, _}} -> taken;
        {error, {Reason, _}} -> {failed, Reason};
        {error, Reason} -> {failed, Reason}
    end.

registered(Group, Name, Pid, Child, Supervisor) ->
    case atoll_name:whereis(Group, Name) of
        Pid ->
            {started, Pid, Child};
        _ ->
            %% It works without its lock, or has ended already.
            _ = supervisor:terminate_child(Supervisor, Child),
            {failed, {has_not_the_name, Pid}}
    end.

help(Task, Fun, #keeper{helpers = Helpers} = Keeper) ->
    {_Pid, Ref} = spawn_monitor(fun() -> exit({answer, Fun()}) end),
    Keeper#keeper{helpers = Helpers#{Ref => Task}}.

answered(started, {answer, {started, Pid, Child}}, Keeper0) ->
    Keeper = Keeper0#keeper{server = {erlang:monitor(process, Pid), Pid, Child}},
    handle({started, {node(), Pid}, view(Keeper)}, Keeper);
answered(started, {answer, taken}, Keeper) ->
    handle({taken, view(Keeper)}, Keeper);
answered(started, {answer, {failed, Reason}}, Keeper) ->
    handle({failed, Reason, view(Keeper)}, Keeper);
answered(started, Crash, Keeper) ->
    handle({failed, Crash, view(Keeper)}, Keeper);
answered(placed, {answer, Answer}, Keeper) ->
    handle({placed, Answer}, Keeper);
answered(placed, _Crash, Keeper) ->
    handle({placed, failed}, Keeper);
%% The names may not have heard of the group yet.
answered(standing_by, Answer, Keeper) when Answer =/= {answer, yes} ->
    {noreply, act({timer, look, ?AGAIN_MS}, Keeper)};
%% What came of it the end of the server says, or the table.
answered(_, _, Keeper) ->
    {noreply, Keeper}.

now_ms() -> erlang:monotonic_time(millisecond).
