%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The one owner of connections on this node.
%%
%% Upper rooms say here which nodes they want to be connected with, and
%% subscribe to hear which connections are up; nobody else connects or
%% disconnects. {@link atoll_link_core} decides; this module is its process.
-module(atoll_link).

-behaviour(atoll_interpreter).

-export([start_link/1, want/1, unwant/1, disconnect/1, subscribe/0, links/0]).
-export([watch/0, heard/1]).
-export([open/1, act/2, event/2, notice/2]).

%% A helper ends with exit/1 by design.
-dialyzer({nowarn_function, help/3}).

-record(world, {
    %% Owner => the monitor on it.
    owners = #{} :: #{pid() => reference()},
    %% The helpers that connect or measure, by the monitor on each. There is at
    %% most one attempt and a few readings for each known peer: the next attempt
    %% follows the answer of the last, or the end of the connection that it made.
    helpers = #{} :: #{reference() => {connect, node()} | {measure, atoll_link_core:purpose(), node()}},
    %% Since when each connection is up.
    links = #{} :: #{node() => SinceMs :: integer()}
}).

%% @doc Starts the link process of this node.
-spec start_link(atoll_link_core:options()) -> gen_server:start_ret().
start_link(Options) ->
    atoll_interpreter:start_link(#{
        name => ?MODULE,
        protocol => atoll_link_core,
        process => ?MODULE,
        config => #{self => node(), seed => rand:uniform(1 bsl 32), options => Options}
    }).

%% @doc The calling process wants a connection with `Node', until it says
%% otherwise or ends. Wanting twice is the same as once,
%% but that what could not be reached is tried again at once.
-spec want(node()) -> ok.
want(Node) ->
    atoll_interpreter:cast(?MODULE, {want, self(), Node}).

%% @doc The calling process no longer wants a connection with `Node'.
-spec unwant(node()) -> ok.
unwant(Node) ->
    atoll_interpreter:cast(?MODULE, {unwant, self(), Node}).

%% @doc Closes the connection with `Node' at once, whoever wants it and whatever
%% monitors are over it: they fire. It is for a caller who knows that the node is
%% dead, or the connection of no use. Those who want it have it tried again later.
-spec disconnect(node()) -> ok.
disconnect(Node) ->
    atoll_interpreter:cast(?MODULE, {disconnect, Node}).

%% @doc From now on the caller gets `{atoll, atoll_link, Notice}' for each
%% {@link atoll_link_core:notice()}.
-spec subscribe() -> ok.
subscribe() ->
    atoll_interpreter:subscribe(?MODULE).

%% @doc For the process of a room above: from now on it gets the messages of which
%% {@link heard/1} makes events, of what is connected already too.
-spec watch() -> ok.
watch() ->
    ok = subscribe(),
    %% Connections are heard of from the runtime itself: only so does the loss of
    %% one come after all that arrived over it, and before what the next brings.
    ok = net_kernel:monitor_nodes(true, [{node_type, all}, nodedown_reason]),
    %% A node that comes up between the two lines is heard of twice, which does
    %% no harm; one that goes amid this, see still/2.
    tell_connected().

%% @doc What such a message says; the one place where it is decided whom the rooms
%% speak to. With a hidden node that is who is wanted here, or has spoken.
-spec heard(Message :: term()) -> [atoll_hidden:outside()].
heard({nodeup, Node, Info}) ->
    case is_hidden(Info) of
        true ->
            %% The link room says if it is wanted, now or later.
            ok = atoll_interpreter:cast(?MODULE, {hidden, Node}),
            [{quiet, Node}];
        false ->
            [{up, Node}]
    end;
heard({?MODULE, connected, Node, Info}) ->
    lists:append([heard(Up) || Up <- still(Node, Info)]);
heard({nodedown, Node, Info}) ->
    [down(Node, Info)];
heard({atoll, ?MODULE, {wanted, Node}}) ->
    [{wanted, Node}];
heard({atoll, ?MODULE, {unreachable, Node}}) ->
    [{cast, {unreachable, Node}}];
heard({atoll, ?MODULE, _Other}) ->
    [].

tell_connected() ->
    Types = [visible, hidden],
    _ = [self() ! {?MODULE, connected, Node, [{node_type, Type}]} || Type <- Types, Node <- nodes(Type)],
    ok.

