%% SPDX-License-Identifier: Apache-2.0
-module(im_client_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% What is accepted is told to the peer's owner once and in order, whatever dies.

properties_test_() ->
    atoll_prop:tests([
        {accepted_is_told_once_and_in_order, accepted_once(resume), 3000},
        {accepted_is_told_once_and_in_order_with_nothing_kept, accepted_once(plain), 2000}
    ]).

accepted_once(Kind) ->
    ?FORALL(Steps, list(step()),
        begin
            World = im_client_model:settle(lists:foldl(fun im_client_model:step/2, im_client_model:new(Kind), Steps)),
            Wrong = im_client_model:faults(World) ++ wrong(a, b, World) ++ wrong(b, a, World),
            ?WHENFAIL(io:format("~tp~n", [Wrong]), Wrong =:= [])
        end).

wrong(From, To, World) ->
    Said = im_client_model:said(From, World),
    Told = im_client_model:told(To, World),
    {Accepted, Unsure} = im_client_model:done(From, World),
    [{not_decided, Said -- (Accepted ++ Unsure)} || length(Said) =/= length(Accepted) + length(Unsure)]
        ++ [{lost, Accepted -- Told} || Accepted -- Told =/= []]
        ++ [{invented_or_twice, Told -- (Accepted ++ Unsure)} || Told -- (Accepted ++ Unsure) =/= []]
        ++ [{out_of_order, Told} || not is_part(Told, Said)].

%% Whether the first stands in the second, in its order.
is_part([], _) -> true;
is_part([Is | Part], [Is | Whole]) -> is_part(Part, Whole);
is_part(Part, [_ | Whole]) -> is_part(Part, Whole);
is_part(_, []) -> false.

step() ->
    frequency([
        {8, {say, side()}},
        {12, {up, side(), range(1, 4)}},
        {12, {down, side(), range(1, 4)}},
        {6, {acknowledge, side()}},
        {4, {pass, oneof([100, 1000, 3000])}},
        {2, {twice, side()}},
        {2, {kill_session, oneof([now, later])}},
        {2, {cut, side()}},
        {2, {restart, side()}},
        {2, finish_idle},
        {1, {finish, side()}},
        {1, {full, side(), boolean()}}
    ]).

side() -> oneof([a, b]).
