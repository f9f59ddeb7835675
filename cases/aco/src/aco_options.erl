%% @doc The options of the algorithm, which are the same in all modes: read key
%% by key, and completed with their defaults.
-module(aco_options).

-export([new/1, defaults/0, allowed/1, format_error/1]).

-export_type([given/0, options/0, allowed/0, reason/0]).

%% What a user gives: any of the keys of {@link options()}.
-type given() :: #{atom() => term()}.

-type options() :: #{
    %% ants of a colony, 8 unless told
    ants := pos_integer(),
    %% generations of ants in a round, 20 unless told
    local_iterations := pos_integer(),
    %% rounds, after each of which the colonies hear of the best, 20 unless told
    global_iterations := pos_integer(),
    %% what each ant does with its solution, none unless told
    local_search := aco_search:search(),
    %% of all draws, 1 unless told
    seed := integer(),
    %% seeded unless told
    random := aco_random:kind(),
    %% mdd unless told
    heuristic := aco_heuristic:rule(),
    %% how much what was learned counts, 1.0 unless told
    alpha := float(),
    %% how much the heuristic counts, 2.0 unless told
    beta := float(),
    %% how often an ant takes what looks best instead of drawing, 0.9 unless told
    q0 := float(),
    %% the share that evaporates, and that a deposit has, 0.1 unless told
    rho := float(),
    %% whether pheromone evaporates, true unless told
    evaporate := boolean(),
    %% the pheromone at first; `auto', which it is unless told, is
    %% 1 / (ants * cost of the order by due dates)
    tau0 := auto | float()
}.

%% What the value of an option may be.
-type allowed() ::
    {whole | number | auto_or_number, Least :: integer(), Most :: integer()}
    | {one_of, [atom(), ...]}.

-type reason() :: {unknown_option, term()} | {wrong_option, atom(), term()}.

%% @doc Completes options, or says what is wrong with them.
-spec new(given()) -> {ok, options()} | {error, reason()}.
new(Given) ->
    case maps:keys(maps:without(maps:keys(defaults()), Given)) of
        [] -> check(maps:to_list(maps:merge(defaults(), Given)), #{});
        [Key | _] -> {error, {unknown_option, Key}}
    end.

%% @doc What each option is unless told.
-spec defaults() -> options().
defaults() ->
    #{ants => 8, local_iterations => 20, global_iterations => 20, local_search => none, seed => 1,
      random => seeded, heuristic => mdd, alpha => 1.0, beta => 2.0, q0 => 0.9, rho => 0.1,
      evaporate => true, tau0 => auto}.

check([{Key, Value} | Rest], Options) ->
    case fits(allowed(Key), Value) of
        true when is_integer(Value), Key =/= seed, Key =/= ants, Key =/= local_iterations, Key =/= global_iterations ->
            check(Rest, Options#{Key => float(Value)});
        true ->
            check(Rest, Options#{Key => Value});
        false ->
            {error, {wrong_option, Key, Value}}
    end;
check([], Options) ->
    {ok, Options}.

%% @doc What an option may be, wherever it is given.
-spec allowed(atom()) -> allowed().
allowed(ants) -> {whole, 1, 10000};
allowed(local_iterations) -> {whole, 1, 1000000};
allowed(global_iterations) -> {whole, 1, 1000000};
allowed(local_search) -> {one_of, aco_search:names()};
allowed(seed) -> {whole, -(1 bsl 58), 1 bsl 58};
allowed(random) -> {one_of, [seeded, cyclic]};
allowed(heuristic) -> {one_of, [mdd, edd, au]};
allowed(evaporate) -> {one_of, [true, false]};
allowed(alpha) -> {number, 0, 10};
allowed(beta) -> {number, 0, 10};
allowed(q0) -> {number, 0, 1};
allowed(rho) -> {number, 0, 1};
allowed(tau0) -> {auto_or_number, 0, 1000000}.

fits({whole, Least, Most}, Value) -> is_integer(Value) andalso Value >= Least andalso Value =< Most;
fits({number, Least, Most}, Value) -> is_number(Value) andalso Value >= Least andalso Value =< Most;
fits({auto_or_number, _, _}, auto) -> true;
fits({auto_or_number, Least, Most}, Value) -> fits({number, Least, Most}, Value);
fits({one_of, Values}, Value) -> lists:member(Value, Values).

%% @doc One sentence that names the option and what it may be.
-spec format_error(reason()) -> unicode:chardata().
format_error({unknown_option, Key}) ->
    io_lib:format("There is no option ~0tp.", [Key]);
format_error({wrong_option, Key, Value}) ->
    io_lib:format("The option ~ts must be ~ts, not ~0tP.", [Key, words(allowed(Key)), Value, 12]).

words({whole, Least, Most}) -> io_lib:format("a whole number from ~b to ~b", [Least, Most]);
words({number, Least, Most}) -> io_lib:format("a number from ~b to ~b", [Least, Most]);
words({auto_or_number, Least, Most}) -> ["auto or ", words({number, Least, Most})];
words({one_of, Values}) -> ["one of ", lists:join(", ", [atom_to_list(Value) || Value <- Values])].
