%% @doc The network between the nodes of a simulated world: how long a message
%% takes, whether it arrives, once or twice, and who can reach whom. Pure; what is
%% random is drawn from the network's own generator, so that a world in which
%% somebody looks closer takes the same course.
-module(atoll_sim_net).

-export([new/2, delay/3, sample/3, deliver/3, reaches/3, set/2]).

-export_type([net/0, latency/0, setting/0, fate/0]).

-type latency() ::
    %% One way, in milliseconds.
    {constant, Ms :: non_neg_integer()}
    | {uniform, Min :: non_neg_integer(), Max :: non_neg_integer()}
    | {exponential, Mean :: number()}
    %% Sigma is the standard deviation of the logarithm.
    | {lognormal, Median :: number(), Sigma :: number()}
    %% Each node is in one region, by the hash of its name. Round trips from region
    %% to region, halved on the way, times a factor from 1 to 1 + Jitter.
    | {regions, [[number(), ...], ...], Jitter :: number()}
    %% Four regions of a planet.
    | regions.

-type setting() ::
    {latency, latency()}
    | {loss, Share :: float()}
    %% Said again of the same From and To it replaces what was said; of different ones the
    %% largest for a pair counts.
    | {loss, From :: [node()], To :: [node()], Share :: float()}
    %% The last one for a pair counts.
    | {delay, From :: [node()], To :: [node()], Ms :: non_neg_integer()}
    | {duplicate, Share :: float()}
    %% This share of messages takes up to Ms longer and may be overtaken.
    | {reorder, Share :: float(), Ms :: pos_integer()}
    %% Nodes of different parts do not reach each other.
    | {partition, [[node()]]}
    %% One way.
    | {cut, From :: [node()], To :: [node()]}
    %% Takes one such cut back.
    | {mend, From :: [node()], To :: [node()]}
    %% No partition, cut, loss, delay, duplicate or disorder any more.
    | heal.

-type fate() ::
    lost
    %% After Ms, and not before what was sent before it; or whenever it comes.
    | {in_order, Ms :: non_neg_integer()}
    | {out_of_order, Ms :: non_neg_integer()}
    | {twice, Ms :: non_neg_integer(), Again :: non_neg_integer()}.

