%% SPDX-License-Identifier: Apache-2.0
%% @doc Options: read key by key, and completed with their defaults; those of the algorithm,
%% which are the same in all modes, and by the same rules any others ({@link complete/2}).
-module(aco_options).

-export([new/1, defaults/0, allowed/1, complete/2, format_error/1]).

-export_type([given/0, options/0, allowed/0, key/0, reason/0]).

%% What a user gives: any of the keys of {@link options()}.
-type given() :: #{atom() => term()}.

-type options() :: #{
    %% ants of a colony
    ants := pos_integer(),
    %% generations of ants in a round
    local_iterations := pos_integer(),
    %% rounds, after each of which the colonies hear of the best
    global_iterations := pos_integer(),
    %% what each ant does with its solution
    local_search := aco_search:search(),
    %% of all draws
    seed := integer(),
    heuristic := aco_heuristic:rule(),
    %% how much what was learned counts
    alpha := float(),
    %% how much the heuristic counts
    beta := float(),
    %% how often an ant takes what looks best instead of drawing
    q0 := float(),
    %% the share that evaporates, and that a deposit has
    rho := float(),
    %% the pheromone at first; `auto' is 1 / (ants * cost of the order by due dates)
    tau0 := auto | float()
}.

%% What the value of an option may be; a whole number is taken where a number is meant.
-type allowed() :: common() | {a, Words :: string(), fun((term()) -> boolean())}.

-type common() :: {whole | number | auto_or_number, Least :: integer(), Most :: integer()} | {one_of, [atom(), ...]}.

-type key() :: {atom(), Default :: term(), allowed()}.

-type reason() :: {unknown_option, term()} | {wrong_option, atom(), allowed(), term()}.

keys() ->
    [
        {ants, 8, {whole, 1, 10000}},
        {local_iterations, 20, {whole, 1, 1000000}},
        {global_iterations, 20, {whole, 1, 1000000}},
        {local_search, none, {one_of, aco_search:names()}},
        {seed, 1, {whole, -(1 bsl 58), 1 bsl 58}},
        {heuristic, mdd, {one_of, [mdd, edd, au]}},
        {alpha, 1.0, {number, 0, 10}},
        {beta, 2.0, {number, 0, 10}},
        {q0, 0.9, {number, 0, 1}},
        {rho, 0.1, {number, 0, 1}},
        {tau0, auto, {auto_or_number, 0, 1000000}}
    ].

%% @doc Completes the options of the algorithm, or says what is wrong with them.
-spec new(given()) -> {ok, options()} | {error, reason()}.
new(Given) -> complete(keys(), Given).

%% @doc What each option is unless told.
-spec defaults() -> options().
defaults() -> maps:from_list([{Key, Default} || {Key, Default, _} <- keys()]).

%% @doc What an option may be, wherever it is given.
-spec allowed(atom()) -> common().
allowed(Key) ->
    {Key, _, Allowed} = lists:keyfind(Key, 1, keys()),
    Allowed.

%% @doc Completes any options. A key that is there twice counts as it stands first.
-spec complete([key()], map()) -> {ok, map()} | {error, reason()}.
complete(Keys, Given) ->
    case maps:keys(Given) -- [Key || {Key, _, _} <- Keys] of
        [] -> complete(Keys, Given, #{});
        [Unknown | _] -> {error, {unknown_option, Unknown}}
    end.

complete([{Key, Default, Allowed} | Keys], Given, Done) ->
    Value = maps:get(Key, Given, Default),
    case fits(Allowed, Value) of
        true -> complete(Keys, Given, Done#{Key => number(Allowed, Value)});
        false -> {error, {wrong_option, Key, Allowed, Value}}
    end;
complete([], _, Done) ->
    {ok, Done}.

fits({whole, Least, Most}, Value) -> is_integer(Value) andalso Value >= Least andalso Value =< Most;
fits({number, Least, Most}, Value) -> is_number(Value) andalso Value >= Least andalso Value =< Most;
fits({auto_or_number, Least, Most}, Value) -> Value =:= auto orelse fits({number, Least, Most}, Value);
fits({one_of, Values}, Value) -> lists:member(Value, Values);
fits({a, _, Is}, Value) -> Is(Value).

number({Kind, _, _}, Value) when Kind =/= whole, Kind =/= a, is_integer(Value) -> float(Value);
number(_, Value) -> Value.

%% @doc One sentence that names the option and what it may be.
-spec format_error(reason()) -> unicode:chardata().
format_error({unknown_option, Key}) ->
    io_lib:format("There is no option ~0tp.", [Key]);
format_error({wrong_option, Key, Allowed, Value}) ->
    io_lib:format("The option ~ts must be ~ts, not ~0tP.", [Key, words(Allowed), Value, 12]).

words({whole, Least, Most}) -> io_lib:format("a whole number from ~b to ~b", [Least, Most]);
words({number, Least, Most}) -> io_lib:format("a number from ~b to ~b", [Least, Most]);
words({auto_or_number, Least, Most}) -> ["auto or ", words({number, Least, Most})];
words({one_of, Values}) -> ["one of ", lists:join(", ", [atom_to_list(Value) || Value <- Values])];
words({a, Words, _}) -> Words.
