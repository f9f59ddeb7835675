%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Watches the nodes of placed processes: the process of {@link atoll_place_core}. What it
%% watches is in a table of the supervisor, and outlives it.
-module(atoll_place_watch).

-behaviour(atoll_interpreter).

-export([create_table/0, start_link/1, watch/4, unwatch/1, status/0]).
-export([open/1, act/2, event/2, notice/2]).

%% A helper ends with exit/1 by design.
-dialyzer({nowarn_function, help/3}).

-record(world, {
    %% The monitors on the watched, both ways.
    monitors = #{} :: #{reference() => Watch :: reference()},
    watches = #{} :: #{reference() => Monitor :: reference()},
    %% What asks nodes or ends a process, by the monitor on it: bounded by the protocol.
    helpers = #{} :: #{reference() => {asked, [atoll_predicate:name()]} | {weighed | ended, reference()}}
}).

%% @doc Makes the table of what is watched; the caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

%% @doc Starts to watch.
-spec start_link(atoll_place_core:options()) -> gen_server:start_ret().
start_link(Options) ->
    atoll_interpreter:start_link(#{
        name => ?MODULE,
        protocol => atoll_place_core,
        process => ?MODULE,
        config => #{options => Options, watches => ets:tab2list(?MODULE)}
    }).

%% @doc From now on a process is watched, under a name that the caller made.
-spec watch(reference(), pid(), atoll_place_choice:wish(), atoll_place_core:ending()) ->
    ok | {error, not_running | {too_many_watched, pos_integer()}}.
watch(Ref, Pid, Wish, Ending) ->
    call({watch, Ref, #{pid => Pid, node => node(Pid), wish => Wish, ending => Ending, misplaced => false}}).

%% @doc It is watched no more.
-spec unwatch(reference()) -> ok.
unwatch(Ref) ->
    _ = call({unwatch, Ref}),
    ok.

%% @doc For people: how many are watched and misplaced, and what was counted.
-spec status() -> #{atom() => term()} | restarting.
status() ->
    case call(summary) of
        {error, not_running} -> restarting;
        Summary -> Summary
    end.

call(Request) ->
    try
        atoll_interpreter:call(?MODULE, Request)
    catch
        exit:{_, {gen_server, call, _}} -> {error, not_running}
    end.

%% @private
-spec open(atoll_place_core:config()) -> #world{}.
open(_Config) ->
    #world{}.

%% @private
-spec act(atoll_protocol:effect(), #world{}) -> #world{}.
act({act, {monitor, Ref, Pid}}, #world{monitors = Monitors, watches = Watches} = World) ->
    Monitor = erlang:monitor(process, Pid),
    World#world{monitors = Monitors#{Monitor => Ref}, watches = Watches#{Ref => Monitor}};
act({act, {demonitor, Ref}}, #world{monitors = Monitors, watches = Watches} = World) ->
    {Monitor, Rest} = maps:take(Ref, Watches),
    true = erlang:demonitor(Monitor, [flush]),
    World#world{monitors = maps:remove(Monitor, Monitors), watches = Rest};
act({act, {keep, Ref, Watch}}, World) ->
    true = ets:insert(?MODULE, {Ref, Watch}),
    World;
act({act, {drop, Ref}}, World) ->
    true = ets:delete(?MODULE, Ref),
    World;
act({act, {ask, Names, Nodes, Ms}}, World) ->
    help({asked, Names}, fun() -> ask(Names, Nodes, Ms) end, World);
act({act, {weigh, Ref, Watch}}, World) ->
    help({weighed, Ref}, fun() -> weigh(Watch) end, World);
act({act, {'end', Ref, #{ending := Ending, pid := Pid}}}, World) ->
    help({ended, Ref}, fun() -> end_it(Ending, Pid) end, World).

ask(Names, Nodes, Ms) ->
    case atoll_attr:request_attrs(Nodes, Names, #{deadline => Ms}) of
        {ok, #{values := Values}} -> {ok, Values};
        {error, _} -> failed
    end.

%% It may be that its own node fits again by now. What was known before is no answer to that.
weigh(#{node := Node, wish := Wish}) ->
    case atoll_place_choice:nodes(atoll_place_choice:fresh(Wish)) of
        {ok, #{nodes := [_ | _] = Nodes}} ->
            case lists:member(Node, Nodes) of
                true -> kept;
                false -> may
            end;
        _ ->
            kept
    end.

end_it({bridge, Bridge}, _Pid) ->
    case atoll_place_bridge:stop(Bridge, misplaced) of
        ok -> ended;
        not_told -> kept
    end;
end_it(direct, Pid) ->
    true = exit(Pid, {shutdown, misplaced}),
    ended.

%% A helper ends with its answer as the reason, so that an answer and a crash come the same way and
%% neither can be missed.
help(Task, Fun, #world{helpers = Helpers} = World) ->
    {_Pid, Ref} = spawn_monitor(fun() -> exit({answer, Fun()}) end),
    World#world{helpers = Helpers#{Ref => Task}}.

%% @private
-spec event(term(), #world{}) -> {[atoll_protocol:event()], #world{}}.
event({'DOWN', Monitor, process, _Pid, Reason}, #world{monitors = Monitors, watches = Watches, helpers = Helpers} = World) ->
    case maps:take(Monitor, Monitors) of
        {Ref, Rest} ->
            {[{cast, {gone, Ref}}], World#world{monitors = Rest, watches = maps:remove(Ref, Watches)}};
        error ->
            {Task, Others} = maps:take(Monitor, Helpers),
            {[{cast, told(Task, Reason)}], World#world{helpers = Others}}
    end.

told({asked, Names}, {answer, Answer}) -> {asked, Names, Answer};
told({asked, Names}, _Crash) -> {asked, Names, failed};
told({What, Ref}, {answer, Outcome}) -> {What, Ref, Outcome};
told({What, Ref}, _Crash) -> {What, Ref, kept}.

%% @private
-spec notice(atoll_place_core:notice(), #world{}) -> #world{}.
notice({misplaced, Details}, World) ->
    ok = atoll_events:emit(misplaced, Details),
    World.
