%% SPDX-License-Identifier: Apache-2.0
%% @doc The advertisement counter of the Partisan and Lasp papers: advertisements are shown on phones, off line too; each may be shown as often as
%% its contract says, all phones together; the counter has no owner, and neither has the list of what may be shown.
%%
%% A node runs the application `adcounter' with its role in the environment ({@link adcounter_options}), beside `atoll' with an overlay:
%% `star' is the client-server topology, and any other one is peer to peer. {@link adcounter_program} says what the program does.
-module(adcounter).

-export([node_options/2, load/0, hops/2, read/1, change/1, once/1, status/0, await_members/2]).

-export_type([mode/0]).

-type mode() :: server | peer.

-define(MANY, 100).

%% @doc How the nodes of a run are started, the first one to be the server: with the overlay of that mode.
-spec node_options(mode(), Contacts :: pos_integer()) -> #{connect_all := false, apps := [atom()], args := fun(([node(), ...]) -> [string()])}.
node_options(Mode, Contacts) ->
    #{connect_all => false, apps => [atoll], args => fun(Nodes) -> ["-s", "adcounter", "load"] ++ patience(length(Nodes)) ++ args(Mode, lists:sublist(Nodes, Contacts)) end}.

%% Hundreds of nodes on a few processors wait for each other longer than a failure takes to be found otherwise.
patience(Count) when Count > ?MANY -> ["-atoll", "detector", text(#{period_ms => 5000, suspect_ms => 20000, dead_ms => 60000, silent_ms => 120000, ask_ms => 5000, late_ms => 5000})];
patience(_) -> [].

args(server, [Server | _]) -> ["-atoll", "overlay", "star", "-atoll", "overlay_options", text(#{servers => [Server]}), "-atoll", "contacts", text([Server])];
args(peer, Contacts) -> ["-atoll", "overlay", "hyparview", "-atoll", "contacts", text(Contacts)].

%% @doc Loads its code on a node that starts. Else hundreds of nodes would all do that when a run begins.
-spec load() -> ok | {error, [{module(), term()}]}.
load() ->
    Apps = [atoll_crdt, adcounter],
    _ = [application:load(App) || App <- Apps],
    code:ensure_modules_loaded(lists:append([Modules || App <- Apps, {ok, Modules} <- [application:get_key(App, modules)]])).

%% @doc Over how many connections news goes at most from a client to the server: over its own; or peer to peer, where each more reaches twice as many nodes at least, and two for views that
%% are not as they should be.
-spec hops(mode(), Nodes :: pos_integer()) -> pos_integer().
hops(server, _) -> 1;
hops(peer, Nodes) -> 2 + ceil(math:log2(Nodes)).

text(Term) -> lists:flatten(io_lib:format("~0tp", [Term])).

%% @doc What an object of this node is.
-spec read(atoll_crdt_replica_core:name()) -> {ok, term()} | none.
read(Name) ->
    case atoll_crdt_replica:value(adcounter_replica, Name) of
        {ok, _} = Value -> Value;
        none -> none
    end.

%% @doc Changes objects of this node, one after the other.
-spec change([adcounter_program:change()]) -> ok.
change(Changes) ->
    _ = [ok = atoll_crdt_replica:update(adcounter_replica, Name, Type, Operation) || {Name, Type, Operation} <- Changes],
    ok.

%% @doc Takes the other notices of the same kind that wait for the caller: it is about to look what has come of all of them. So of many clients there is never more than one for an object.
-spec once(Notice :: term()) -> ok.
once(Notice) -> receive Notice -> once(Notice) after 0 -> ok end.

%% @doc The count of each advertisement on this node, and what its replica counts ({@link atoll_crdt_replica:status/1}).
-spec status() -> #{counts := [non_neg_integer()], replica := map()}.
status() ->
    Ads = case read(contracts) of {ok, Contracts} -> lists:usort([Ad || {Ad, _} <- Contracts]); none -> [] end,
    #{counts => [adcounter_program:impressions(Ad, fun read/1) || Ad <- Ads], replica => atoll_crdt_replica:status(adcounter_replica)}.

%% @doc Waits until this node has a neighbour and knows so many members, itself among them.
-spec await_members(pos_integer(), Ms :: pos_integer()) -> ok | {late, Members :: non_neg_integer(), Neighbours :: non_neg_integer()}.
await_members(Count, Ms) ->
    ok = atoll:subscribe([member_up, neighbour_up]),
    Timer = erlang:start_timer(Ms, self(), late),
    Answer = await_members(Count, Timer, atoll:members(), atoll:neighbours()),
    _ = erlang:cancel_timer(Timer),
    ok = atoll:unsubscribe(),
    Answer.

await_members(Count, _, Members, [_ | _]) when length(Members) >= Count ->
    ok;
await_members(Count, Timer, Members, Neighbours) ->
    receive
        {timeout, Timer, late} -> {late, length(Members), length(Neighbours)};
        {atoll, _, _} -> await_members(Count, Timer, atoll:members(), atoll:neighbours())
    end.
