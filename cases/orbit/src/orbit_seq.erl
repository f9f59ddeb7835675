%% @doc Orbit in one process, with no messages: what all other modes must agree
%% with. It shares nothing with them but the generators.
-module(orbit_seq).

-export([run/1]).

%% @doc Runs it in the calling process.
-spec run(orbit_run:run()) -> {ok, orbit_tally:tally(), WallMs :: non_neg_integer()}.
run(#{generators := Name, space := Space, vertices := Keep}) ->
    Generators = orbit_generators:functions(Name, Space),
    Began = erlang:monotonic_time(),
    {Set, Received} = close([0], Generators, #{}, 0),
    Took = erlang:monotonic_time() - Began,
    Tally = orbit_tally:of_vertices(maps:keys(Set), Received, Keep),
    {ok, Tally#{connections := #{node() => atoll_traffic:connections()}},
     erlang:convert_time_unit(Took, native, millisecond)}.

%% `Open' are the vertices that were reached and not yet looked at.
close([X | Open], Generators, Set, Received) when is_map_key(X, Set) ->
    close(Open, Generators, Set, Received + 1);
close([X | Open], Generators, Set, Received) ->
    close([G(X) || G <- Generators] ++ Open, Generators, Set#{X => []}, Received + 1);
close([], _, Set, Received) ->
    {Set, Received}.
