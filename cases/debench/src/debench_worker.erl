%% SPDX-License-Identifier: Apache-2.0
%% @doc A worker of DE-Bench: it takes operations off its node's pace, draws what each is,
%% does it, and writes down what became of it. When the load is over it does what is forced
%% after its last registration, and ends. Whoever kills it has taken the operation that
%% it was at: its supervisor starts another one, which begins with none.
-module(debench_worker).

-export([start_link/2, latency/4]).

-export_type([shared/0]).

%% What all workers of a node have in common.
-type shared() :: #{
    weighted := [debench_config:weighted(), ...],
    partners := [node(), ...],
    here := debench_system:here(),
    payload := binary(),
    delay_us := non_neg_integer(),
    seed := integer(),
    pace := atoll_bench_pace:pace(),
    tally := debench_tally:tally(),
    %% How often each worker was started.
    starts := counters:counters_ref()
}.

%% @doc Starts the worker with that number. It is counted before it is there, as it may be killed at once.
-spec start_link(pos_integer(), shared()) -> {ok, pid()}.
start_link(Number, #{starts := Starts} = Shared) ->
    ok = counters:add(Starts, Number, 1),
    {ok, proc_lib:spawn_link(fun() -> start(Number, Shared) end)}.

start(Number, #{weighted := Weighted, partners := Partners, seed := Seed, starts := Starts} = Shared) ->
    Own = {Seed, node(), Number, counters:get(Starts, Number)},
    Choice = debench_choice:new(Weighted, {node(), Partners}, Own),
    Place = (maps:with([here, payload, delay_us], Shared))#{
        local_name => list_to_atom("debench_local_" ++ integer_to_list(Number))
    },
    work(Choice, Place#{global_name => none}, Shared#{number => Number}).

work(Choice, Place, #{pace := Pace, tally := Tally} = Shared) ->
    case atoll_bench_pace:next(Pace) of
        {'begin', Intended, In} ->
            {NextChoice, NextPlace} = operate({Intended, In}, Choice, Place, Shared),
            work(NextChoice, NextPlace, Shared);
        {shed, in} ->
            ok = debench_tally:shed(Tally),
            work(Choice, Place, Shared);
        {shed, out} ->
            work(Choice, Place, Shared);
        over ->
            finish(Choice, Place, Shared)
    end.

finish(Choice, Place, Shared) ->
    case debench_choice:forced(Choice) of
        0 ->
            ok;
        _ ->
            %% Nobody offered these: in the window they would be more than there is.
            {NextChoice, NextPlace} = operate({erlang:monotonic_time(nanosecond), unoffered}, Choice, Place, Shared),
            finish(NextChoice, NextPlace, Shared)
    end.

operate({Intended, In}, Choice0, Place0, #{pace := Pace, tally := Tally} = Shared) ->
    {{Label, Operation, Node}, How, Choice} = debench_choice:next(Choice0),
    _ = [ok = debench_tally:drawn(Label, Tally) || How =:= drawn],
    Place = named(Operation, Place0, Shared),
    Began = erlang:monotonic_time(nanosecond),
    Outcome = debench_op:do(Operation, Node, Place),
    Ended = erlang:monotonic_time(nanosecond),
    Ns = latency(Intended, Began, Ended, parts(Operation, Place)),
    EndedIn = In =/= unoffered andalso atoll_bench_pace:in_window(Ended, Pace),
    ok = debench_tally:record(Label, Outcome, Ns, {In =:= in, EndedIn}, Tally),
    {debench_choice:done(Operation, of_outcome(Outcome), Choice), Place}.

%% @doc The latency of an operation: how long it has waited since it was to begin, and then how
%% long it took; in several groups it was done so many times, and waited for once.
-spec latency(Intended :: integer(), Began :: integer(), Ended :: integer(), Parts :: pos_integer()) -> integer().
latency(Intended, Began, Ended, Parts) when is_integer(Intended), is_integer(Began) ->
    Began - Intended + (Ended - Began) div Parts.

of_outcome(ok) -> ok;
of_outcome({error, _}) -> error.

%% No name is given twice.
named(global_register, Place, #{number := Number}) ->
    Place#{global_name := {debench, node(), Number, erlang:unique_integer([positive])}};
named(_Operation, Place, _Shared) ->
    Place.

parts(Operation, #{here := Here}) ->
    case debench_op:family(Operation) of
        global -> debench_system:parts(Here);
        _ -> 1
    end.
