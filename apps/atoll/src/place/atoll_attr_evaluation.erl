%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Questions for the values of attributes of this node, and the evaluations that they
%% wait for. Pure: what is to be evaluated is an effect, `{act, {evaluate, Key, Source}}',
%% and `{act, {abandon, Key}}' ends it.
%%
%% A dynamic attribute is evaluated at each question; questions that come while it is being
%% evaluated share what comes out. So there is one process for each function at most. It has
%% its time; what takes longer is ended. A question may have less time than that: then it is
%% answered with what is there, and the evaluation goes on for the others. What is late is not in
%% the answer: to be `undefined' is another thing, and may be relied on.
%%
%% An automatic attribute is evaluated once, with more time. If that fails it is undefined
%% from then on.
-module(atoll_attr_evaluation).

-export([new/1, ask/5, prepare/2, evaluated/3, timed_out/2, counts/1]).

-export_type([evaluations/0, options/0, key/0, id/0, asker/0, done/0]).

-type options() :: #{
    evaluate_ms := pos_integer(), automatic_ms := pos_integer(), max_questions := pos_integer()
}.

-type key() :: {dynamic | automatic, atoll_attr_book:source()}.
-type id() :: pos_integer().
-type asker() :: term().
%% Whoever uses this knows what it means.

-type done() ::
    %% A question is answered.
    {asker(), atoll_predicate:values()}
    %% An automatic attribute has its value.
    | {automatic, atoll_attr_book:source(), term()}.

-record(question, {
    asker :: asker(),
    values :: atoll_predicate:values(),
    %% The names that come from each evaluation.
    waits :: #{key() => [atoll_predicate:name()]}
}).

-record(evaluations, {
    options :: options(),
    next = 1 :: id(),
    questions = #{} :: #{id() => #question{}},
    %% Who waits for each.
    running = #{} :: #{key() => [id()]},
    counts = #{evaluated => 0, failed => 0, late => 0, too_large => 0, refused => 0} :: #{atom() => non_neg_integer()}
}).

-opaque evaluations() :: #evaluations{}.

-type result() :: {[done()], [atoll_protocol:effect()], evaluations()}.

%% @doc Nothing is asked.
-spec new(options()) -> evaluations().
new(Options) ->
    #evaluations{options = Options}.

%% @doc A question for these attributes, to be answered in so many milliseconds, with those of
%% which something is known by then; with none where too many questions wait already.
-spec ask(asker(), [atoll_predicate:name()], Ms :: non_neg_integer(), atoll_attr_book:book(), evaluations()) -> result().
ask(Asker, _Names, _Ms, _Book, #evaluations{questions = Questions, options = #{max_questions := Max}} = E) when
    map_size(Questions) >= Max
->
    {[{Asker, #{}}], [], count(refused, E)};
ask(Asker, Names, Ms, Book, E0) ->
    {Values, Waits} = lists:foldl(fun(Name, Acc) -> look(Name, Book, Acc) end, {#{}, #{}}, Names),
    case maps:keys(Waits) of
        [] ->
            {[{Asker, Values}], [], E0};
        Keys ->
            #evaluations{next = Id, questions = Questions} = E0,
            Question = #question{asker = Asker, values = Values, waits = Waits},
            Asked = E0#evaluations{next = Id + 1, questions = Questions#{Id => Question}},
            {Effects, E} = run_all(lists:sort(Keys), [Id], Asked),
            {[], Effects ++ [{timer, {question, Id}, Ms}], E}
    end.

look(Name, Book, {Values, Waits}) ->
    case atoll_attr_book:look(Name, Book) of
        none -> {Values#{Name => undefined}, Waits};
        {static, Value} -> {Values#{Name => Value}, Waits};
        Key -> {Values, maps:update_with(Key, fun(Names) -> [Name | Names] end, [Name], Waits)}
    end.

run_all(Keys, Ids, E0) ->
    lists:foldl(
        fun(Key, {Effects, E1}) ->
            {More, E} = run(Key, Ids, E1),
            {Effects ++ More, E}
        end,
        {[], E0},
        Keys
    ).

run(Key, Ids, #evaluations{running = Running} = E) ->
    case Running of
        #{Key := Waiting} ->
            {[], E#evaluations{running = Running#{Key := Ids ++ Waiting}}};
        #{} ->
            {_, Source} = Key,
            {
                [{act, {evaluate, Key, Source}}, {timer, {evaluation, Key}, limit(Key, E)}],
                E#evaluations{running = Running#{Key => Ids}}
            }
    end.

limit({dynamic, _}, #evaluations{options = #{evaluate_ms := Ms}}) -> Ms;
limit({automatic, _}, #evaluations{options = #{automatic_ms := Ms}}) -> Ms.

%% @doc Begins to evaluate the automatic attributes of the book.
-spec prepare(atoll_attr_book:book(), evaluations()) -> {[atoll_protocol:effect()], evaluations()}.
prepare(Book, E0) ->
    run_all([{automatic, Source} || {_Name, Source} <- atoll_attr_book:automatics(Book)], [], E0).

%% @doc An evaluation is over. One that was abandoned says nothing any more. The value was
%% measured where it was made, so that one that is too large is not copied.
-spec evaluated(key(), {ok, term()} | failed | too_large, evaluations()) -> result().
evaluated(Key, {ok, Value}, E) ->
    answered(Key, {value, Value}, [{cancel, {evaluation, Key}}], count(evaluated, E));
evaluated(Key, Failure, E) ->
    answered(Key, {value, undefined}, [{cancel, {evaluation, Key}}], count(Failure, E)).

%% @doc The time of an evaluation or of a question is over.
-spec timed_out({evaluation, key()} | {question, id()}, evaluations()) -> result().
timed_out({evaluation, Key}, E) ->
    answered(Key, late, [{act, {abandon, Key}}], count(late, E));
timed_out({question, Id}, #evaluations{questions = Questions, running = Running} = E) ->
    {#question{asker = Asker, values = Values, waits = Waits}, Rest} = maps:take(Id, Questions),
    Left = maps:map(
        fun(Key, Ids) ->
            case Waits of
                #{Key := _} -> lists:delete(Id, Ids);
                #{} -> Ids
            end
        end,
        Running
    ),
    {[{Asker, Values}], [], E#evaluations{questions = Rest, running = Left}}.

answered(Key, Outcome, Effects, #evaluations{running = Running} = E0) ->
    {Ids, Rest} = maps:take(Key, Running),
    {Done, Cancels, E} = lists:foldl(
        fun(Id, Acc) -> enter(Id, Key, Outcome, Acc) end, {[], [], E0#evaluations{running = Rest}}, lists:sort(Ids)
    ),
    Fixed = [{automatic, Source, fixed(Outcome)} || {automatic, Source} <- [Key]],
    {Fixed ++ lists:reverse(Done), Effects ++ lists:reverse(Cancels), E}.

%% There is no second time.
fixed({value, Value}) -> Value;
fixed(late) -> undefined.

enter(Id, Key, Outcome, {Done, Cancels, #evaluations{questions = Questions} = E}) ->
    #{Id := #question{asker = Asker, values = Values0, waits = Waits0} = Question} = Questions,
    {Names, Waits} = maps:take(Key, Waits0),
    Values = maps:merge(Values0, maps:from_list([{Name, Value} || {value, Value} <- [Outcome], Name <- Names])),
    case map_size(Waits) of
        0 ->
            {
                [{Asker, Values} | Done],
                [{cancel, {question, Id}} | Cancels],
                E#evaluations{questions = maps:remove(Id, Questions)}
            };
        _ ->
            {Done, Cancels, E#evaluations{questions = Questions#{Id := Question#question{values = Values, waits = Waits}}}}
    end.

%% @doc How many evaluations gave a value, failed, were late or gave too large a value; and how
%% many questions were refused because too many waited.
-spec counts(evaluations()) -> #{atom() => non_neg_integer()}.
counts(#evaluations{counts = Counts}) ->
    Counts.

count(What, #evaluations{counts = Counts} = E) ->
    #{What := N} = Counts,
    E#evaluations{counts = Counts#{What := N + 1}}.
