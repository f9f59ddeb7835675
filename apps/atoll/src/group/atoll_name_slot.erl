%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What a node knows of one name in one group: who says that a process of his
%% has it. Data only.
%%
%% At most one entry is in front: that is the process which readers find. It stays
%% there until its owner takes it away, its owner is lost, or its owner is no
%% member any more; then the first of the others that may be there follows. So
%% readers keep what they had first.
%%
%% Who hands the name over to another is found until the other is, or for as long as it is waited
%% for: the two are heard of on two ways, in any order.
-module(atoll_name_slot).

-export([new/0, entry/5, add/2, to_front/2, replace/3, remove/2, hand_over/2, wait_no_more/1, waits/2, find/2, update/2, front/1, rest/1, is_empty/1]).
-export([settle/2, shown/2, show/2]).

-export_type([slot/0, entry/0]).

-type entry() :: #{
    %% The node of the process; the owner's number for this entry.
    owner := node(),
    ref := pos_integer(),
    pid := pid(),
    meta := term(),
    %% Whether the owner is known to have answered `yes'.
    committed := boolean(),
    %% What the owner is to be told when this node has it; nothing, or not any more.
    ack := none | pos_integer(),
    %% Whose entries the owner was told to stand in the way of.
    contested := [node()],
    %% Whether something was done about the clash with this entry.
    judged := boolean(),
    %% Whether the owner was told to give the name up.
    ordered := boolean(),
    %% Whether it took the place of one that gave the name up for it.
    firm := boolean()
}.

-record(slot, {
    front = none :: none | entry(),
    %% The others, one of an owner, first come first.
    rest = [] :: [entry()],
    shown = none :: none | {node(), pos_integer()},
    %% Whether readers find who was shown last until somebody else is in front.
    waits = false :: boolean()
}).

-opaque slot() :: #slot{}.

%% @doc Nobody has the name.
-spec new() -> slot().
new() -> #slot{}.

%% @doc An entry: `held' by a process for certain, or `put' there to be acknowledged, in
%% place of another's if it is `firm'.
-spec entry(held | put | firm, node(), pos_integer(), pid(), term()) -> entry().
entry(Kind, Owner, Ref, Pid, Meta) ->
    #{
        owner => Owner,
        ref => Ref,
        pid => Pid,
        meta => Meta,
        committed => Kind =:= held,
        ack => none,
        contested => [],
        judged => false,
        ordered => false,
        firm => Kind =:= firm
    }.

