%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Which paths a node goes along with, and how wide: what {@link atoll_dist_relay}
%% decides when somebody opens a circuit. Pure, and without a state.
%%
%% The end that opens writes the whole path. A node goes along if it stands on it between the
%% neighbour that the frame came from and another one, if no node stands there twice, if the
%% path is not too long, and if the policy allows it. So no frame goes round.
%%
%% Promised: what the circuits have together is within the budget. As many as are allowed get
%% the least window even if the first ones wanted all, as far as the budget goes; those that
%% one neighbour opens get a share of it.
-module(atoll_dist_admission).

-export([place/3, allows/3, window/3, cost/2]).

-export_type([policy/0, who/0, budget/0, used/0, why/0]).

-type name() :: atoll_dist_circuit_frame:name().

%% Between whom a node relays, in either direction: everybody, nobody, or between a node of
%% the one and a node of the other of a pair.
-type policy() :: all | none | [{who(), who()}].
-type who() :: any | #{name() => term()}.

-type budget() :: #{
    %% Bytes.
    budget := pos_integer(),
    max_circuits := pos_integer(),
    %% Of the budget, what circuits that one neighbour opens may have, in percent.
    share := 1..100,
    %% A circuit gets a window between these.
    min_window := atoll_dist_circuit_frame:window(),
    max_window := atoll_dist_circuit_frame:window(),
    max_hops := pos_integer(),
    _ => _
}.

-type used() :: #{
    circuits := non_neg_integer(),
    %% Of the budget, by all, and by the circuits that the neighbour opened.
    reserved := non_neg_integer(),
    theirs := non_neg_integer()
}.

-type why() :: hops | loop | not_on_path | window | busy.

%% A circuit may have such a part of what nobody needs for the least window.
-define(PART, 4).

%% @doc Where this node stands on a path that came from that neighbour: at its end, or before
%% which node.
-spec place(From :: name(), Path :: [name(), ...], #{name := name(), max_hops := pos_integer(), _ => _}) ->
    here | {next, name()} | {refuse, why()}.
place(From, Path, #{name := Name, max_hops := Hops}) ->
    case length(Path) - 1 =< Hops andalso length(lists:usort(Path)) =:= length(Path) of
        true ->
            case next(From, Name, Path) of
                [] -> here;
                [Next | _] -> {next, Next};
                none -> {refuse, not_on_path}
            end;
        false when length(Path) - 1 > Hops -> {refuse, hops};
        false -> {refuse, loop}
    end.

next(From, Name, [From, Name | Rest]) -> Rest;
next(From, Name, [_ | Rest]) -> next(From, Name, Rest);
next(_From, _Name, []) -> none.

%% @doc Whether it relays between these two.
-spec allows(policy(), name(), name()) -> boolean().
allows(all, _From, _To) -> true;
allows(none, _From, _To) -> false;
allows(Pairs, From, To) ->
    lists:any(fun({A, B}) -> (is_of(From, A) andalso is_of(To, B)) orelse (is_of(From, B) andalso is_of(To, A)) end, Pairs).

is_of(_Name, any) -> true;
is_of(Name, Names) -> is_map_key(Name, Names).

%% @doc The window of one more circuit that wants so much.
-spec window(Want :: atoll_dist_circuit_frame:window(), used(), budget()) ->
    atoll_dist_circuit_frame:window() | {refuse, why()}.
window(Want, #{circuits := Count, reserved := Reserved, theirs := Theirs}, #{budget := Budget, share := Share} = Config) ->
    #{max_circuits := Max, min_window := Min, max_window := MaxWindow} = Config,
    Free = Budget - Reserved,
    %% What all further circuits need that are allowed, and those of this neighbour.
    Needed = (Max - Count - 1) * cost(Min, Config),
    Bonus = min(Free - Needed, (Budget - Needed) * Share div 100 - Theirs),
    Window = lists:min([Want, MaxWindow, max(Min, Bonus div ?PART div 2)]),
    Cost = cost(Window, Config),
    case Window >= atoll_dist_circuit_frame:min_window() of
        false -> {refuse, window};
        true when Cost > Free; (Theirs + Cost) * 100 > Budget * Share -> {refuse, busy};
        true -> Window
    end.

%% @doc What a circuit of that window may hold: data both ways, and beside them in either
%% direction one frame of each kind.
-spec cost(atoll_dist_circuit_frame:window(), #{max_hops := pos_integer(), _ => _}) -> pos_integer().
cost(Window, #{max_hops := Hops}) when is_integer(Window), is_integer(Hops) ->
    2 * Window + 4096 + 256 * Hops.
