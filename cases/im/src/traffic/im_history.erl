%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether the instant messenger has kept its promise in a run. Pure: events come in, while the
%% run goes on or later, and the report says what was broken.
%%
%% Of messages a history has one event for each side of a conversation ({@link
%% im_history_side}), when that has ended or the run is drained, and it keeps no more than the sides
%% that wait for the other one. What is checked of each direction:
%% <dl>
%% <dt>`lost'</dt><dd>it was accepted, and the receiver was not told. Nothing excuses that: clients
%%   that are away for longer than the messenger waits for them are not for a history.</dd>
%% <dt>`gap'</dt><dd>a later one was told, and this one, which was not refused, never.</dd>
%% <dt>`twice', `disorder'</dt><dd>it was told again, or after a later one.</dd>
%% <dt>`invented'</dt><dd>it was told, and not said.</dd>
%% <dt>`altered'</dt><dd>all were told that were said, with other bodies.</dd>
%% <dt>`undelivered'</dt><dd>the sender was told that the receiver had it, who had not.</dd>
%% <dt>`again'</dt><dd>something was said or told in a conversation that had ended.</dd>
%% </dl>
%% And of logins `two_logins': a name was two processes' at a time. A process has it from when it
%% was told so until just before it asks to log out, or has lost the connection; times are
%% microseconds of one clock.
%%
%% The logins of a name are kept to the end: 100 bytes or so each.
-module(im_history).

-export([new/0, event/2, close/1, is_clean/1]).

-export_type([history/0, event/0, report/0, violation/0, kind/0]).

-type event() ::
    {side, im_history_side:side()}
    %% Nothing more is heard of what that client has said and been told.
    | {gone, im_history_side:client()}
    | {login | logout, Name :: im_history_side:client(), Owner :: term(), Us :: integer()}.

-type kind() :: lost | gap | twice | disorder | invented | altered | undelivered | again | two_logins.

-type violation() ::
    {kind(), im_history_side:conversation(), From :: im_history_side:client(), To :: im_history_side:client(), Count :: pos_integer()}
    | {two_logins, Name :: im_history_side:client(), {Since :: integer(), Until :: integer()}}.

-type report() :: #{
    conversations := non_neg_integer(),
    %% That were told.
    messages := non_neg_integer(),
    logins := non_neg_integer(),
    %% Conversations of which one side is gone.
    unchecked := non_neg_integer(),
    %% How many of each kind there are, and the first hundred.
    counts := #{kind() => pos_integer()},
    violations := [violation()]
}.

-record(history, {
    %% Sides that wait for the other.
    waiting = #{} :: #{im_history_side:conversation() => im_history_side:side()},
    %% Of each generator's conversations: up to which all have ended, and which others have.
    ended = #{} :: #{pos_integer() => {non_neg_integer(), ordsets:ordset(pos_integer())}},
    gone = #{} :: #{im_history_side:client() => []},
    %% The latest first.
    logins = #{} :: #{im_history_side:client() => [{Owner :: term(), Since :: integer(), Until :: integer() | infinity}]},
    report :: report()
}).

-opaque history() :: #history{}.

-define(KEPT, 100).

%% @doc Nothing has happened.
-spec new() -> history().
new() ->
    #history{report = #{conversations => 0, messages => 0, logins => 0, unchecked => 0, counts => #{}, violations => []}}.

%% @doc Something has happened.
-spec event(event(), history()) -> history().
event({side, #{conversation := {Generator, Number} = Id} = Side}, #history{waiting = Waiting, ended = All} = History) ->
    Over = maps:get(Generator, All, {0, []}),
    case Waiting of
        #{Id := Other} ->
            Kept = History#history{waiting = maps:remove(Id, Waiting), ended = All#{Generator => over(Number, Over)}},
            compared(Other, Side, Kept);
        #{} ->
            case is_over(Number, Over) of
                true -> broken(again, Side, 1, History);
                false -> History#history{waiting = Waiting#{Id => Side}}
            end
    end;
event({gone, Client}, #history{gone = Gone} = History) ->
    History#history{gone = Gone#{Client => []}};
event({login, Name, Owner, Us}, #history{logins = Logins, report = #{logins := Count} = Report} = History) ->
    case maps:get(Name, Logins, []) of
        %% It was told so again.
        [{Owner, _, infinity} | _] -> History;
        Before -> History#history{logins = Logins#{Name => [{Owner, Us, infinity} | Before]}, report = Report#{logins := Count + 1}}
    end;
event({logout, Name, Owner, Us}, #history{logins = Logins} = History) ->
    case lists:keytake(Owner, 1, maps:get(Name, Logins, [])) of
        {value, {Owner, Since, infinity}, Others} -> History#history{logins = Logins#{Name => [{Owner, Since, Us} | Others]}};
        _ -> History
    end.

is_over(Number, {UpTo, Others}) -> Number =< UpTo orelse ordsets:is_element(Number, Others).

over(Number, {UpTo, Others}) when Number =:= UpTo + 1 -> without_rest(Number, Others);
over(Number, {UpTo, Others}) -> {UpTo, ordsets:add_element(Number, Others)}.

without_rest(UpTo, [Next | Others]) when Next =:= UpTo + 1 -> without_rest(Next, Others);
without_rest(UpTo, Others) -> {UpTo, Others}.

%% @doc What was broken, now that the run has been drained: a side that still waits for the other
%% one has a peer that was told nothing, and said nothing.
-spec close(history()) -> report().
close(#history{waiting = Waiting, logins = Logins} = History0) ->
    History = maps:fold(
        fun(Id, #{client := Client, peer := Peer} = One, H) -> compared(One, im_history_side:new(Id, Peer, Client), H) end,
        History0#history{waiting = #{}},
        Waiting
    ),
    #history{report = #{violations := Violations} = Report} = maps:fold(fun logins/3, History, Logins),
    Report#{violations := lists:reverse(Violations)}.

%% @doc Whether nothing was broken.
-spec is_clean(report()) -> boolean().
is_clean(#{counts := Counts}) -> Counts =:= #{}.

compared(#{client := A, told := ToldA} = SideA, #{client := B, told := ToldB} = SideB, #history{gone = Gone, report = Report} = History0) ->
    #{conversations := Conversations, messages := Messages, unchecked := Unchecked} = Report,
    case is_map_key(A, Gone) orelse is_map_key(B, Gone) of
        true ->
            History0#history{report = Report#{unchecked := Unchecked + 1}};
        false ->
            History = History0#history{report = Report#{conversations := Conversations + 1, messages := Messages + ToldA + ToldB}},
            direction(SideB, SideA, direction(SideA, SideB, History))
    end.

%% What the one has said and the other was told.
direction(#{client := From} = Sender, #{peer := From} = Receiver, History) ->
    #{said := Said, said_sum := SaidSum, accepted := Accepted, delivered := Delivered, refused := Refused} = Sender,
    #{told := Told, told_sum := ToldSum, missing := Missing, twice := Twice, disorder := Disorder} = Receiver,
    Untaken = ordsets:from_list(Refused),
    Unheard = ordsets:subtract(Missing, Untaken),
    Unsaid = ordsets:subtract(lists:seq(Told + 1, max(Told, Accepted)), Untaken),
    Lost = [N || N <- Unheard, N =< Accepted] ++ Unsaid,
    InOrder = Missing =:= [] andalso Twice + Disorder =:= 0,
    lists:foldl(
        fun({Kind, Count}, H) -> broken(Kind, Sender, Count, H) end,
        History,
        [
            {lost, length(Lost)},
            {gap, length(Unheard)},
            {twice, Twice},
            {disorder, Disorder},
            {invented, Told - Said},
            {altered, case InOrder andalso Told =:= Said andalso ToldSum =/= SaidSum of true -> 1; false -> 0 end},
            {undelivered, Delivered - Told}
        ]
    );
%% Another one has joined their conversation.
direction(Sender, _Receiver, History) ->
    broken(again, Sender, 1, History).

broken(_Kind, _Sender, Count, History) when Count =< 0 ->
    History;
broken(Kind, #{conversation := Id, client := From, peer := To}, Count, History) ->
    noted(Kind, Count, {Kind, Id, From, To, Count}, History).

noted(Kind, Count, Violation, #history{report = #{counts := Counts, violations := Violations} = Report} = History) ->
    Kept = case length(Violations) < ?KEPT of true -> [Violation | Violations]; false -> Violations end,
    History#history{report = Report#{counts := maps:update_with(Kind, fun(N) -> N + Count end, Count, Counts), violations := Kept}}.

%% By their beginnings, each with all before it. Numbers are less than `infinity'.
logins(Name, Logins, History) ->
    {Result, _, _} = lists:foldl(
        fun({Owner, Since, Until}, {H, Holder, Held}) ->
            Next =
                case Owner =/= Holder andalso Since < Held of
                    true -> noted(two_logins, 1, {two_logins, Name, {Since, min(Until, Held)}}, H);
                    false -> H
                end,
            case Until > Held of
                true -> {Next, Owner, Until};
                false -> {Next, Holder, Held}
            end
        end,
        {History, none, 0},
        lists:keysort(2, Logins)
    ),
    Result.