%% @doc An entry behind the others, or in the place of an earlier one of the same owner.
-spec add(entry(), slot()) -> slot().
add(#{owner := Owner} = Entry, #slot{front = #{owner := Owner}} = Slot) ->
    Slot#slot{front = Entry};
add(#{owner := Owner} = Entry, Slot) ->
    #slot{rest = Rest} = Without = remove(Owner, Slot),
    Without#slot{rest = Rest ++ [Entry]}.

%% @doc An entry in front, where nobody is, or an earlier one of the same owner.
-spec to_front(entry(), slot()) -> slot().
to_front(Entry, #slot{front = none} = Slot) ->
    Slot#slot{front = Entry};
to_front(#{owner := Owner} = Entry, #slot{front = #{owner := Owner}} = Slot) ->
    Slot#slot{front = Entry}.

%% @doc An entry in the place of that other one, if it is in front; else behind the
%% others. Readers go from one to the other.
-spec replace({node(), pos_integer()}, entry(), slot()) -> slot().
replace({Owner, Ref}, #{owner := By} = Entry, #slot{front = #{owner := Owner, ref := Ref}} = Slot) ->
    (remove(By, Slot))#slot{front = Entry};
replace(_Other, Entry, Slot) ->
    add(Entry, Slot).

%% @doc The owner has no entry here any more.
-spec remove(node(), slot()) -> slot().
remove(Owner, #slot{front = #{owner := Owner}} = Slot) ->
    Slot#slot{front = none};
remove(Owner, #slot{rest = Rest} = Slot) ->
    Slot#slot{rest = [Entry || #{owner := O} = Entry <- Rest, O =/= Owner]}.

%% @doc The owner has no entry here any more, and another one will have: until then readers find what
%% they do now.
-spec hand_over(node(), slot()) -> slot().
hand_over(Owner, #slot{shown = Shown} = Slot) ->
    (remove(Owner, Slot))#slot{waits = is_of(Owner, Shown)}.

is_of(Owner, {Owner, _}) -> true;
is_of(_, _) -> false.

%% @doc Readers find who is there now.
-spec wait_no_more(slot()) -> slot().
wait_no_more(Slot) -> Slot#slot{waits = false}.

%% @doc Whether readers find that owner's, which has handed it over.
-spec waits(node(), slot()) -> boolean().
waits(Owner, #slot{waits = Waits, shown = Shown}) -> Waits andalso is_of(Owner, Shown).

%% @doc The owner's entry.
-spec find(node(), slot()) -> none | entry().
find(Owner, #slot{front = #{owner := Owner} = Entry}) ->
    Entry;
find(Owner, #slot{rest = Rest}) ->
    case [Entry || #{owner := O} = Entry <- Rest, O =:= Owner] of
        [Entry] -> Entry;
        [] -> none
    end.

%% @doc An entry that is here, with something else known of it.
-spec update(entry(), slot()) -> slot().
update(#{owner := Owner} = Entry, #slot{front = #{owner := Owner}} = Slot) ->
    Slot#slot{front = Entry};
update(#{owner := Owner} = Entry, #slot{rest = Rest} = Slot) ->
    Updated = [
        case Old of
            #{owner := Owner} -> Entry;
            _ -> Old
        end
     || Old <- Rest
    ],
    Slot#slot{rest = Updated}.

%% @doc The entry in front, which readers find.
-spec front(slot()) -> none | entry().
front(#slot{front = Front}) -> Front.

%% @doc The others.
-spec rest(slot()) -> [entry()].
rest(#slot{rest = Rest}) -> Rest.

%% @doc Whether there is nothing to know.
-spec is_empty(slot()) -> boolean().
is_empty(#slot{front = Front, rest = Rest, shown = Shown}) ->
    Front =:= none andalso Rest =:= [] andalso Shown =:= none.

%% @doc In front is an entry whose owner may be there, if there is one.
-spec settle(fun((node()) -> boolean()), slot()) -> slot().
settle(MayBe, #slot{waits = true, shown = {Owner, _}} = Slot) ->
    settle_front(MayBe, Slot#slot{waits = MayBe(Owner)});
settle(MayBe, Slot) ->
    settle_front(MayBe, Slot).

settle_front(MayBe, #slot{front = none, rest = Rest} = Slot) ->
    case lists:splitwith(fun(#{owner := Owner}) -> not MayBe(Owner) end, Rest) of
        {_, []} -> Slot;
        {Before, [Front | After]} -> Slot#slot{front = Front, rest = Before ++ After}
    end;
settle_front(MayBe, #slot{front = #{owner := Owner} = Front, rest = Rest} = Slot) ->
    case MayBe(Owner) of
        true -> Slot;
        false -> settle_front(MayBe, Slot#slot{front = none, rest = Rest ++ [Front#{contested := []}]})
    end.

%% @doc Whether readers of this node have to be told of another front: `same', or what
%% they are to find. They are not told of this node's own while it is only put, unless
%% it has the place of the last holder.
-spec shown(node(), slot()) -> same | none | {pid(), Meta :: term()}.
shown(Self, #slot{shown = Shown, waits = Waits} = Slot) ->
    case {visible(Self, Slot), Shown} of
        {none, none} -> same;
        {none, _} when Waits -> same;
        {none, _} -> none;
        {#{owner := Owner, ref := Ref}, {Owner, Ref}} -> same;
        {#{pid := Pid, meta := Meta}, _} -> {Pid, Meta}
    end.

%% @doc They were told.
-spec show(node(), slot()) -> slot().
show(Self, #slot{waits = Waits} = Slot) ->
    case visible(Self, Slot) of
        none when Waits -> Slot;
        none -> Slot#slot{shown = none};
        #{owner := Owner, ref := Ref} -> Slot#slot{shown = {Owner, Ref}, waits = false}
    end.

visible(Self, #slot{front = #{owner := Self, committed := false, firm := false}}) -> none;
visible(_Self, #slot{front = Front}) -> Front.
