%% SPDX-License-Identifier: Apache-2.0
%% @doc The program itself, pure: which objects there are, what a client reads of them, and what changes.
%%
%% <dl>
%% <dt>`ads'</dt><dd>a set, the advertisements that may be shown</dd>
%% <dt>`contracts'</dt><dd>a set of `{Ad, Budget}'</dd>
%% <dt>`{impressions, Ad}'</dt><dd>a counter that only grows</dd>
%% <dt>`{most, Ad}'</dt><dd>a register with the greatest count that any client has seen</dd>
%% <dt>`seen'</dt><dd>a set of the clients that have seen all disabled</dd>
%% </dl>
%% A client shows what is in `ads' and has a contract: the product of both sets, filtered, as in Lasp's program of the paper.
%% Who may show, the counter does not say: off line a client counts on, and so more may be shown than was paid for.
-module(adcounter_program).

-export([contracts/2, to_show/1, is_over/1, shown/2, triggered/2, seen/1, impressions/2, overcount/2]).

-export_type([read/0, change/0, ad/0]).

-type ad() :: pos_integer().

-type read() :: fun((atoll_crdt_replica_core:name()) -> {ok, Value :: term()} | none).
%% How an object is read.

-type change() :: {atoll_crdt_replica_core:name(), atoll_crdt:type(), atoll_crdt:operation()}.

%% @doc What a server begins with: so many advertisements, each with a contract.
-spec contracts(Ads :: pos_integer(), Budget :: pos_integer()) -> [change()].
contracts(Ads, Budget) ->
    [Change || Ad <- lists:seq(1, Ads), Change <- [{contracts, set, {add, {Ad, Budget}}}, {ads, set, {add, Ad}}]].

%% @doc The advertisements that may be shown.
-spec to_show(read()) -> [ad()].
to_show(Read) ->
    lists:usort([Ad || Ad <- elements(ads, Read), {Contract, _} <- elements(contracts, Read), Ad =:= Contract]).

%% @doc Whether there were advertisements, and none is left.
-spec is_over(read()) -> boolean().
is_over(Read) -> elements(contracts, Read) =/= [] andalso Read(ads) =:= {ok, []}.

%% @doc An advertisement is shown.
-spec shown(ad(), read()) -> [change()].
shown(Ad, Read) -> [{{impressions, Ad}, gcounter, increment}, {{most, Ad}, max, {put, impressions(Ad, Read) + 1}}].

%% @doc What the trigger of a counter does when that has changed: at its limit the advertisement is taken away.
-spec triggered(ad(), read()) -> [change()].
triggered(Ad, Read) ->
    Limits = [Budget || {Contract, Budget} <- elements(contracts, Read), Contract =:= Ad],
    case Limits =/= [] andalso impressions(Ad, Read) >= lists:max(Limits) andalso lists:member(Ad, elements(ads, Read)) of
        true -> [{ads, set, {remove, Ad}}];
        false -> []
    end.

%% @doc A client reports that it has seen all disabled.
-spec seen(Client :: node()) -> [change()].
seen(Client) -> [{seen, set, {add, Client}}].

%% @doc How often an advertisement was shown, as far as is known here.
-spec impressions(ad(), read()) -> non_neg_integer().
impressions(Ad, Read) ->
    case Read({impressions, Ad}) of
        {ok, N} -> N;
        none -> 0
    end.

%% @doc How many impressions are over the budget, all advertisements together, and their share of it in percent.
-spec overcount([Impressions :: non_neg_integer(), ...], Budget :: pos_integer()) -> {non_neg_integer(), float()}.
overcount(Counts, Budget) ->
    Over = lists:sum([max(0, N - Budget) || N <- Counts]),
    {Over, Over * 100 / (Budget * length(Counts))}.

elements(Name, Read) ->
    case Read(Name) of
        {ok, Elements} -> Elements;
        none -> []
    end.
