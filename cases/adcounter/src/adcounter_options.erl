%% SPDX-License-Identifier: Apache-2.0
%% @doc The settings of a node, the environment of the application, checked key by key when it starts. The simulator has the same.
-module(adcounter_options).

-export([check/1, defaults/0, format_error/1]).

-export_type([options/0, error/0]).

-type options() :: #{
    %% The one server has the contracts, and waits for so many `clients'; all others show advertisements. `client'.
    role := server | client,
    clients := pos_integer(),
    %% Advertisements, and how often each may be shown, all clients together: 1 and 100.
    ads := pos_integer(),
    budget := pos_integer(),
    %% How replicas tell each other what is new, and how often, in milliseconds: `delta' and 1000.
    how := state | delta,
    propagation_ms := pos_integer(),
    %% Deltas that are kept for neighbours. 1000.
    buffer_max := pos_integer(),
    %% From one impression of a client to the next, a quarter more or less: 1000. In the paper 10000.
    impression_ms := pos_integer(),
    %% Which part of the time a client is off line, in percent, and for how long each time: 0 and 5000.
    offline := non_neg_integer(),
    offline_ms := pos_integer(),
    %% Who watches the counters and disables what has reached its limit: the server alone, or each client too. `server'.
    triggers := server | all,
    %% Whether clients report in an object that they have seen it: the set of them grows with the clients. `true'.
    report := boolean()
}.

-type error() :: {bad_option, Key :: term(), Must :: string()}.

%% @doc All settings, with the defaults of those that are not told.
-spec check(#{atom() => term()}) -> {ok, options()} | {error, error()}.
check(Told) ->
    case maps:keys(Told) -- [Key || {Key, _, _, _} <- rules()] of
        [] -> checked(rules(), Told, #{});
        [Key | _] -> {error, {bad_option, Key, "is not known"}}
    end.

checked([], _, Options) ->
    {ok, Options};
checked([{Key, Default, Test, Must} | Rules], Told, Options) ->
    Value = maps:get(Key, Told, Default),
    case Test(Value) of
        true -> checked(Rules, Told, Options#{Key => Value});
        false -> {error, {bad_option, Key, Must}}
    end.

%% @doc What is told nothing of.
-spec defaults() -> options().
defaults() -> maps:from_list([{Key, Default} || {Key, Default, _, _} <- rules()]).

rules() ->
    Positive = fun(N) -> is_integer(N) andalso N > 0 end,
    One = fun(Words) -> fun(Word) -> lists:member(Word, Words) end end,
    Ms = "must be a whole number of milliseconds above 0",
    [
        {role, client, One([server, client]), "must be server or client"},
        {clients, 1, Positive, "must be a whole number above 0"},
        {ads, 1, fun(N) -> Positive(N) andalso N =< 100 end, "must be 1 to 100"},
        {budget, 100, Positive, "must be a whole number above 0"},
        {how, delta, One([state, delta]), "must be state or delta"},
        {propagation_ms, 1000, Positive, Ms},
        {buffer_max, 1000, Positive, "must be a whole number above 0"},
        {impression_ms, 1000, Positive, Ms},
        {offline, 0, fun(N) -> is_integer(N) andalso N >= 0 andalso N =< 90 end, "must be 0 to 90, percent"},
        {offline_ms, 5000, Positive, Ms},
        {triggers, server, One([server, all]), "must be server or all"},
        {report, true, fun is_boolean/1, "must be true or false"}
    ].

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_option, Key, Must}) -> io_lib:format("The setting ~0tp of adcounter ~ts.", [Key, Must]).
