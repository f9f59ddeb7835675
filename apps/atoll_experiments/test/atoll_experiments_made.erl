%% SPDX-License-Identifier: Apache-2.0
%% Results as runs leave them, made up: what verdicts and pages are tested with.
-module(atoll_experiments_made).

-export([run/1, run/2, spread/3, json/1]).

%% A run that has these rounds: the point, the start, the values, and what others used.
run(Rounds) -> run(Rounds, []).

%% Metrics are values, but for those that are named: these are latencies, and not made here.
run(Rounds, Errors) ->
    Points = lists:usort([Point || {Point, _, _, _} <- Rounds] ++ [Point || {Point, _} <- Errors]),
    Index = maps:from_list([{P, I} || {I, P} <- lists:enumerate(0, Points)]),
    Metrics = lists:usort(lists:append([maps:keys(Values) || {_, _, Values, _} <- Rounds])),
    #{
        file => "made.jsonl",
        header => #{
            <<"benchmark">> => <<"debench">>,
            <<"variant">> => <<"system">>,
            <<"points">> => [maps:fold(fun(K, V, M) -> M#{text(K) => text(V)} end, #{}, Point) || Point <- Points],
            <<"parameters">> => [#{<<"name">> => text(Name)} || Name <- maps:keys(hd(Points))],
            <<"metrics">> => [#{<<"name">> => text(Name), <<"kind">> => <<"value">>} || Name <- Metrics]
        },
        rounds => [
            #{
                <<"point">> => map_get(Point, Index), <<"start">> => Start, <<"round">> => Start, <<"others_cpu">> => Others,
                <<"values">> => maps:from_list([{text(K), V} || {K, V} <- maps:to_list(Values)]), <<"histograms">> => #{}
            }
         || {Point, Start, Values, Others} <- Rounds
        ],
        errors => [#{<<"point">> => map_get(Point, Index), <<"error">> => Why} || {Point, Why} <- Errors],
        status => complete
    }.

%% So many samples about a middle, with that standard deviation of their logarithms.
spread(Count, Middle, Sd) ->
    [Middle * math:exp(Sd * rand:normal()) || _ <- lists:seq(1, Count)].

%% What a function returned, after its way through a file.
json(Term) ->
    {ok, Read} = atoll_bench_json:decode(atoll_bench_json:encode(Term)),
    Read.

text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Number) -> Number.
