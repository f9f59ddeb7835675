%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Where this node has sent how much lately: its own claims at other nodes, so that its
%% next choice goes elsewhere first. Pure.
-module(atoll_attr_sent).

-export([new/1, add/4, remove/3, is_sent/3, counts/1, ended/2]).

-export_type([sent/0]).

-record(sent, {
    hold_ms :: pos_integer(),
    counts = #{} :: #{node() => pos_integer()},
    live = #{} :: #{{node(), term()} => []},
    %% Oldest first; some of them are removed already.
    ends = queue:new() :: queue:queue({Until :: integer(), node(), term()})
}).

-opaque sent() :: #sent{}.

%% @doc Nothing; what is added is there for so long.
-spec new(HoldMs :: pos_integer()) -> sent().
new(HoldMs) ->
    #sent{hold_ms = HoldMs}.

%% @doc Something was sent to that node, known by this name.
-spec add(node(), term(), atoll_protocol:now_ms(), sent()) -> sent().
add(Node, Id, Now, #sent{live = Live, hold_ms = Ms, ends = Ends, counts = Counts} = Sent) ->
    case Live of
        #{{Node, Id} := _} ->
            Sent;
        #{} ->
            Sent#sent{
                live = Live#{{Node, Id} => []},
                ends = queue:in({Now + Ms, Node, Id}, Ends),
                counts = maps:update_with(Node, fun(N) -> N + 1 end, 1, Counts)
            }
    end.

%% @doc It does not go there after all.
-spec remove(node(), term(), sent()) -> sent().
remove(Node, Id, #sent{live = Live, counts = Counts} = Sent) ->
    case maps:take({Node, Id}, Live) of
        {[], Rest} -> Sent#sent{live = Rest, counts = less(Node, Counts)};
        error -> Sent
    end.

less(Node, Counts) ->
    case Counts of
        #{Node := 1} -> maps:remove(Node, Counts);
        #{Node := N} -> Counts#{Node := N - 1}
    end.

%% @doc Whether it was sent there, lately, and goes there still.
-spec is_sent(node(), term(), sent()) -> boolean().
is_sent(Node, Id, #sent{live = Live}) ->
    is_map_key({Node, Id}, Live).

%% @doc How much was sent where.
-spec counts(sent()) -> #{node() => pos_integer()}.
counts(#sent{counts = Counts}) ->
    Counts.

%% @doc Without what is over by now.
-spec ended(atoll_protocol:now_ms(), sent()) -> sent().
ended(Now, #sent{ends = Ends} = Sent) ->
    case queue:peek(Ends) of
        {value, {Until, Node, Id}} when Until =< Now ->
            ended(Now, remove(Node, Id, Sent#sent{ends = queue:drop(Ends)}));
        _ ->
            Sent
    end.