%% The `nodedown' of one that was connected then may stand before what was said of it, and
%% no other one would follow.
still(Node, Info) ->
    [{nodeup, Node, Info} || lists:member(Node, nodes(connected))].

is_hidden(Info) -> lists:member({node_type, hidden}, Info).

down(Node, Info) -> {down, Node, proplists:get_value(nodedown_reason, Info, unknown)}.

%% @doc Each known peer, whether it is connected, in which phase, and how many
%% processes want it.
-spec links() ->
    [#{node := node(), connected := boolean(), phase := atom(), wanted_by := non_neg_integer()}].
links() ->
    atoll_interpreter:call(?MODULE, status).

%% @private
-spec open(atoll_link_core:config()) -> #world{}.
open(_Config) ->
    %% What an earlier life of this process wanted, somebody will say again.
    ok = atoll_dist:disown(),
    %% As in watch/0.
    ok = net_kernel:monitor_nodes(true, [{node_type, all}, nodedown_reason]),
    ok = tell_connected(),
    #world{}.

%% @private
-spec act(atoll_protocol:effect(), #world{}) -> #world{}.
act({act, {connect, Node}}, World) ->
    %% Somebody wants it. The carrier may have been started anew since it was told.
    ok = atoll_dist:own(Node, true),
    help({connect, Node}, fun() -> connect(Node) end, World);
act({act, {own, Node, Wants}}, World) ->
    ok = atoll_dist:own(Node, Wants),
    World;
act({act, {measure, Purpose, Node}}, World) ->
    help({measure, Purpose, Node}, fun() -> atoll_link_usage:read(Purpose, Node) end, World);
act({act, {disconnect, Node}}, World) ->
    %% In a process of its own: it waits for the net kernel.
    _ = spawn(fun() -> erlang:disconnect_node(Node) end),
    World;
act({act, {watch, Owner}}, #world{owners = Owners} = World) ->
    World#world{owners = Owners#{Owner => erlang:monitor(process, Owner)}};
act({act, {unwatch, Owner}}, #world{owners = Owners} = World) ->
    case maps:take(Owner, Owners) of
        {Ref, Rest} ->
            true = erlang:demonitor(Ref, [flush]),
            World#world{owners = Rest};
        error ->
            World
    end.

%% @private
-spec event(term(), #world{}) -> {[atoll_protocol:event()], #world{}}.
event({nodeup, Node, Info}, World) ->
    {[{up, Node}] ++ [{cast, {hidden, Node}} || is_hidden(Info)], World};
event({?MODULE, connected, Node, Info}, World) ->
    {lists:append([element(1, event(Up, World)) || Up <- still(Node, Info)]), World};
event({nodedown, Node, Info}, World) ->
    {[down(Node, Info)], World};
event({'DOWN', Ref, process, Pid, Reason}, #world{owners = Owners, helpers = Helpers} = World) ->
    case maps:take(Ref, Helpers) of
        {Task, Rest} ->
            {[{cast, result(Task, Reason)}], World#world{helpers = Rest}};
        error ->
            #{Pid := Ref} = Owners,
            {[{cast, {forget, Pid}}], World#world{owners = maps:remove(Pid, Owners)}}
    end.

%% @private
-spec notice(atoll_link_core:notice(), #world{}) -> #world{}.
notice({up, Node}, #world{links = Links0} = World) ->
    Links = Links0#{Node => erlang:monotonic_time(millisecond)},
    ok = atoll_events:emit(link_up, #{node => Node}, #{links => map_size(Links)}),
    World#world{links = Links};
notice({down, Node, Reason}, #world{links = Links0} = World) ->
    {Since, Links} = maps:take(Node, Links0),
    Ms = erlang:monotonic_time(millisecond) - Since,
    ok = atoll_events:emit(link_down, #{node => Node, reason => Reason}, #{links => map_size(Links), duration_ms => Ms}),
    World#world{links = Links};
notice({refused, Node}, World) ->
    Why = io_lib:format(
        "~ts is there, but refuses a connection with this node: most often it has another cookie. "
        "It is tried again after longer and longer pauses",
        [Node]
    ),
    logger:warning(#{what => connection_refused, node => Node, why => unicode:characters_to_list(Why)}),
    World;
notice(_Other, World) ->
    World.

%% OTP does not say why there is no connection. A node that listens and has said no at once refuses it;
%% one that is silent keeps the attempt waiting.
connect(Node) ->
    Start = erlang:monotonic_time(millisecond),
    net_kernel:connect_node(Node) =:= true orelse
        (is_prompt(erlang:monotonic_time(millisecond) - Start) andalso atoll_dist_address:listens(Node) andalso
            refused).

is_prompt(Ms) -> 2 * Ms < net_kernel:connecttime().

%% A helper ends with its answer as the reason, so that an answer and a crash
%% come the same way and neither can be missed.
help(Task, Fun, #world{helpers = Helpers} = World) ->
    {_Pid, Ref} = spawn_monitor(fun() -> exit({answer, Fun()}) end),
    World#world{helpers = Helpers#{Ref => Task}}.

result({connect, Node}, {answer, Success}) -> {connected, Node, Success};
result({connect, Node}, _Crash) -> {connected, Node, false};
result({measure, Purpose, Node}, {answer, Usage}) -> {usage, Purpose, Node, Usage};
result({measure, Purpose, Node}, _Crash) -> {usage, Purpose, Node, unknown}.
