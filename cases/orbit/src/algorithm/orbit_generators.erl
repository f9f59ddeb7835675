%% SPDX-License-Identifier: Apache-2.0
%% @doc The generators of the Orbit benchmark.
%%
%% A generator maps a vertex of the space `[0, N)' to a vertex of the same
%% space. There are five of them, f1 to f5, and a set of generators is named
%% after the digits of its members: `g124' is f1, f2 and f4. With
%% `fib(0) = fib(1) = 1', `R(V) = |V| rem N' and `r = X rem 16' they are
%%
%%   f1(X) = R(fib(r) + X)
%%   f2(X) = R(fib(r + 5) + 2X^2 + 5X - 1)
%%   f3(X) = R(fib(r + 10) - X^3 + 8X)
%%   f4(X) = R(fib(8s + 3) - 1)    s = 1, 2, 3 for 49, 49 and 2 % of all X
%%   f5(X) = R(fib(10s) + 1)       s = 1, 2, 3 for 90, 9.9 and 0.1 % of all X
%%
%% The integers are exact whatever the space: a cube that does not fit a word
%% becomes a bignum.
-module(orbit_generators).

-export([names/0, functions/2]).

-export_type([name/0, vertex/0, generator/0]).

-type vertex() :: non_neg_integer().

-type generator() :: fun((vertex()) -> vertex()).

%% `g' and one to five of the digits 1 to 5, each once and ascending.
-type name() :: atom().

%% @doc The names of all 31 sets.
-spec names() -> [name(), ...].
names() -> [list_to_atom([$g | Digits]) || [_ | _] = Digits <- subsets("12345")].

subsets([Digit | More]) -> [Subset || Some <- subsets(More), Subset <- [Some, [Digit | Some]]];
subsets([]) -> [[]].

%% @doc The functions of a set, over the space `[0, N)', in ascending order.
-spec functions(name(), pos_integer()) -> [generator(), ...].
functions(Name, N) ->
    [$g | Digits] = atom_to_list(Name),
    [function(Digit - $0, N) || Digit <- Digits].

function(1, N) ->
    fun(X) -> residue(fib(X rem 16) + X, N) end;
function(2, N) ->
    fun(X) -> residue(fib(X rem 16 + 5) + 2 * X * X + 5 * X - 1, N) end;
function(3, N) ->
    fun(X) -> residue(fib(X rem 16 + 10) - X * X * X + 8 * X, N) end;
function(4, N) ->
    fun(X) -> residue(fib(8 * step(X rem 100, 49, 98) + 3) - 1, N) end;
function(5, N) ->
    fun(X) -> residue(fib(10 * step(X rem 1000, 900, 999)) + 1, N) end.

step(R, First, _) when R < First -> 1;
step(R, _, Second) when R < Second -> 2;
step(_, _, _) -> 3.

residue(V, N) ->
    abs(V) rem N.

%% Naive on purpose: that one vertex costs a thousand times another is part of
%% what the benchmark measures.
fib(N) when N < 2 -> 1;
fib(N) -> fib(N - 1) + fib(N - 2).