-record(net, {
    rand :: rand:state(),
    latency :: latency(),
    loss = 0.0 :: float(),
    %% Of losses and delays one for each From and To; and newest first.
    losses = [] :: [{#{node() => []}, #{node() => []}, float()}],
    delays = [] :: [{#{node() => []}, #{node() => []}, non_neg_integer()}],
    duplicate = 0.0 :: float(),
    reorder = {0.0, 1} :: {float(), pos_integer()},
    %% Node => its part; who is in none reaches all.
    parts = #{} :: #{node() => pos_integer()},
    cuts = [] :: [{#{node() => []}, #{node() => []}}],
    %% Nothing but latency: the usual case, which is to be quick.
    is_whole = true :: boolean()
}).

-opaque net() :: #net{}.

%% Round trips between four regions, near to what is measured between data centres
%% of Europe, the east and the west of North America, and East Asia.
-define(PLANET, {regions, [[2, 80, 140, 220], [80, 2, 64, 170], [140, 64, 2, 110], [220, 170, 110, 2]], 0.1}).

%% @doc A network that loses nothing.
-spec new(latency(), Seed :: integer()) -> net().
new(Latency, Seed) ->
    #net{rand = rand:seed_s(exsss, Seed), latency = known(Latency)}.

known(regions) -> ?PLANET;
known(Latency) -> Latency.

%% @doc How long something takes from one node to another, just now.
-spec delay(node(), node(), net()) -> {non_neg_integer(), net()}.
delay(From, To, #net{latency = Latency, rand = Rand0} = Net) ->
    {Ms, Rand} = draw(Latency, From, To, Rand0),
    {Ms, Net#net{rand = Rand}}.

%% @doc How long it might take, without using up the network's random numbers.
-spec sample(node(), node(), net()) -> non_neg_integer().
sample(From, To, #net{latency = Latency}) ->
    {Ms, _} = draw(Latency, From, To, rand:seed_s(exsss, erlang:phash2({From, To}))),
    Ms.

draw({uniform, Min, Max}, _, _, Rand0) ->
    {N, Rand} = rand:uniform_s(Max - Min + 1, Rand0),
    {Min + N - 1, Rand};
draw({constant, Ms}, _, _, Rand) ->
    {Ms, Rand};
draw({exponential, Mean}, _, _, Rand0) ->
    {X, Rand} = rand:uniform_s(Rand0),
    {round(-Mean * math:log(1.0 - X)), Rand};
draw({lognormal, Median, Sigma}, _, _, Rand0) ->
    {Z, Rand} = rand:normal_s(Rand0),
    {round(Median * math:exp(Sigma * Z)), Rand};
draw({regions, Rows, Jitter}, From, To, Rand0) ->
    Count = length(Rows),
    RoundTrip = lists:nth(region(To, Count), lists:nth(region(From, Count), Rows)),
    {X, Rand} = rand:uniform_s(Rand0),
    {round(RoundTrip / 2 * (1 + X * Jitter)), Rand}.

%% In which of Count regions a node is, from 1 on.
region(Node, Count) ->
    1 + erlang:phash2(Node, Count).

%% @doc What becomes of a message.
-spec deliver(node(), node(), net()) -> {fate(), net()}.
deliver(From, To, #net{is_whole = true} = Net0) ->
    {Ms, Net} = delay(From, To, Net0),
    {{in_order, Ms}, Net};
deliver(From, To, Net0) ->
    case reaches(From, To, Net0) of
        false -> {lost, Net0};
        true -> survive(From, To, chance(loss(From, To, Net0), Net0))
    end.

survive(_From, _To, {true, Net}) ->
    {lost, Net};
survive(From, To, {false, #net{reorder = {Share, More}, duplicate = Duplicate} = Net0}) ->
    {Travels, Net1} = delay(From, To, Net0),
    Late = late(From, To, Net0),
    Ms = Travels + Late,
    {IsTwice, Net2} = chance(Duplicate, Net1),
    {IsLate, Net3} = chance(Share, Net2),
    case {IsTwice, IsLate} of
        {true, _} ->
            {Again, Net} = delay(From, To, Net3),
            {{twice, Ms, Again + Late}, Net};
        {false, true} ->
            {N, Rand} = rand:uniform_s(More, Net3#net.rand),
            {{out_of_order, Ms + N}, Net3#net{rand = Rand}};
        {false, false} ->
            {{in_order, Ms}, Net3}
    end.

%% No random number is drawn for what cannot happen.
chance(Share, Net) when Share == 0 ->
    {false, Net};
chance(Share, #net{rand = Rand0} = Net) ->
    {X, Rand} = rand:uniform_s(Rand0),
    {X < Share, Net#net{rand = Rand}}.

loss(From, To, #net{loss = Loss, losses = Losses}) ->
    lists:max([Loss | [Share || {A, B, Share} <- Losses, is_map_key(From, A), is_map_key(To, B)]]).

late(From, To, #net{delays = Delays}) ->
    case [Ms || {A, B, Ms} <- Delays, is_map_key(From, A), is_map_key(To, B)] of
        [Ms | _] -> Ms;
        [] -> 0
    end.

%% @doc Whether what From sends can get to To at all.
-spec reaches(node(), node(), net()) -> boolean().
reaches(_From, _To, #net{is_whole = true}) ->
    true;
reaches(From, To, #net{parts = Parts, cuts = Cuts}) ->
    SamePart =
        case Parts of
            #{From := A, To := B} -> A =:= B;
            #{} -> true
        end,
    SamePart andalso not lists:any(fun({A, B}) -> is_map_key(From, A) andalso is_map_key(To, B) end, Cuts).

%% @doc Changes the network.
-spec set(setting(), net()) -> net().
set({latency, Latency}, Net) -> Net#net{latency = known(Latency)};
set({loss, Share}, Net) -> faulty(Net#net{loss = float(Share)});
set({loss, From, To, Share}, #net{losses = Losses} = Net) ->
    faulty(Net#net{losses = anew(From, To, float(Share), Losses)});
set({delay, From, To, Ms}, #net{delays = Delays} = Net) ->
    faulty(Net#net{delays = anew(From, To, Ms, Delays)});
set({duplicate, Share}, Net) -> faulty(Net#net{duplicate = float(Share)});
set({reorder, Share, Ms}, Net) -> faulty(Net#net{reorder = {float(Share), Ms}});
set({partition, Parts}, Net) ->
    Numbered = lists:zip(lists:seq(1, length(Parts)), Parts),
    faulty(Net#net{parts = maps:from_list([{Node, N} || {N, Part} <- Numbered, Node <- Part])});
set({cut, From, To}, #net{cuts = Cuts} = Net) ->
    faulty(Net#net{cuts = [{all(From), all(To)} | Cuts]});
set({mend, From, To}, #net{cuts = Cuts} = Net) ->
    faulty(Net#net{cuts = lists:delete({all(From), all(To)}, Cuts)});
set(heal, #net{rand = Rand, latency = Latency}) ->
    #net{rand = Rand, latency = Latency}.

faulty(#net{} = Net) ->
    Empty = (new({constant, 0}, 0))#net{rand = Net#net.rand, latency = Net#net.latency},
    Net#net{is_whole = Net#net{is_whole = true} =:= Empty}.

%% What is said again of these takes the place of what was said before.
anew(From, To, New, Said) ->
    A = all(From),
    B = all(To),
    [{A, B, New} | [Other || {C, D, _} = Other <- Said, {C, D} =/= {A, B}]].

all(Nodes) ->
    maps:from_keys(Nodes, []).
