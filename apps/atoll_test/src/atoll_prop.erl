%% SPDX-License-Identifier: Apache-2.0
%% @doc Properties as EUnit tests, seeded and sized by {@link atoll_tier}.
%%
%% PropEr draws from the random state of the process that calls it, if there is one. So a
%% property is played again by the seed of the run. A failure carries that seed, the
%% counterexample, and what PropEr said. The counterexample is in its smallest form, if that is found
%% within a minute: a test that ran out of time while it looked for it would show none at all.
-module(atoll_prop).

-export([tests/1, test/3, test/4, again/3, holds/3, holds/4]).
-export([undefined_function/3, undefined_lambda/3]).

-export_type([option/0]).

%% How long the smallest form is looked for, or one of PropEr's own options, such as `{max_size, 40}'.
-type option() :: {shrink_ms, non_neg_integer()} | term().

%% So many seconds, for a machine on which much else runs.
-define(FAST_S, 300).
-define(DEEP_S, 3600).
-define(SHRINK_MS, 60000).

%% How much of what PropEr said goes into a failure.
-define(SAID, 4000).

%% @doc A test for each property, with its title and the number of its tests in the deep
%% tier.
-spec tests([{Title :: string() | atom(), proper:outer_test(), Deep :: pos_integer()}]) -> [tuple()].
tests(Properties) ->
    [test(Title, Property, Deep) || {Title, Property, Deep} <- Properties].

%% @doc One test.
-spec test(Title :: string() | atom(), proper:outer_test(), Deep :: pos_integer()) -> tuple().
test(Title, Property, Deep) ->
    test(Title, Property, Deep, []).

%% @doc One test, with options of PropEr.
-spec test(Title :: string() | atom(), proper:outer_test(), Deep :: pos_integer(), [option()]) -> tuple().
test(Title, Property, Deep, Options) ->
    timed(Title, fun() -> holds(Title, Property, Deep, Options) end).

%% @doc A test that a property holds of a counterexample that was found once, as it stands in
%% the failure.
-spec again(Title :: string() | atom(), proper:outer_test(), Counterexample :: [term()]) -> tuple().
again(Title, Property, Counterexample) ->
    timed(Title, fun() ->
        checked(Title, fun(Hear) -> seeded(Title, fun() -> proper:check(Property, Counterexample, Hear) end) orelse Counterexample end)
    end).

timed(Title, Fun) ->
    Seconds =
        case atoll_tier:tier() of
            fast -> ?FAST_S;
            deep -> ?DEEP_S
        end,
    {title(Title), {timeout, Seconds, Fun}}.

title(Title) when is_atom(Title) -> atom_to_list(Title);
title(Title) -> Title.

%% @doc Checks a property in the calling process; fails with its counterexample.
-spec holds(Title :: string() | atom(), proper:outer_test(), Deep :: pos_integer()) -> ok.
holds(Title, Property, Deep) ->
    holds(Title, Property, Deep, []).

%% @doc The same with options of PropEr.
-spec holds(Title :: string() | atom(), proper:outer_test(), Deep :: pos_integer(), [option()]) -> ok.
holds(Title, Property, Deep, Options) ->
    checked(Title, fun(Hear) ->
        Own = proplists:delete(shrink_ms, Options) ++ [{numtests, atoll_tier:tests(Deep)}, long_result | Hear],
        case seeded(Title, fun() -> proper:quickcheck(Property, [noshrink | Own]) end) of
            true -> true;
            Found -> smallest(Title, Found, proplists:get_value(shrink_ms, Options, ?SHRINK_MS), fun() -> proper:quickcheck(Property, Own) end)
        end
    end).

%% The same again by somebody else, who may be stopped.
smallest(Title, Found, Ms, Again) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> Self ! {self(), seeded(Title, Again)} end),
    Smallest =
        receive
            {Pid, [_ | _] = Is} -> Is;
            {Pid, _} -> Found;
            {'DOWN', Ref, process, Pid, _} -> Found
        after Ms -> Found
        end,
    true = demonitor(Ref, [flush]),
    true = exit(Pid, kill),
    Smallest.

seeded(Title, Fun) ->
    _ = rand:seed(exsss, atoll_tier:seed(title(Title))),
    Handler = process_flag(error_handler, ?MODULE),
    try Fun() after process_flag(error_handler, Handler) end.

checked(Title, Check) ->
    Said = ets:new(said, [ordered_set, public]),
    Hear = fun(Format, Arguments) ->
        true = ets:insert(Said, {erlang:unique_integer([monotonic]), io_lib:format(Format, Arguments)}),
        ok
    end,
    try Check([{on_output, Hear}, nocolors]) of
        true ->
            ok;
        Counterexample ->
            Text = [Line || {_, Line} <- ets:tab2list(Said)],
            error({does_not_hold, title(Title), #{
                seed => atoll_tier:seed(),
                counterexample => Counterexample,
                said => last(string:trim(unicode:characters_to_list(Text), leading, "."))
            }})
    after
        true = ets:delete(Said)
    end.

%% @doc PropEr 1.2 asks for the stack of a crash by a function that OTP has no more: a
%% property that crashes would end without its counterexample. This process, which runs it,
%% answers in its place that there is none.
-spec undefined_function(module(), atom(), [term()]) -> term().
undefined_function(erlang, get_stacktrace, []) -> [];
undefined_function(Module, Function, Arguments) -> error_handler:undefined_function(Module, Function, Arguments).

%% @doc As OTP does.
-spec undefined_lambda(module(), function(), [term()]) -> term().
undefined_lambda(Module, Fun, Arguments) -> error_handler:undefined_lambda(Module, Fun, Arguments).

last(Text) -> lists:nthtail(max(0, length(Text) - ?SAID), Text).
