%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The process of a protocol that keeps something equal on all members, run by the one interpreter: of a handler ({@link atoll_handler}), and of whatever else hears
%% of neighbours and of broadcasts to a topic of its own.
%%
%% The protocol gets `{up, Node}' and `{down, Node, Why}' of neighbours; the casts `{told, A, B}', a broadcast of `{A, B}' to its topic, and `{missed, N}', that some are not to be
%% had, N of them because it was slow; and it may say the deed `{broadcast, Payload}', which goes to its topic. When the application `atoll' is stopped the process
%% ends, with `{shutdown, not_running}'.
-module(atoll_handler_process).

-behaviour(atoll_interpreter).

-export([start_link/4, ask/3]).
-export([open/1, act/2, event/2]).

-export_type([topic/0, world/0]).

-type topic() :: {module(), Name :: atom()}.

-record(world, {
    topic :: topic(),
    bound :: atoll_events:bound(),
    %% Of the broadcasts that found no room, those that the protocol knows of.
    dropped = 0 :: non_neg_integer()
}).

-opaque world() :: #world{}.

%% @doc Starts the process of that topic and name. What the protocol is given is `Further' with `self', `seed' and its options, complete; `queue_max' broadcasts may wait for it.
-spec start_link(topic(), Protocol :: module(), atoll_options:options(), Further :: map()) ->
    gen_server:start_ret() | {error, atoll_overlay:error() | atoll_options:error()}.
start_link({_, Name} = Topic, Protocol, Given, Further) ->
    case {atoll_overlay:is_on(), atoll_options:complete(Protocol, Given)} of
        {ok, {ok, Options}} ->
            Config = Further#{topic => Topic, self => node(), seed => rand:uniform(1 bsl 32), options => Options},
            atoll_interpreter:start_link(#{name => Name, protocol => Protocol, process => ?MODULE, config => Config});
        {{error, _} = Error, _} ->
            Error;
        {_, {error, _} = Error} ->
            Error
    end.

%% @doc What the protocol of that name answers; or that there is none, which is called so.
-spec ask(What :: atom(), Name :: atom(), Request :: term()) -> Answer :: term() | {error, {atom(), atom()}}.
ask(What, Name, Request) ->
    try
        atoll_interpreter:call(Name, Request)
    catch
        exit:{noproc, {gen_server, call, _}} -> {error, {What, Name}}
    end.

%% @private
-spec open(map()) -> world().
open(#{topic := Topic, options := #{queue_max := Max}}) ->
    Bound = atoll_events:bound(Max),
    %% With the application the subscriptions are gone.
    _ = erlang:monitor(process, atoll_events:owner()),
    ok = atoll_events:subscribe([neighbour_up, neighbour_down, missed]),
    ok = atoll_events:subscribe([{broadcast, Topic}], Bound),
    %% One that comes between the two lines is heard of twice, which does no harm.
    _ = [self() ! {atoll, neighbour_up, #{node => Node}} || Node <- atoll_overlay:neighbours()],
    #world{topic = Topic, bound = Bound}.

%% @private
-spec act(atoll_protocol:effect(), world()) -> world().
act({act, {broadcast, Payload}}, #world{topic = Topic} = World) ->
    %% What the overlay does not take a comparison brings.
    _ = atoll_overlay:broadcast(Topic, Payload),
    World.

%% @private
-spec event(term(), world()) -> {[atoll_hidden:outside()], world()}.
event({atoll, broadcast, #{payload := {A, B}}}, #world{bound = Bound, dropped = Seen} = World) ->
    Told = {cast, {told, A, B}},
    case {atoll_events:took(Bound), atoll_events:dropped(Bound)} of
        %% What found no room is asked for when there is room again.
        {0, Dropped} when Dropped > Seen -> {[Told, {cast, {missed, Dropped - Seen}}], World#world{dropped = Dropped}};
        _ -> {[Told], World}
    end;
event({atoll, missed, #{}}, World) ->
    %% Of whatever topic.
    {[{cast, {missed, 0}}], World};
event({atoll, neighbour_up, #{node := Node}}, World) ->
    {[{up, Node}], World};
event({atoll, neighbour_down, #{node := Node, reason := Reason}}, World) ->
    {[{down, Node, Reason}], World};
event({'DOWN', _Ref, process, _Pid, _Reason}, _World) ->
    exit({shutdown, not_running}).
