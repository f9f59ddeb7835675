%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The operations under way at a node, for processes and names of its own: what
%% each waits for, and who waits for which name. Data only.
-module(atoll_name_ops).

-export([new/0, find/2, get/2, store/2, remove/2, put/2, of_entry/2, taken_back/2]).
-export([wait/2, wait_no_more/2, waiting/3, waited/2, all/2, size/1]).

-export_type([ops/0, op/0, kind/0, ref/0, tag/0, asker/0]).

-type id() :: atoll_group_view:id().
-type name() :: term().
-type ref() :: pos_integer().
-type kind() :: register | re_register | unregister.
%% An entry that is sent to a member a second time has another one, for the answer to
%% the first may be on its way still.
-type tag() :: pos_integer().
-type asker() :: {local, atoll_protocol:from()} | {remote, node(), ref()}.

-type op() :: #{
    ref := ref(),
    kind := kind(),
    id := id(),
    name := name(),
    pid := none | pid(),
    meta := term(),
    from := asker(),
    %% waiting: for the name; putting: its entry is in front; backing_off: it gave way;
    %% dropping: all are to hear that the name is gone.
    phase := waiting | putting | backing_off | dropping,
    %% The number of the entry, once there is one.
    entry := none | ref(),
    %% Who has not answered yet, and what the answer has to be.
    await := #{node() => tag()},
    %% Members that want to hear how it ends.
    contested := [node()],
    retries := non_neg_integer()
}.

-record(ops, {
    all = #{} :: #{ref() => op()},
    %% Entries that are put, with their operations.
    puts = #{} :: #{ref() => ref()},
    %% Who waits for a name, oldest first.
    waiting = #{} :: #{{id(), name()} => [ref()]}
}).

-opaque ops() :: #ops{}.

%% @doc No operations.
-spec new() -> ops().
new() -> #ops{}.

%% @doc The operation of that number, if it is under way.
-spec find(ref(), ops()) -> {ok, op()} | none.
find(Ref, #ops{all = All}) ->
    case All of
        #{Ref := Op} -> {ok, Op};
        #{} -> none
    end.

%% @doc The operation of that number, which is under way.
-spec get(ref(), ops()) -> op().
get(Ref, #ops{all = All}) -> maps:get(Ref, All).

%% @doc A new operation, or what has become of one.
-spec store(op(), ops()) -> ops().
store(#{ref := Ref} = Op, #ops{all = All} = Ops) -> Ops#ops{all = All#{Ref => Op}}.

%% @doc It is over.
-spec remove(op(), ops()) -> ops().
remove(#{ref := Ref, entry := Number} = Op, Ops) ->
    #ops{all = All, puts = Puts} = Left = wait_no_more(Op, Ops),
    Left#ops{all = maps:remove(Ref, All), puts = maps:remove(Number, Puts)}.

%% @doc Its entry is put; it waits for the name no more.
-spec put(op(), ops()) -> ops().
put(#{ref := Ref, entry := Number} = Op, Ops) ->
    #ops{puts = Puts} = Stored = store(Op, wait_no_more(Op, Ops)),
    Stored#ops{puts = Puts#{Number => Ref}}.

%% @doc The operation that has put the entry of that number.
-spec of_entry(ref(), ops()) -> {ok, op()} | none.
of_entry(Number, #ops{puts = Puts, all = All}) ->
    case Puts of
        #{Number := Ref} -> {ok, maps:get(Ref, All)};
        #{} -> none
    end.

%% @doc Its entry was taken back: the operation, as it is then.
-spec taken_back(op(), ops()) -> {op(), ops()}.
taken_back(#{entry := Number} = Op0, #ops{puts = Puts} = Ops) ->
    Op = Op0#{entry := none, await := #{}, phase := backing_off},
    {Op, store(Op, Ops#ops{puts = maps:remove(Number, Puts)})}.

%% @doc It waits for the name, behind those that do already.
-spec wait(op(), ops()) -> ops().
wait(#{id := Id, name := Name, ref := Ref} = Op, #ops{waiting = Waiting} = Ops) ->
    Refs = maps:get({Id, Name}, Waiting, []),
    store(Op#{phase := waiting}, Ops#ops{waiting = Waiting#{{Id, Name} => Refs ++ [Ref]}}).

%% @doc It does not any more.
-spec wait_no_more(op(), ops()) -> ops().
wait_no_more(#{id := Id, name := Name, ref := Ref}, #ops{waiting = Waiting} = Ops) ->
    case Waiting of
        #{{Id, Name} := [Ref]} -> Ops#ops{waiting = maps:remove({Id, Name}, Waiting)};
        #{{Id, Name} := Refs} -> Ops#ops{waiting = Waiting#{{Id, Name} := lists:delete(Ref, Refs)}};
        #{} -> Ops
    end.

%% @doc Who waits for that name, oldest first.
-spec waiting(id(), name(), ops()) -> [ref()].
waiting(Id, Name, #ops{waiting = Waiting}) -> maps:get({Id, Name}, Waiting, []).

%% @doc The names of a group that somebody waits for.
-spec waited(id(), ops()) -> [name()].
waited(Id, #ops{waiting = Waiting}) -> [Name || {I, Name} <- maps:keys(Waiting), I =:= Id].

%% @doc Those for which it is true, oldest first.
-spec all(fun((op()) -> boolean()), ops()) -> [ref()].
all(IsOne, #ops{all = All}) -> lists:sort([Ref || {Ref, Op} <- maps:to_list(All), IsOne(Op)]).

%% @doc How many are under way.
-spec size(ops()) -> non_neg_integer().
size(#ops{all = All}) -> map_size(All).
