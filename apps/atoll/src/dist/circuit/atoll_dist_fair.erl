%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Who is next: items of many flows go in, and come out so that each flow gets the
%% same share of bytes and one that has little to say waits for nobody.
%%
%% It is deficit round robin (Shreedhar and Varghese, 1995) with the new flows' turn
%% before the old ones' (as in RFC 8290): a flow that has just got something to say is
%% new until it has used one quantum. So a flow of few bytes is served at once however
%% many are busy, and among the busy none is ahead of another by more than a quantum and
%% an item. New flows delay the old ones by a quantum each at most, since one that falls
%% silent has a turn among the old before it can be new again.
%%
%% A flow can have one urgent item, an `ack', which comes before its others; two are joined.
-module(atoll_dist_fair).

-export([new/0, push/4, urgent/4, take/1, drop/2, is_empty/1]).

-export_type([fair/0, flow/0, item/0]).

-type flow() :: term().
-type item() :: binary().

-record(flow, {
    items = queue:new() :: queue:queue({item(), Cost :: pos_integer()}),
    urgent = none :: none | {item(), Cost :: pos_integer()},
    deficit :: integer()
}).

-record(fair, {
    %% How many items there are.
    count = 0 :: non_neg_integer(),
    flows = #{} :: #{flow() => #flow{}},
    %% Each flow that there is stands in one of them; a flow that was dropped may too.
    new = queue:new() :: queue:queue(flow()),
    old = queue:new() :: queue:queue(flow())
}).

-opaque fair() :: #fair{}.

-define(QUANTUM, 16384).

%% @doc No flow.
-spec new() -> fair().
new() -> #fair{}.

%% @doc Whether nothing waits.
-spec is_empty(fair()) -> boolean().
is_empty(#fair{count = Count}) -> Count =:= 0.

%% @doc An item of a flow.
-spec push(flow(), item(), pos_integer(), fair()) -> fair().
push(Name, Item, Cost, Fair0) ->
    {#flow{items = Items} = Flow, #fair{count = Count, flows = Flows} = Fair} = flow(Name, Fair0),
    Fair#fair{count = Count + 1, flows = Flows#{Name => Flow#flow{items = queue:in({Item, Cost}, Items)}}}.

%% @doc An `ack', which goes before the flow's others. If one waits already it is made one
%% of both, which costs the same.
-spec urgent(flow(), item(), pos_integer(), fair()) -> {new | joined, fair()}.
urgent(Name, Item, Cost, Fair0) ->
    case flow(Name, Fair0) of
        {#flow{urgent = none} = Flow, #fair{count = Count, flows = Flows} = Fair} ->
            {new, Fair#fair{count = Count + 1, flows = Flows#{Name => Flow#flow{urgent = {Item, Cost}}}}};
        {#flow{urgent = {Other, Cost}} = Flow, #fair{flows = Flows} = Fair} ->
            Joined = atoll_dist_circuit_frame:joined(Other, Item),
            {joined, Fair#fair{flows = Flows#{Name => Flow#flow{urgent = {Joined, Cost}}}}}
    end.

flow(Name, #fair{flows = Flows, new = New} = Fair) ->
    case Flows of
        #{Name := Flow} -> {Flow, Fair};
        #{} -> {#flow{deficit = ?QUANTUM}, Fair#fair{new = queue:in(Name, New)}}
    end.

%% @doc The next item.
-spec take(fair()) -> {flow(), item(), pos_integer(), fair()} | empty.
take(#fair{count = 0}) -> empty;
take(#fair{new = New, old = Old} = Fair) ->
    case queue:out(New) of
        {{value, Name}, Rest} -> turn(Name, new, Fair#fair{new = Rest});
        {empty, _} ->
            {{value, Name}, Rest} = queue:out(Old),
            turn(Name, old, Fair#fair{old = Rest})
    end.

turn(Name, Age, #fair{flows = Flows} = Fair) ->
    case Flows of
        #{Name := #flow{deficit = Deficit} = Flow} when Deficit =< 0 ->
            take(last(Name, Flow#flow{deficit = Deficit + ?QUANTUM}, Fair));
        #{Name := #flow{urgent = {Item, Cost}, deficit = Deficit} = Flow} ->
            {Name, Item, Cost, taken(Name, Age, Flow#flow{urgent = none, deficit = Deficit - Cost}, Fair)};
        #{Name := #flow{items = Items0, deficit = Deficit} = Flow} ->
            case queue:out(Items0) of
                {{value, {Item, Cost}}, Items} ->
                    {Name, Item, Cost, taken(Name, Age, Flow#flow{items = Items, deficit = Deficit - Cost}, Fair)};
                {empty, _} when Age =:= new ->
                    take(last(Name, Flow, Fair));
                {empty, _} ->
                    take(Fair#fair{flows = maps:remove(Name, Flows)})
            end;
        #{} ->
            take(Fair)
    end.

%% The last item: nobody has a debt to anybody.
taken(_Name, _Age, _Flow, #fair{count = 1}) ->
    #fair{};
taken(Name, Age, Flow, #fair{count = Count, flows = Flows, new = New, old = Old} = Fair0) ->
    Fair = Fair0#fair{count = Count - 1, flows = Flows#{Name => Flow}},
    case Age of
        new -> Fair#fair{new = queue:in_r(Name, New)};
        old -> Fair#fair{old = queue:in_r(Name, Old)}
    end.

last(Name, Flow, #fair{flows = Flows, old = Old} = Fair) ->
    Fair#fair{flows = Flows#{Name => Flow}, old = queue:in(Name, Old)}.

%% @doc Without a flow and all that it has; what that costs. The flow's name must not come
%% again.
-spec drop(flow(), fair()) -> {non_neg_integer(), fair()}.
drop(Name, #fair{count = Count, flows = Flows} = Fair) ->
    case Flows of
        #{Name := #flow{items = Items, urgent = Urgent}} ->
            Gone = [Urgent || Urgent =/= none] ++ queue:to_list(Items),
            {lists:sum([Cost || {_, Cost} <- Gone]), Fair#fair{count = Count - length(Gone), flows = maps:remove(Name, Flows)}};
        #{} ->
            {0, Fair}
    end.
