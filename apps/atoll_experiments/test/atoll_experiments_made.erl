%% Results as steps leave them, made up: what the verdicts are tested with.
-module(atoll_experiments_made).

-export([run/2, json/1]).

%% A run whose points have these values, one round each.
run(Metrics, Points) ->
    #{
        file => "made.jsonl",
        header => #{
            <<"points">> => [maps:fold(fun(K, V, M) -> M#{text(K) => text(V)} end, #{}, Point) || {Point, _} <- Points],
            <<"parameters">> => [#{<<"name">> => text(Name)} || Name <- maps:keys(element(1, hd(Points)))],
            <<"metrics">> => [#{<<"name">> => text(Name), <<"kind">> => <<"value">>} || Name <- Metrics]
        },
        rounds => [
            #{<<"point">> => Index, <<"values">> => maps:from_list([{text(K), V} || {K, V} <- lists:zip(Metrics, Values)]), <<"histograms">> => #{}}
         || {Index, {_, Values}} <- lists:zip(lists:seq(0, length(Points) - 1), Points)
        ],
        errors => [],
        status => complete
    }.

%% What a job returned, after its way through a file.
json(Term) ->
    {ok, Read} = atoll_bench_json:decode(atoll_bench_json:encode(Term)),
    Read.

text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Number) -> Number.
