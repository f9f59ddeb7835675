%% @doc Where a vertex lives, and how it gets there from here.
%%
%% The distributed hash table has one slot for each worker of the run, in the
%% order of the groups, so that a group owns a contiguous range of slots. A
%% vertex belongs to slot `phash2(X) rem Slots'. Inside its own group a process
%% sends it straight to the worker; for any other group it has an exit, which
%% is a gateway process that knows more. A worker has one exit for everything,
%% the gateway assigned to it; a gateway has, for each group, the gateways of
%% the next group on the way. So an image takes one message inside a group,
%% three between two groups that meet, and one more for each further hop.
-module(orbit_route).

-export([new/5, send/3]).

-export_type([route/0, table/0, exits/0]).

%% How many workers each group has, group 1 first.
-type table() :: [pos_integer(), ...].

%% For each group, the gateway processes of which any will do. Own group's
%% entry is never used.
-type exits() :: tuple().

-record(route, {
    own :: orbit_topology:id(),
    %% for each slot {Group, N}: the N-th worker of Group
    slots :: tuple(),
    %% own group's workers, in the order of their slots
    workers :: tuple(),
    exits :: exits(),
    meter :: orbit_meter:meter()
}).

-opaque route() :: #route{}.

%% @doc The route of a process in group `Own'.
-spec new(orbit_topology:id(), table(), [pid()], exits(), orbit_meter:meter()) -> route().
new(Own, Table, Workers, Exits, Meter) ->
    Numbered = lists:zip(lists:seq(1, length(Table)), Table),
    Slots = [{Group, N} || {Group, Count} <- Numbered, N <- lists:seq(1, Count)],
    #route{own = Own, slots = list_to_tuple(Slots), workers = list_to_tuple(Workers),
           exits = Exits, meter = Meter}.

%% @doc Sends a vertex on its way, with its credit inside: as `{vertex, X, Unit}'
%% to the worker that owns it, or as `{relay, X, Unit}' to a gateway.
-spec send(orbit_generators:vertex(), orbit_credit:unit(), route()) -> ok.
send(X, Unit, #route{own = Own, slots = Slots, meter = Meter} = Route) ->
    case element(1 + erlang:phash2(X, tuple_size(Slots)), Slots) of
        {Own, N} ->
            Worker = element(N, Route#route.workers),
            orbit_meter:send(Meter, vertex, Worker, {vertex, X, Unit});
        {Other, _} ->
            Gateway = any(element(Other, Route#route.exits)),
            orbit_meter:send(Meter, gateway, Gateway, {relay, X, Unit})
    end.

any({One}) -> One;
any(Several) -> element(rand:uniform(tuple_size(Several)), Several).
