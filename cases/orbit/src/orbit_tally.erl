%% @doc A partial result, and how two of them make one.
%%
%% Every worker has one, and on the way up the tree of processes they are added
%% in whatever order they come: `add/2' is associative and commutative up to
%% the order of the vertices, and `none/0' is its zero.
-module(orbit_tally).

-export([none/0, of_vertices/3, add/2, difference/2, fingerprint/1]).

-export_type([tally/0, packets/0]).

-type tally() :: #{
    %% how many workers have put in their part
    workers := non_neg_integer(),
    %% vertices in the set
    size := non_neg_integer(),
    %% vertices that came in messages, known ones too
    received := non_neg_integer(),
    %% see fingerprint/1
    checksum := non_neg_integer(),
    %% the set itself, if it was asked for
    vertices := [orbit_generators:vertex()],
    messages := orbit_meter:messages(),
    %% see atoll_traffic
    packets := packets(),
    %% the most connections each node had at once
    connections := #{node() => non_neg_integer()}
}.

-type packets() :: non_neg_integer() | unknown.

-define(MODULUS, (1 bsl 32)).

%% @doc The tally of nobody.
-spec none() -> tally().
none() ->
    #{workers => 0, size => 0, received => 0, checksum => 0, vertices => [],
      messages => orbit_meter:no_messages(), packets => 0, connections => #{}}.

%% @doc The tally of one worker that holds these vertices, and has received so
%% many. The list itself goes in only if `Keep' says so.
-spec of_vertices([orbit_generators:vertex()], non_neg_integer(), boolean()) -> tally().
of_vertices(Vertices, Received, Keep) ->
    (none())#{
        workers := 1,
        size := length(Vertices),
        received := Received,
        checksum := fingerprint(Vertices),
        vertices := [V || Keep, V <- Vertices]
    }.

%% @doc Both together. They must be of different workers and nodes.
-spec add(tally(), tally()) -> tally().
add(#{messages := MessagesA, packets := PacketsA, connections := ConnectionsA} = A,
    #{messages := MessagesB, packets := PacketsB, connections := ConnectionsB} = B) ->
    Sum = fun(Key) -> maps:get(Key, A) + maps:get(Key, B) end,
    #{
        workers => Sum(workers),
        size => Sum(size),
        received => Sum(received),
        checksum => Sum(checksum) rem ?MODULUS,
        vertices => maps:get(vertices, A) ++ maps:get(vertices, B),
        messages => maps:map(fun(Kind, N) -> N + maps:get(Kind, MessagesB) end, MessagesA),
        packets => sum(PacketsA, PacketsB),
        connections => maps:merge(ConnectionsA, ConnectionsB)
    }.

sum(A, B) when is_integer(A), is_integer(B) -> A + B;
sum(_, _) -> unknown.

%% @doc How many packets there were since then; a connection that went takes its own along.
-spec difference(packets(), Before :: packets()) -> packets().
difference(Now, Before) when is_integer(Now), is_integer(Before) -> max(0, Now - Before);
difference(_, _) -> unknown.

%% @doc A number that is equal for equal sets, in whatever order and on however
%% many workers the vertices lie: the sum of their hashes.
-spec fingerprint([orbit_generators:vertex()]) -> non_neg_integer().
fingerprint(Vertices) ->
    lists:foldl(
        fun(X, Sum) -> (Sum + erlang:phash2(X, ?MODULUS)) rem ?MODULUS end, 0, Vertices).
