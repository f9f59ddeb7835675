%% @doc The turns that operations, of this node and of others, have or want at
%% this node: one {@link atoll_group_lock} for each group name in use, and what
%% each operation asked for. Data only.
-module(atoll_group_turns).

-export([new/1, ask/4, find/2, release/2, of_node/2]).

-export_type([turns/0, purpose/0, tag/0]).

-type stamp() :: atoll_group_view:stamp().

-type purpose() ::
    %% To become a member of that group / to change it as a member of it.
    {join | change, atoll_group_view:id()}.

-type tag() :: {Attempt :: pos_integer(), Sent :: atoll_protocol:now_ms()}.
%% Which attempt of the operation asks, and when by its node's clock. It goes back
%% with the answer and means nothing here.

-record(turns, {
    locks = #{} :: #{atom() => atoll_group_lock:lock()},
    asks = #{} :: #{stamp() => {tag(), purpose()}},
    max :: pos_integer()
}).

-opaque turns() :: #turns{}.

%% @doc Nobody asked yet. At most `Max' operations may have or want a turn.
-spec new(pos_integer()) -> turns().
new(Max) -> #turns{max = Max}.

%% @doc An operation wants a turn, or asks again. One that is told `die' is not
%% remembered.
-spec ask(stamp(), tag(), purpose(), turns()) ->
    {granted | waiting | die, turns()}.
ask(Stamp, _Tag, _Purpose, #turns{asks = Asks, max = Max} = Turns) when
    map_size(Asks) >= Max, not is_map_key(Stamp, Asks)
->
    {die, Turns};
ask(Stamp, Tag, {_, {Name, _}} = Purpose, #turns{asks = Asks, locks = Locks} = Turns) ->
    case atoll_group_lock:request(Stamp, maps:get(Name, Locks, atoll_group_lock:new())) of
        {die, _} ->
            {die, Turns};
        {Answer, Lock} ->
            {Answer, Turns#turns{
                locks = Locks#{Name => Lock},
                asks = Asks#{Stamp => {Tag, Purpose}}
            }}
    end.

%% @doc What the operation of that stamp asked for.
-spec find(stamp(), turns()) -> none | {tag(), purpose()}.
find(Stamp, #turns{asks = Asks}) ->
    maps:get(Stamp, Asks, none).

%% @doc The operation no longer has or wants a turn. Says whose turn it is now,
%% if that is news.
-spec release(stamp(), turns()) -> {none | stamp(), turns()}.
release(Stamp, #turns{asks = Asks0, locks = Locks} = Turns) ->
    case maps:take(Stamp, Asks0) of
        {{_, {_, {Name, _}}}, Asks} ->
            #{Name := Lock0} = Locks,
            case atoll_group_lock:release(Stamp, Lock0) of
                {free, _} ->
                    {none, Turns#turns{asks = Asks, locks = maps:remove(Name, Locks)}};
                {unchanged, Lock} ->
                    {none, Turns#turns{asks = Asks, locks = Locks#{Name := Lock}}};
                {{granted, Next}, Lock} ->
                    {Next, Turns#turns{asks = Asks, locks = Locks#{Name := Lock}}}
            end;
        error ->
            {none, Turns}
    end.

%% @doc The operations that `Node' runs and that have or want a turn here.
-spec of_node(node(), turns()) -> [stamp()].
of_node(Node, #turns{asks = Asks}) ->
    lists:sort([Stamp || {_, N, _} = Stamp <- maps:keys(Asks), N =:= Node]).
