%% SPDX-License-Identifier: Apache-2.0
%% @doc One part of the distributed hash table, and its credit: what a worker decides.
%%
%% A vertex that comes in brings credit, which is kept. If it is new it enters the table, and its image
%% under every generator goes out to the part that owns it, each with some of the credit: all but the
%% last leave something behind, the last may take the rest. A vertex that is known sends nothing.
%% Who has nothing to do gives all credit back to the master.
%%
%% A run is a sequence of epochs; each loss of a process, a node or a connection begins a new one
%% ({@link orbit_ledger}). The table is kept, images included, and everything else is forgotten: with
%% `begin' a part gets fresh credit, and sends all images that it has once more, many in one message.
%% What belongs to an epoch before is dropped when it comes, what belongs to one to come is held back
%% until that begins. So in each epoch, whatever happened before:
%%
%% 1. A table has no vertex that is not in the set, or that another part owns.
%% 2. Every image in a table has been sent in this epoch, or is of a vertex that is still being
%%    looked at, and every message that was sent carries credit of this epoch.
%% 3. A part that has images to send, or to compute, holds credit.
%% 4. Held + inside messages + collected + lost = 1, where lost is what was in messages that
%%    never arrived, and with parts that are gone.
%%
%% If the master has collected 1, nothing is lost, held or under way (4), so by 3 nobody has anything
%% to do, and by 2 every image of every vertex in a table has arrived in a table. So the tables have
%% vertex 0, are closed under the generators, and by 1 have nothing else: they are the set, if all of
%% those parts are still there, which each says with its result. If something was lost, 1 is never
%% reached in this epoch, and the next one is to come. After the last loss no credit is lost, every
%% vertex enters a table once, and all credit comes back.
%%
%% There are no processes and there is no clock in here.
-module(orbit_part).

-export([new/3, handle/2, owner/2, credit/2, tally/2]).

-export_type([part/0, id/0, epoch/0, event/0, effect/0]).

%% From 0 on.
-type id() :: non_neg_integer().

%% Ascending; 0 is before the first.
-type epoch() :: non_neg_integer().

-type event() ::
    {'begin', epoch(), orbit_credit:unit()}
    | {vertices, epoch(), [orbit_generators:vertex(), ...], orbit_credit:unit()}
    %% some images of a vertex, as asked for by `compute'
    | {images, orbit_generators:vertex(), [orbit_generators:vertex(), ...]}
    | idle.

-type effect() ::
    {compute, orbit_generators:vertex()}
    | {send, id(), epoch(), [orbit_generators:vertex(), ...], orbit_credit:unit()}
    | {credit, epoch(), orbit_credit:credit()}.

-record(part, {
    id :: id(),
    %% how many parts there are, and images of a vertex
    parts :: pos_integer(),
    degree :: pos_integer(),
    epoch = 0 :: epoch(),
    %% each vertex with the images that are known
    table = #{} :: #{orbit_generators:vertex() => [orbit_generators:vertex()]},
    %% how many images are being computed
    open = 0 :: non_neg_integer(),
    credit = orbit_credit:none() :: orbit_credit:credit(),
    %% of epochs to come
    early = [] :: [event()],
    %% vertices that came in, known ones too
    received = 0 :: non_neg_integer(),
    %% how often credit went back, and the smallest unit that came in
    returned = 0 :: non_neg_integer(),
    least = 0 :: orbit_credit:unit()
}).

-opaque part() :: #part{}.

%% Of the images that are sent again in one message.
-define(MOST, 1000).

