%% SPDX-License-Identifier: Apache-2.0
%% @doc What one client of the instant messenger has said and been told in one conversation, as a
%% summary of fixed size that is kept while it goes on. Pure.
%%
%% Messages are numbered 1, 2, 3 and so on by who says them, in their bodies and not by the
%% messenger: so a fault in the numbering of the messenger shows too. A summary grows only by
%% numbers that were passed over, and by those that were refused.
%%
%% {@link im_history} compares the sides of two clients.
-module(im_history_side).

-export([new/3, said/2, accepted/2, delivered/2, refused/2, told/3, waiting/1]).

-export_type([side/0, conversation/0, client/0]).

-type client() :: binary().

-type conversation() :: {Generator :: pos_integer(), Number :: pos_integer()}.

-type side() :: #{
    conversation := conversation(),
    client := client(),
    peer := client(),
    %% So many were said; and of all their bodies one checksum.
    said := non_neg_integer(),
    said_sum := non_neg_integer(),
    %% Up to that number the messenger has promised to deliver, and has delivered.
    accepted := non_neg_integer(),
    delivered := non_neg_integer(),
    refused := [pos_integer()],
    %% The largest number that the peer's messages had, and what was told of them.
    told := non_neg_integer(),
    told_sum := non_neg_integer(),
    %% Smaller ones that were not told.
    missing := ordsets:ordset(pos_integer()),
    %% How many were told again, and how many after a larger one.
    twice := non_neg_integer(),
    disorder := non_neg_integer()
}.

%% @doc Nothing was said.
-spec new(conversation(), client(), Peer :: client()) -> side().
new(Conversation, Client, Peer) ->
    #{
        conversation => Conversation,
        client => Client,
        peer => Peer,
        said => 0,
        said_sum => 0,
        accepted => 0,
        delivered => 0,
        refused => [],
        told => 0,
        told_sum => 0,
        missing => [],
        twice => 0,
        disorder => 0
    }.

%% @doc The next message is said: its number is the one after those `said' before.
-spec said(Body :: iodata(), side()) -> side().
said(Body, #{said := N, said_sum := Sum} = Side) ->
    Side#{said := N + 1, said_sum := erlang:crc32(Sum, Body)}.

%% @doc The messenger has accepted all up to that number.
-spec accepted(non_neg_integer(), side()) -> side().
accepted(UpTo, #{accepted := Accepted} = Side) when UpTo > Accepted -> Side#{accepted := UpTo};
accepted(_UpTo, Side) -> Side.

%% @doc The peer was told all up to that number, as the messenger says.
-spec delivered(non_neg_integer(), side()) -> side().
delivered(UpTo, #{delivered := Delivered} = Side) when UpTo > Delivered ->
    accepted(UpTo, Side#{delivered := UpTo});
delivered(_UpTo, Side) ->
    Side.

%% @doc The messenger has not taken that one.
-spec refused(pos_integer(), side()) -> side().
refused(N, #{refused := Refused} = Side) ->
    Side#{refused := [N | Refused]}.

%% @doc A message of the peer was told, with the number that is in its body.
-spec told(pos_integer(), Body :: iodata(), side()) -> side().
told(N, Body, #{told := Told, told_sum := Sum} = Side) when N =:= Told + 1 ->
    Side#{told := N, told_sum := erlang:crc32(Sum, Body)};
told(N, _Body, #{told := Told, missing := Missing} = Side) when N > Told ->
    Side#{told := N, missing := ordsets:union(Missing, lists:seq(Told + 1, N - 1))};
told(N, _Body, #{missing := Missing, twice := Twice, disorder := Disorder} = Side) ->
    case ordsets:is_element(N, Missing) of
        true -> Side#{missing := ordsets:del_element(N, Missing), disorder := Disorder + 1};
        false -> Side#{twice := Twice + 1}
    end.

%% @doc How many were said of which nobody knows yet whether the peer was told.
-spec waiting(side()) -> non_neg_integer().
waiting(#{said := Said, delivered := Delivered, refused := Refused}) ->
    max(0, Said - Delivered - length(Refused)).
