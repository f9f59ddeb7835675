%% SPDX-License-Identifier: Apache-2.0
%% @doc The network between the nodes of a simulated world: how long a message
%% takes, whether it arrives, once or twice, and who can reach whom. Pure; what is
%% random is drawn from the network's own generator, so that a world in which
%% somebody looks closer takes the same course.
-module(atoll_sim_net).

-export([new/2, rate/0, delay/3, sample/3, deliver/4, reaches/3, bulk/3, came/5, set/2]).

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
    %% A program of each From sends so much to each To, 0 for nothing, since that time. The last
    %% one for a pair counts.
    | {bulk, From :: [node()], To :: [node()], 0 | atoll_sim_bulk:rate(), Since :: integer()}
    %% What a link carries in a second, and what its queue holds: in bytes.
    | {rate, pos_integer(), Queue :: pos_integer()}
    | {duplicate, Share :: float()}
    %% This share of messages takes up to Ms longer and may be overtaken.
    | {reorder, Share :: float(), Ms :: pos_integer()}
    %% Nodes of different parts do not reach each other.
    | {partition, [[node()]]}
    %% One way.
    | {cut, From :: [node()], To :: [node()]}
    %% Takes one such cut back.
    | {mend, From :: [node()], To :: [node()]}
    %% No partition, cut, loss, delay, bulk, duplicate or disorder any more.
    | heal.

-type fate() ::
    lost
    %% The sender finds the link's queue full.
    | busy
    %% After Ms, and not before what was sent before it; or whenever it comes.
    | {in_order, Ms :: non_neg_integer()}
    | {out_of_order, Ms :: non_neg_integer()}
    | {twice, Ms :: non_neg_integer(), Again :: non_neg_integer()}.

%% Unless it is told: a gigabit a second, less what is not payload; and what `+zdbbl' is then.
-define(RATE, 115000000).
-define(QUEUE, (1024 * 1024)).

-record(net, {
    rand :: rand:state(),
    latency :: latency(),
    loss = 0.0 :: float(),
    %% Of losses and delays one for each From and To; and newest first.
    losses = [] :: [{#{node() => []}, #{node() => []}, float()}],
    delays = [] :: [{#{node() => []}, #{node() => []}, non_neg_integer()}],
    rate = ?RATE :: pos_integer(),
    queue = ?QUEUE :: pos_integer(),
    bulks = [] :: [{#{node() => []}, #{node() => []}, {0 | atoll_sim_bulk:rate(), Since :: integer()}}],
    %% The links that were looked at since.
    busy = #{} :: #{{node(), node()} => atoll_sim_bulk:bulk()},
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

%% @doc What a link carries in a second and what its queue holds, in bytes, unless it is told.
-spec rate() -> #{rate | queue := pos_integer()}.
rate() ->
    #{rate => ?RATE, queue => ?QUEUE}.

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

%% @doc What becomes of a message that is sent now, if the sender does not wait for room.
-spec deliver(node(), node(), Now :: integer(), net()) -> {fate(), net()}.
deliver(From, To, _Now, #net{is_whole = true} = Net0) ->
    {Ms, Net} = delay(From, To, Net0),
    {{in_order, Ms}, Net};
deliver(From, To, Now, Net0) ->
    case offer(From, To, Now, Net0) of
        {full, Net} ->
            {busy, Net};
        {{wait, Ms}, Net} ->
            case reaches(From, To, Net) of
                false -> {lost, Net};
                true -> survive(From, To, Ms, chance(loss(From, To, Net), Net))
            end
    end.

survive(_From, _To, _Waits, {true, Net}) ->
    {lost, Net};
survive(From, To, Waits, {false, #net{reorder = {Share, More}, duplicate = Duplicate} = Net0}) ->
    {Travels, Net1} = delay(From, To, Net0),
    Late = Waits + late(From, To, Net0),
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

%% @doc What a program sends from one to the other, and since when.
-spec bulk(node(), node(), net()) -> none | {atoll_sim_bulk:rate(), Since :: integer()}.
bulk(From, To, #net{bulks = Bulks}) ->
    case [Bulk || {A, B, Bulk} <- Bulks, is_map_key(From, A), is_map_key(To, B)] of
        [{Rate, Since} | _] when Rate =/= 0 -> {Rate, Since};
        _ -> none
    end.

%% @doc Whether bytes of a program have come from one to the other between these times.
-spec came(node(), node(), Since :: integer(), Now :: integer(), net()) -> {boolean(), net()}.
came(From, To, Since, Now, Net0) ->
    case reaches(From, To, Net0) of
        true -> with_bulk(From, To, Net0, false, fun(Bulk, Rand) -> atoll_sim_bulk:sent(Since, Now, Bulk, Rand) end);
        false -> {false, Net0}
    end.

offer(From, To, Now, Net) ->
    with_bulk(From, To, Net, {wait, 0}, fun(Bulk, Rand) -> atoll_sim_bulk:offer(Now, Bulk, Rand) end).

%% The link is made up when it is first looked at.
with_bulk(_From, _To, #net{bulks = []} = Net, Else, _Fun) ->
    {Else, Net};
with_bulk(From, To, #net{busy = Busy, rand = Rand0} = Net, Else, Fun) ->
    case {Busy, bulk(From, To, Net)} of
        {_, none} ->
            {Else, Net};
        {#{{From, To} := Bulk}, _} ->
            looked(From, To, Fun(Bulk, Rand0), Net);
        {_, {Rate, Since}} ->
            {Bulk, Rand} = atoll_sim_bulk:new(Rate, Net#net.rate, Net#net.queue, Since, Rand0),
            looked(From, To, Fun(Bulk, Rand), Net)
    end.

looked(From, To, {Answer, Bulk, Rand}, #net{busy = Busy} = Net) ->
    {Answer, Net#net{busy = Busy#{{From, To} => Bulk}, rand = Rand}}.

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
set({bulk, From, To, Rate, Since}, #net{bulks = Bulks} = Net) ->
    faulty(Net#net{bulks = anew(From, To, {Rate, Since}, Bulks), busy = #{}});
set({rate, Rate, Queue}, Net) ->
    Net#net{rate = Rate, queue = Queue};
set({duplicate, Share}, Net) -> faulty(Net#net{duplicate = float(Share)});
set({reorder, Share, Ms}, Net) -> faulty(Net#net{reorder = {float(Share), Ms}});
set({partition, Parts}, Net) ->
    Numbered = lists:zip(lists:seq(1, length(Parts)), Parts),
    faulty(Net#net{parts = maps:from_list([{Node, N} || {N, Part} <- Numbered, Node <- Part])});
set({cut, From, To}, #net{cuts = Cuts} = Net) ->
    faulty(Net#net{cuts = [{all(From), all(To)} | Cuts]});
set({mend, From, To}, #net{cuts = Cuts} = Net) ->
    faulty(Net#net{cuts = lists:delete({all(From), all(To)}, Cuts)});
set(heal, #net{rand = Rand, latency = Latency, rate = Rate, queue = Queue}) ->
    #net{rand = Rand, latency = Latency, rate = Rate, queue = Queue}.

faulty(#net{} = Net) ->
    Net#net{is_whole = Net#net{is_whole = true} =:= set(heal, Net)}.

%% What is said again of these takes the place of what was said before.
anew(From, To, New, Said) ->
    A = all(From),
    B = all(To),
    [{A, B, New} | [Other || {C, D, _} = Other <- Said, {C, D} =/= {A, B}]].

all(Nodes) ->
    maps:from_keys(Nodes, []).