%% @doc An empty one, of so many, with so many generators. It takes part from its first `begin' on.
-spec new(id(), Parts :: pos_integer(), Degree :: pos_integer()) -> part().
new(Id, Parts, Degree) -> #part{id = Id, parts = Parts, degree = Degree}.

%% @doc Which of so many parts a vertex belongs to.
-spec owner(orbit_generators:vertex(), Parts :: pos_integer()) -> id().
owner(X, Parts) -> erlang:phash2(X, Parts).

%% @doc What an event leads to.
-spec handle(event(), part()) -> {[effect()], part()}.
handle({vertices, Epoch, Xs, Unit}, #part{epoch = Epoch, credit = Credit, least = Least} = P) ->
    entered(Xs, P#part{credit = orbit_credit:add(Unit, Credit), least = max(Unit, Least)});
handle({vertices, Epoch, _, _} = Early, #part{epoch = Now, early = Others} = P) when Epoch > Now ->
    {[], P#part{early = [Early | Others]}};
handle({vertices, _, _, _}, P) ->
    {[], P};
handle({images, X, Ys}, #part{table = Table, open = Open} = P) ->
    #{X := Known} = Table,
    told(Ys, P#part{table = Table#{X := Ys ++ Known}, open = Open - length(Ys)});
handle(idle, #part{open = 0, credit = [_ | _] = Credit, epoch = Epoch, returned = Returned} = P) ->
    {[{credit, Epoch, Credit}], P#part{credit = orbit_credit:none(), returned = Returned + 1}};
handle(idle, P) ->
    {[], P};
handle({'begin', Epoch, Unit}, #part{epoch = Now, id = Id, parts = Parts, early = Early} = P) when Epoch > Now ->
    Begun = P#part{epoch = Epoch, credit = orbit_credit:add(Unit, orbit_credit:none()), early = []},
    %% The first vertex comes to its owner by itself.
    First = [0 || owner(0, Parts) =:= Id],
    then(again(Begun), [fun(Q) -> entered(First, Q) end | [fun(Q) -> handle(Event, Q) end || Event <- Early]]);
handle({'begin', _, _}, P) ->
    {[], P}.

then(Done, []) -> Done;
then({Effects, P}, [Next | More]) ->
    {After, Q} = Next(P),
    then({Effects ++ After, Q}, More).

entered(Xs, P) -> lists:foldl(fun entered_one/2, {[], P}, Xs).

entered_one(X, {Effects, #part{table = Table, open = Open, received = Received} = P}) ->
    case Table of
        #{X := _} -> {Effects, P#part{received = Received + 1}};
        #{} -> {[{compute, X} | Effects], P#part{table = Table#{X => []}, open = Open + P#part.degree, received = Received + 1}}
    end.

%% Something is kept for all that is to come.
told([Y], #part{open = 0, credit = Credit} = P) ->
    {Unit, Left} = orbit_credit:debit(Credit),
    {[send(Y, Unit, P)], P#part{credit = Left}};
told([Y | Ys], #part{credit = Credit} = P) ->
    {Unit, Left} = orbit_credit:debit_keeping(Credit),
    {Effects, Next} = told(Ys, P#part{credit = Left}),
    {[send(Y, Unit, P) | Effects], Next};
told([], P) ->
    {[], P}.

send(Y, Unit, #part{epoch = Epoch, parts = Parts}) -> {send, owner(Y, Parts), Epoch, [Y], Unit}.

%% All images that are known, to each part its own.
again(#part{table = Table, parts = Parts} = P) ->
    ByOwner = maps:fold(fun(_, Ys, Sorted) ->
        lists:foldl(fun(Y, Acc) -> maps:update_with(owner(Y, Parts), fun(Before) -> [Y | Before] end, [Y], Acc) end, Sorted, Ys)
    end, #{}, Table),
    maps:fold(fun(Owner, Ys, Done) -> pieces(Owner, Ys, Done) end, {[], P}, ByOwner).

pieces(_, [], Done) -> Done;
pieces(Owner, Ys, {Effects, #part{epoch = Epoch, credit = Credit} = P}) ->
    Piece = lists:sublist(Ys, ?MOST),
    More = case length(Piece) of ?MOST -> lists:nthtail(?MOST, Ys); _ -> [] end,
    {Unit, Left} = orbit_credit:debit_keeping(Credit),
    pieces(Owner, More, {[{send, Owner, Epoch, Piece, Unit} | Effects], P#part{credit = Left}}).

%% @doc The credit of an epoch that it holds, and that is in messages which it holds back.
-spec credit(epoch(), part()) -> [orbit_credit:unit()].
credit(Epoch, #part{epoch = Now, credit = Credit, early = Early}) ->
    [K || Now =:= Epoch, K <- Credit] ++ [K || {vertices, E, _, K} <- Early, E =:= Epoch].

%% @doc What it holds; with the vertices themselves if `Keep' says so.
-spec tally(part(), Keep :: boolean()) -> orbit_tally:tally().
tally(#part{table = Table, received = Received, returned = Returned, least = Least}, Keep) ->
    (orbit_tally:of_vertices(maps:keys(Table), Received, Keep))#{credit_returned => Returned, least_credit => Least}.
