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

%% Who chats again with a peer for whom the end waits has the session asked to go on, and says no `finish' more.
a_chat_that_is_wanted_again_goes_on_test() ->
    {Self, Session, Of} = {self(), c:pid(0, 77, 0), {<<"a">>, <<"b">>}},
    Routers = [{router_1, node()}],
    Play = fun(Events) ->
        lists:mapfoldl(fun(Event, Core) -> im_client_core:handle(Event, 0, Core) end,
                       im_client_core:new(<<"a">>, #{self => Self, routers => Routers}), Events)
    end,
    Up = {im, session, Of, 1, Session, 0, away},
    {Effects, _} = Play([start, {im, login_success, c:pid(0, 78, 0), []}, {chat, <<"b">>}, Up, {finish, <<"b">>}, {chat, <<"b">>}, Up]),
    [Finished, Again, Greeted] = [[{To, Message} || {send, To, Message} <- Sent] || Sent <- lists:nthtail(4, Effects)],
    ?assertEqual([{Session, {im, finish, 1, <<"a">>}}], Finished),
    ?assertEqual([{hd(Routers), {im, chat, <<"a">>, <<"b">>, Self}}], Again),
    ?assertEqual([{Session, {im, hello, 1, <<"a">>, Self, 0}}], Greeted).

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

%% One client, and time

another_router_is_asked_until_one_answers_with_growing_pauses_test() ->
    {Asked, _} = lists:mapfoldl(
        fun(_, {Core, At}) ->
            {[{send, {router_1, Node}, {im, login, <<"ann">>, me}}, {wake, Next}], After} = im_client_core:handle(case At of 0 -> start; _ -> tick end, At, Core),
            {{Node, Next - At}, {After, Next}}
        end, {new(#{}), 0}, lists:seq(1, 8)),
    {Nodes, Pauses} = lists:unzip(Asked),
    ?assertEqual([n1, n2, n1, n2, n1, n2, n1, n2], Nodes),
    [Jitter | _] = [Pause - 1000 || Pause <- Pauses],
    ?assertEqual([1000, 1000, 2000, 3000, 4000, 5000, 5000, 5000], [Pause - Jitter || Pause <- Pauses]).

a_new_monitor_in_time_is_no_lost_connection_test() ->
    {_, Down} = im_client_core:handle({down, m1}, 1000, logged_in(#{})),
    {Adopted, In} = im_client_core:handle({im, new_monitor, m2}, 2000, Down),
    ?assertEqual([{monitor, m2}], Adopted),
    {Nothing, _} = im_client_core:handle(tick, 3000, In),
    ?assertEqual([], Nothing),
    {[{tell, {connection, lost}}, {send, _, {im, login, <<"ann">>, me}}, {wake, _}], Lost} = im_client_core:handle(tick, 3000, Down),
    ?assertMatch({[{monitor, m3}, {tell, {connection, back}}], _}, im_client_core:handle({im, login_success, m3, []}, 3100, Lost)).

sixty_four_are_on_the_way_and_so_many_wait_as_was_said_test() ->
    Chat = in_session(#{max_waiting => 10}),
    {Said, Full} = lists:mapfoldl(fun(I, Core) -> im_client_core:handle({say, <<"bob">>, next, integer_to_binary(I), none}, 0, Core) end, Chat, lists:seq(1, 75)),
    Effects = lists:append(Said),
    ?assertEqual(lists:seq(1, 64), [Seq || {send, s1, {im, say, 1, <<"ann">>, Seq, _, none, me}} <- Effects]),
    ?assertEqual([{said, <<"bob">>, 75, too_many_waiting}], [Is || {said, _, _, Why} = Is <- Effects, Why =/= ok]),
    {Next, _} = im_client_core:handle({im, accepted, {<<"ann">>, <<"bob">>}, 1, 3}, 0, Full),
    ?assertEqual([65, 66, 67], [Seq || {send, s1, {im, say, 1, <<"ann">>, Seq, _, none, me}} <- Next]).

a_session_that_accepts_nothing_is_asked_for_and_said_all_again_test() ->
    {_, Said} = im_client_core:handle({say, <<"bob">>, next, <<"x">>, none}, 0, in_session(#{})),
    {Asked, Doubt} = im_client_core:handle(tick, 5000, Said),
    ?assertMatch([_], [Is || {send, {router_1, _}, {im, open, _, <<"ann">>, me}} = Is <- Asked]),
    {Again, _} = im_client_core:handle({im, session, {<<"ann">>, <<"bob">>}, 1, s1, 0, online}, 5010, Doubt),
    ?assertMatch([{im, hello, 1, <<"ann">>, me, 0}, {im, say, 1, <<"ann">>, 1, <<"x">>, none, me}], [Message || {send, s1, Message} <- Again]).

what_comes_is_acknowledged_once_for_several_test() ->
    {Told, Core} = lists:mapfoldl(fun(Seq, Is) -> im_client_core:handle({im, message, {<<"ann">>, <<"bob">>}, 1, <<"bob">>, Seq, <<>>, none}, 0, Is) end, in_session(#{}), [1, 2, 3]),
    ?assertEqual([[{tell, {message, <<"bob">>, Seq, <<>>, none}}] || Seq <- [1, 2, 3]], Told),
    ?assertMatch({[{send, s1, {im, received, 1, <<"ann">>, 3}}], _}, im_client_core:handle(flush, 0, Core)).

a_message_that_is_too_long_or_to_oneself_is_not_taken_test() ->
    Core = in_session(#{max_body => 3}),
    ?assertMatch({[{said, <<"bob">>, 1, too_long}], _}, im_client_core:handle({say, <<"bob">>, next, <<"long">>, none}, 0, Core)),
    ?assertMatch({[{said, <<"ann">>, none, yourself}], _}, im_client_core:handle({say, <<"ann">>, next, <<"x">>, none}, 0, Core)).

what_was_said_in_a_session_that_is_gone_is_unsure_test() ->
    {_, Asking} = im_client_core:handle(start, 0, new(#{resume => #{<<"bob">> => #{mark => {1, 0, 0}, said => 3, accepted => 1, received => 5}}})),
    {_, Core} = im_client_core:handle({im, login_success, m1, [{<<"ann">>, <<"bob">>}]}, 0, Asking),
    {Effects, Later} = im_client_core:handle({im, session, {<<"ann">>, <<"bob">>}, 2, s2, 0, online}, 0, Core),
    ?assertEqual([{refused, <<"bob">>, Seq, unsure} || Seq <- [2, 3]], [Told || {tell, {refused, _, _, _} = Told} <- Effects]),
    %% The next one is the first of the new session.
    {[{said, <<"bob">>, 4, ok}, {send, s2, {im, say, 2, <<"ann">>, 1, <<"x">>, none, me}} | _], _} = im_client_core:handle({say, <<"bob">>, 4, <<"x">>, none}, 0, Later).

the_first_message_may_have_any_number_in_a_session_of_the_peer_too_test() ->
    {Said, Core} = im_client_core:handle({say, <<"bob">>, 5, <<"x">>, none}, 0, in_session(#{resume => #{}})),
    %% The mark is there before what depends on it is sent.
    ?assertMatch([{said, <<"bob">>, 5, ok}, {tell, {mark, <<"bob">>, {1, 4, none}}}, {send, s1, {im, say, 1, <<"ann">>, 1, <<"x">>, none, me}} | _], Said),
    {Accepted, _} = im_client_core:handle({im, accepted, {<<"ann">>, <<"bob">>}, 1, 1}, 0, Core),
    ?assertEqual([{tell, {accepted, <<"bob">>, 5}}], Accepted),
    %% If the session is gone before it was accepted it alone is unsure.
    {_, Died} = im_client_core:handle({down, s1}, 0, Core),
    {Unsure, _} = im_client_core:handle({im, ended, {<<"ann">>, <<"bob">>}, 1, lost}, 0, Died),
    ?assertEqual([{refused, <<"bob">>, 5, unsure}], [Told || {tell, {refused, _, _, _} = Told} <- Unsure]).

nothing_is_acknowledged_that_the_owner_does_not_say_to_have_test() ->
    {_, Told} = im_client_core:handle({im, message, {<<"ann">>, <<"bob">>}, 1, <<"bob">>, 1, <<>>, none}, 0, in_session(#{resume => #{}})),
    ?assertMatch({[], _}, im_client_core:handle(flush, 0, Told)),
    Hello = fun(Core) -> [Is || {send, s2, {im, hello, 1, <<"ann">>, me, Is}} <- element(1, im_client_core:handle({im, session, {<<"ann">>, <<"bob">>}, 1, s2, 0, online}, 0, Core))] end,
    {_, Died} = im_client_core:handle({down, s1}, 0, Told),
    ?assertEqual([0], Hello(Died)),
    {_, Has} = im_client_core:handle({received, <<"bob">>, 1}, 0, Died),
    ?assertEqual([1], Hello(Has)).

new(Options) -> im_client_core:new(<<"ann">>, Options#{self => me, routers => [{router_1, n1}, {router_1, n2}]}).

logged_in(Options) ->
    {_, Asking} = im_client_core:handle(start, 0, new(Options)),
    {_, In} = im_client_core:handle({im, login_success, m1, []}, 0, Asking),
    In.

in_session(Options) ->
    {_, Core} = im_client_core:handle({im, session, {<<"ann">>, <<"bob">>}, 1, s1, 0, online}, 0, logged_in(Options)),
    Core.
