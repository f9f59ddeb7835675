%% SPDX-License-Identifier: Apache-2.0
%% @doc Orbit in one process, with no messages: what all other modes must agree with. It shares nothing
%% with them but the generators.
-module(orbit_seq).

-export([run/3]).

%% @doc Runs it in the calling process; with the vertices themselves if `Keep' says so.
-spec run(orbit_generators:name(), Space :: pos_integer(), Keep :: boolean()) -> orbit_tally:tally().
run(Name, Space, Keep) ->
    {Set, Received} = close([0], orbit_generators:functions(Name, Space), #{}, 0),
    orbit_tally:of_vertices(maps:keys(Set), Received, Keep).

%% `Open' are the vertices that were reached and not yet looked at.
close([X | Open], Generators, Set, Received) when is_map_key(X, Set) ->
    close(Open, Generators, Set, Received + 1);
close([X | Open], Generators, Set, Received) ->
    close([G(X) || G <- Generators] ++ Open, Generators, Set#{X => []}, Received + 1);
close([], _, Set, Received) ->
    {Set, Received}.
