%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Two entries of one name meet: which goes first while they are put, and who
%% decides about which others when several hold it for certain. It changes nothing.
-module(atoll_name_clash).

-export([gives_way/3, rival/4, judge/4, decided/3]).

-export_type([key/0, verdict/0]).

-type key() :: {atoll_group_view:id(), Name :: term(), Ref :: pos_integer(), Rival :: node(), Ref :: pos_integer()}.
%% Of a clash that a function decides: the two entries.

-type verdict() :: #{
    %% What each has to know, if it loses: who has the name now, and who the other was.
    first := keeps | {loses, Winner :: none | pid(), Other :: pid()},
    second := keeps | {loses, Winner :: none | pid(), Other :: pid()},
    how := exit | notify
}.

-type entry() :: atoll_name_slot:entry().

%% @doc Whether the first entry, which is put, has to give way to the other: what holds the
%% name goes first, then what was given it by the last holder, then by the order of the nodes.
-spec gives_way(entry(), entry(), Name :: term()) -> boolean().
gives_way(_Mine, #{committed := true}, _Name) -> true;
gives_way(#{firm := true}, #{firm := false}, _Name) -> false;
gives_way(#{firm := false}, #{firm := true}, _Name) -> true;
gives_way(#{owner := Self}, #{owner := Owner}, Name) -> atoll_name_rules:outranks(Owner, Self, Name).

%% @doc Another that holds the name as the one in front does, which is Self's, and
%% about which Self has to decide.
-spec rival(node(), Name :: term(), Front :: entry(), Behind :: [entry()]) -> none | entry().
rival(Self, Name, #{owner := Self}, Behind) ->
    Ours = [
        Entry
     || #{owner := Owner, committed := true, judged := false} = Entry <- Behind,
        atoll_name_rules:outranks(Self, Owner, Name)
    ],
    case Ours of
        [] -> none;
        [Rival | _] -> Rival
    end;
rival(_Self, _Name, _Front, _Behind) ->
    none.

%% @doc What the group's rule says, or whom it asks.
-spec judge(atoll_name_rules:rule(), {atoll_group_view:id(), Name :: term()}, entry(), entry()) ->
    {ask, Deed :: tuple()} | verdict().
judge(Rule, {Id, Name}, #{pid := Pid1} = Own, #{pid := Pid2} = Rival) ->
    case atoll_name_rules:judge(Rule, Own, Rival) of
        {ask, Module, Function, Args} ->
            #{ref := Ref1} = Own,
            #{owner := Owner, ref := Ref2} = Rival,
            {ask, {decide, {Id, Name, Ref1, Owner, Ref2}, {Module, Function, [Name | Args]}}};
        {Winner, How} ->
            verdict(Winner, How, Pid1, Pid2)
    end.

%% @doc What it means that a rule's function has said this.
-spec decided(term(), entry(), entry()) -> verdict().
decided(Pid1, #{pid := Pid1}, #{pid := Pid2}) -> verdict(first, notify, Pid1, Pid2);
decided(Pid2, #{pid := Pid1}, #{pid := Pid2}) -> verdict(second, notify, Pid1, Pid2);
decided(_Neither, #{pid := Pid1}, #{pid := Pid2}) -> verdict(none, notify, Pid1, Pid2).

verdict(first, How, Pid1, _) -> #{first => keeps, second => {loses, Pid1, Pid1}, how => How};
verdict(second, How, _, Pid2) -> #{first => {loses, Pid2, Pid2}, second => keeps, how => How};
verdict(none, How, Pid1, Pid2) -> #{first => {loses, none, Pid2}, second => {loses, none, Pid1}, how => How}.
