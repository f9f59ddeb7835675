%% @doc One worker's fragment of the distributed hash table, and its credit.
%%
%% This is the pure half of `orbit_worker'. A vertex that comes in brings
%% credit, which is kept. If it is new it enters the set and its image under
%% every generator goes out, each with a part of the credit: all but the last
%% leave something behind, the last may take the rest. A vertex that is known
%% already sends nothing.
-module(orbit_fragment).

-export([new/1, vertex/3, idle/1, tally/2]).

-export_type([fragment/0, image/0]).

-record(fragment, {
    generators :: [orbit_generators:generator(), ...],
    %% the vertices known, as keys
    set = #{} :: #{orbit_generators:vertex() => []},
    credit = orbit_credit:none() :: orbit_credit:credit(),
    %% vertices that came in, known ones too
    received = 0 :: non_neg_integer()
}).

-opaque fragment() :: #fragment{}.

%% A vertex on its way to its owner, and the unit of credit that travels in it.
-type image() :: {orbit_generators:vertex(), orbit_credit:unit()}.

%% @doc An empty fragment that holds no credit.
-spec new([orbit_generators:generator(), ...]) -> fragment().
new(Generators) ->
    #fragment{generators = Generators}.

%% @doc Takes a vertex in. The images are to be sent to their owners.
-spec vertex(orbit_generators:vertex(), orbit_credit:unit(), fragment()) ->
    {[image()], fragment()}.
vertex(X, Unit, #fragment{set = Set, credit = Credit, received = Received} = F) ->
    Held = orbit_credit:add(Unit, Credit),
    case Set of
        #{X := _} ->
            {[], F#fragment{credit = Held, received = Received + 1}};
        #{} ->
            {Images, Left} = images(F#fragment.generators, X, Held),
            {Images, F#fragment{set = Set#{X => []}, credit = Left, received = Received + 1}}
    end.

%% @doc Gives all credit back. It is empty when there is none to give.
-spec idle(fragment()) -> {orbit_credit:credit(), fragment()}.
idle(#fragment{credit = Credit} = F) ->
    {Credit, F#fragment{credit = orbit_credit:none()}}.

%% @doc What the fragment holds; see `orbit_tally'.
-spec tally(fragment(), boolean()) -> orbit_tally:tally().
tally(#fragment{set = Set, received = Received}, KeepVertices) ->
    orbit_tally:of_vertices(maps:keys(Set), Received, KeepVertices).

images([Last], X, Credit) ->
    {Unit, Left} = orbit_credit:debit(Credit),
    {[{Last(X), Unit}], Left};
images([Generator | Rest], X, Credit) ->
    {Unit, Kept} = orbit_credit:debit_keeping(Credit),
    {Images, Left} = images(Rest, X, Kept),
    {[{Generator(X), Unit} | Images], Left}.
