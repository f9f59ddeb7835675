%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The locks that operations, of this node and of others, have or want at
%% this node: one {@link atoll_group_lock} for each group name in use, and what
%% each operation asked for. Data only.
-module(atoll_group_locks).

-export([new/1, ask/4, find/2, release/2, of_node/2]).

-export_type([locks/0, purpose/0, tag/0]).

-type stamp() :: atoll_group_view:stamp().

-type purpose() ::
    %% To become a member of that group / to change it as a member of it.
    {join | change, atoll_group_view:id()}.

-type tag() :: {Attempt :: pos_integer(), Sent :: atoll_protocol:now_ms()}.
%% Which attempt of the operation asks, and when by its node's clock. It goes back
%% with the answer and means nothing here.

-record(locks, {
    locks = #{} :: #{atom() => atoll_group_lock:lock()},
    asks = #{} :: #{stamp() => {tag(), purpose()}},
    max :: pos_integer()
}).

-opaque locks() :: #locks{}.

%% @doc Nobody asked yet. At most `Max' operations may have or want a lock.
-spec new(pos_integer()) -> locks().
new(Max) -> #locks{max = Max}.

%% @doc An operation wants a lock, or asks again. One that is told `die' is not
%% remembered.
-spec ask(stamp(), tag(), purpose(), locks()) ->
    {granted | waiting | die, locks()}.
ask(Stamp, _Tag, _Purpose, #locks{asks = Asks, max = Max} = All) when
    map_size(Asks) >= Max, not is_map_key(Stamp, Asks)
->
    {die, All};
ask(Stamp, Tag, {_, {Name, _}} = Purpose, #locks{asks = Asks, locks = Locks} = All) ->
    case atoll_group_lock:request(Stamp, maps:get(Name, Locks, atoll_group_lock:new())) of
        {die, _} ->
            {die, All};
        {Answer, Lock} ->
            {Answer, All#locks{
                locks = Locks#{Name => Lock},
                asks = Asks#{Stamp => {Tag, Purpose}}
            }}
    end.

%% @doc What the operation of that stamp asked for.
-spec find(stamp(), locks()) -> none | {tag(), purpose()}.
find(Stamp, #locks{asks = Asks}) ->
    maps:get(Stamp, Asks, none).

%% @doc The operation no longer has or wants a lock. Says who has it now,
%% if that is news.
-spec release(stamp(), locks()) -> {none | stamp(), locks()}.
release(Stamp, #locks{asks = Asks0, locks = Locks} = All) ->
    case maps:take(Stamp, Asks0) of
        {{_, {_, {Name, _}}}, Asks} ->
            #{Name := Lock0} = Locks,
            case atoll_group_lock:release(Stamp, Lock0) of
                {free, _} ->
                    {none, All#locks{asks = Asks, locks = maps:remove(Name, Locks)}};
                {unchanged, Lock} ->
                    {none, All#locks{asks = Asks, locks = Locks#{Name := Lock}}};
                {{granted, Next}, Lock} ->
                    {Next, All#locks{asks = Asks, locks = Locks#{Name := Lock}}}
            end;
        error ->
            {none, All}
    end.

%% @doc The operations that `Node' runs and that have or want a lock here.
-spec of_node(node(), locks()) -> [stamp()].
of_node(Node, #locks{asks = Asks}) ->
    lists:sort([Stamp || {_, N, _} = Stamp <- maps:keys(Asks), N =:= Node]).
