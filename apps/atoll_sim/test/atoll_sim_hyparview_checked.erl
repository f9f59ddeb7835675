%% SPDX-License-Identifier: Apache-2.0
%% HyParView, looked at after every event: what it promises at any moment holds, or
%% it crashes.
-module(atoll_sim_hyparview_checked).
-behaviour(atoll_strategy).

-export([options/0, init/2, handle/3, neighbours/1, known/1, summary/1]).

-record(checked, {
    inner :: atoll_hyparview:state(),
    self :: node(),
    options :: atoll_options:options(),
    %% By its notices and effects.
    up = [] :: [node()],
    wanted = [] :: [node()]
}).

options() ->
    atoll_hyparview:options().

init(#{self := Self, options := Options} = Config, Now) ->
    {Inner, Effects} = atoll_hyparview:init(Config, Now),
    check(Effects, #checked{inner = Inner, self = Self, options = Options}).

handle(Event, Now, #checked{inner = Inner0} = Checked) ->
    {Inner, Effects} = atoll_hyparview:handle(Event, Now, Inner0),
    check(Effects, Checked#checked{inner = Inner}).

neighbours(#checked{inner = Inner}) -> atoll_hyparview:neighbours(Inner).
known(#checked{inner = Inner}) -> atoll_hyparview:known(Inner).
summary(#checked{inner = Inner}) -> atoll_hyparview:summary(Inner).

check([], Checked) ->
    {Checked, []};
check(Effects, #checked{inner = Inner, self = Self, options = Options} = Checked0) ->
    Checked = lists:foldl(fun follow/2, Checked0, Effects),
    Active = atoll_hyparview:neighbours(Inner),
    Passive = atoll_hyparview:known(Inner),
    #{pending := Pending} = atoll_hyparview:summary(Inner),
    true = Active =:= lists:usort(Active),
    true = length(Passive) =:= length(lists:usort(Passive)),
    [] = [Node || Node <- Active, lists:member(Node, Passive)],
    false = lists:member(Self, Active ++ Passive),
    true = length(Active) =< maps:get(active_max, Options),
    true = length(Passive) =< maps:get(passive_max, Options),
    true = Pending =< maps:get(pending_max, Options),
    Active = lists:sort(Checked#checked.up),
    Active = lists:sort(Checked#checked.wanted),
    {Checked, Effects}.

follow({notify, {neighbour_up, Node}}, #checked{up = Up} = Checked) ->
    false = lists:member(Node, Up),
    Checked#checked{up = [Node | Up]};
follow({notify, {neighbour_down, Node, _Why}}, #checked{up = Up} = Checked) ->
    true = lists:member(Node, Up),
    Checked#checked{up = lists:delete(Node, Up)};
follow({want, Node}, #checked{wanted = Wanted} = Checked) ->
    false = lists:member(Node, Wanted),
    Checked#checked{wanted = [Node | Wanted]};
follow({unwant, Node}, #checked{wanted = Wanted} = Checked) ->
    true = lists:member(Node, Wanted),
    Checked#checked{wanted = lists:delete(Node, Wanted)};
follow(_Effect, Checked) ->
    Checked.
