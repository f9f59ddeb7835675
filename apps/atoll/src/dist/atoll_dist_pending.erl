%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The connections that were accepted and are not yet up, and which of them is closed
%% when there are too many.
%%
%% Those that have said nothing yet, and those that have said what a node would, are two
%% kinds; each may be so many. Of a kind that is too many one goes that is of the address
%% with the most of that kind, and of these the oldest. So neither kind pushes out the
%% other; and who connects from one address, or a few, thousands of times a second pushes
%% out itself. It does not help those who come from a stranger's address when strangers
%% speak the first words of a node, nor anybody when they do that from everywhere.
%%
%% Of IPv6 an address is what one network has, its first 64 bits.
-module(atoll_dist_pending).

-export([new/1, add/3, said/2, gone/2, crowded/2]).

-export_type([pending/0, address/0]).

-type address() :: inet:ip_address() | unknown.

-type kind() :: silent | said.

-record(pending, {
    %% How many of each kind there may be.
    max :: pos_integer(),
    serial = 0 :: non_neg_integer(),
    %% What each is, and its number.
    all = #{} :: #{pid() => {{kind(), address()}, Serial :: non_neg_integer()}},
    %% How many there are.
    of_address = #{} :: #{{kind(), address()} => pos_integer()},
    of_kind = #{silent => 0, said => 0} :: #{kind() := non_neg_integer()}
}).

-opaque pending() :: #pending{}.

%% @doc None, of as many of each kind at most.
-spec new(pos_integer()) -> pending().
new(Max) -> #pending{max = Max}.

%% @doc One more, which has said nothing yet.
-spec add(pid(), address(), pending()) -> pending().
add(Pid, Ip, #pending{serial = Serial} = Pending) ->
    is({{silent, network(Ip)}, Serial}, Pid, Pending#pending{serial = Serial + 1}).

network({A, B, C, D, _, _, _, _}) -> {A, B, C, D, 0, 0, 0, 0};
network(Address) -> Address.

%% @doc It has said something that a node would.
-spec said(pid(), pending()) -> pending().
said(Pid, #pending{all = All} = Pending) ->
    case All of
        #{Pid := {{silent, Address}, Serial}} -> is({{said, Address}, Serial}, Pid, gone(Pid, Pending));
        #{} -> Pending
    end.

is({{Kind, _} = What, _} = Is, Pid, #pending{all = All, of_address = Address, of_kind = Of} = Pending) ->
    Pending#pending{
        all = All#{Pid => Is},
        of_address = maps:update_with(What, fun(N) -> N + 1 end, 1, Address),
        of_kind = maps:update_with(Kind, fun(N) -> N + 1 end, Of)
    }.

%% @doc It is up, or has ended.
-spec gone(pid(), pending()) -> pending().
gone(Pid, #pending{all = All0, of_address = Address, of_kind = Of} = Pending) ->
    case maps:take(Pid, All0) of
        {{{Kind, _} = What, _}, All} ->
            Left =
                case Address of
                    #{What := 1} -> maps:remove(What, Address);
                    #{What := N} -> Address#{What := N - 1}
                end,
            Pending#pending{all = All, of_address = Left, of_kind = maps:update_with(Kind, fun(N) -> N - 1 end, Of)};
        error ->
            Pending
    end.

%% @doc Which is closed if there are too many of a kind, even if so many more of each may be
%% (which is only asked then); it is gone then.
-spec crowded(More :: fun(() -> non_neg_integer()), pending()) -> {close, pid(), pending()} | no.
crowded(More, #pending{max = Max, of_kind = Of} = Pending) ->
    case [{Kind, N} || {Kind, N} <- maps:to_list(Of), N > Max] of
        [] -> no;
        Many -> closed([Kind || Allowed <- [Max + More()], {Kind, N} <- Many, N > Allowed], Pending)
    end.

closed([], _Pending) ->
    no;
closed([Kind | _], #pending{all = All, of_address = Address} = Pending) ->
    {_, Pid} = maps:fold(
        fun
            (Pid, {{Is, _} = What, Serial}, Most) when Is =:= Kind -> max({{maps:get(What, Address), -Serial}, Pid}, Most);
            (_Pid, _Other, Most) -> Most
        end,
        {{0, 0}, none},
        All
    ),
    {close, Pid, gone(Pid, Pending)}.
