%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Pings that say something of more than two nodes: those that this node sends for others,
%% which suspect somebody that they do not hear, and those that come again and again from who
%% does not hear this node. Pure data, bounded.
-module(atoll_detector_pings).

-export([new/0, ask/4, answered/2, is_unheard/4, forget/2, refused/1]).

-export_type([pings/0]).

-record(pings, {
    %% Who is pinged for others: when first and last, and for whom.
    asked = #{} :: #{node() => {First :: atoll_protocol:now_ms(), Last :: atoll_protocol:now_ms(), [node(), ...]}},
    %% When each node that pings this one did so last.
    got = #{} :: #{node() => atoll_protocol:now_ms()},
    refused = 0 :: non_neg_integer()
}).

-opaque pings() :: #pings{}.

%% How many nodes are pinged, for how many each, and of how many pings are remembered.
-define(MAX, 32).

%% @doc Nobody is pinged.
-spec new() -> pings().
new() ->
    #pings{}.

%% @doc One asks about another; whether that is to be pinged now. It is not if it was since `Before'.
-spec ask({Asker :: node(), About :: node()}, Before :: integer(), atoll_protocol:now_ms(), pings()) -> {boolean(), pings()}.
ask({Asker, About}, Before, Now, #pings{asked = Asked, refused = Refused} = Pings) ->
    case Asked of
        #{About := {First, Last, Askers0}} ->
            Askers = lists:sublist(lists:usort([Asker | Askers0]), ?MAX),
            case Last > Before of
                true -> {false, Pings#pings{asked = Asked#{About := {First, Last, Askers}}}};
                false -> {true, Pings#pings{asked = Asked#{About := {First, Now, Askers}}}}
            end;
        #{} when map_size(Asked) >= ?MAX ->
            {false, Pings#pings{refused = Refused + 1}};
        #{} ->
            {true, Pings#pings{asked = Asked#{About => {Now, Now, [Asker]}}}}
    end.

%% @doc It has answered: who wants to know, and since when it is certain to have lived; the answer
%% itself may have waited here.
-spec answered(node(), pings()) -> {[{Asker :: node(), Since :: atoll_protocol:now_ms()}], pings()}.
answered(Node, #pings{asked = Asked} = Pings) ->
    case maps:take(Node, Asked) of
        {{First, _, Askers}, Rest} -> {[{Asker, First} || Asker <- Askers], Pings#pings{asked = Rest}};
        error -> {[], Pings}
    end.

%% @doc A node has pinged this one; whether it had done so since `Before', and so does not hear the
%% answers.
-spec is_unheard(node(), Before :: integer(), atoll_protocol:now_ms(), pings()) -> {boolean(), pings()}.
is_unheard(Node, Before, Now, #pings{got = Got, refused = Refused} = Pings) ->
    case Got of
        #{Node := Last} -> {Last >= Before, Pings#pings{got = Got#{Node := Now}}};
        #{} when map_size(Got) < ?MAX -> {false, Pings#pings{got = Got#{Node => Now}}};
        #{} -> {false, Pings#pings{refused = Refused + 1}}
    end.

%% @doc Forgets who was pinged first, or has pinged last, before then.
-spec forget(Before :: integer(), pings()) -> pings().
forget(_Before, #pings{asked = Asked, got = Got} = Pings) when map_size(Asked) + map_size(Got) =:= 0 ->
    Pings;
forget(Before, #pings{asked = Asked, got = Got} = Pings) ->
    Pings#pings{
        asked = maps:filter(fun(_, {First, _, _}) -> First > Before end, Asked),
        got = maps:filter(fun(_, Last) -> Last > Before end, Got)
    }.

%% @doc How many there was no room for.
-spec refused(pings()) -> non_neg_integer().
refused(#pings{refused = Refused}) ->
    Refused.
