%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The protocol of attributes: what this node is like, what others are, and choosing
%% among them.
%%
%% A question goes to each node that is asked, at once; those that are not connected are
%% connected for it, and the connection is given back. There is one deadline for the whole:
%% when it comes, or when all have answered, whoever asked gets what is there, with the names
%% of those who were silent and of those who could not be reached. A node answers when its
%% dynamic attributes are evaluated, or shortly before the time that the question has left is over,
%% without those that are not. If it does not fit by the others it is counted as silent: it may
%% fit.
%%
%% A question may take values that are some time old. What other nodes tell of themselves
%% unasked ({@link atoll_attr_gossip}), and what was asked before, then counts as an answer;
%% only nodes of which nothing of the kind is known are asked.
%%
%% A choice ({@link atoll_choosing}) is a second question, to one node or a few. The node that
%% is chosen says in it what it is like at that moment, if the values by which it was found
%% were old, and is passed over if it does not fit.
%%
%% Promised: who asks is answered by the deadline. A function of an attribute, or a peer,
%% that hangs or crashes costs values and nothing else. At most `max_questions' questions and
%% choices of this node are under way, the next is refused; nothing here grows beyond its
%% bound, and of what peers say only that is taken which has one ({@link atoll_attr_message}).
%%
%% Not promised: that a silent node is dead. That the values are still those when the answer
%% is read. That a node which lies is not believed.
%%
%% It is one module, though long, since questions and choices share connections, the evaluation
%% and the bound on both; what each does by itself is in modules of its own.
-module(atoll_attr_core).

-behaviour(atoll_protocol).

-export([options/0, bounds/1, init/2, handle/3]).

-export_type([config/0, options/0, request/0, asked/0, choice/0, state/0]).

-type config() :: #{
    self := node(),
    %% That of a later life is higher, by more than it had questions.
    incarnation := pos_integer(),
    seed := integer(),
    %% Those that differ from the defaults.
    options := options(),
    definitions := [atoll_attr_book:definition()],
    %% What programs had added before the process was lost, as the deed `keep' had it.
    added => [{name(), atoll_attr_book:entry(), atoll_attr_book:owner()}]
}.

-type options() :: #{
    %% The time that a dynamic, and an automatic attribute has to be evaluated.
    evaluate_ms => pos_integer(),
    automatic_ms => pos_integer(),
    %% Bounds: bytes of a value, attributes of this node, questions and choices of this
    %% node under way, questions that it answers at the same time.
    max_value => pos_integer(),
    max_attributes => pos_integer(),
    max_questions => pos_integer(),
    max_answers => pos_integer(),
    %% How long a claim stands, and how many at once.
    hold_ms => pos_integer(),
    max_claims => pos_integer(),
    %% Of a choice: at how many other lines it looks, how often.
    looks => non_neg_integer(),
    rounds => non_neg_integer(),
    %% And those of the gossip.
    atom() => term()
}.

-type values() :: atoll_predicate:values().
-type name() :: atoll_predicate:name().
-type node_set() :: [node()].

-type request() ::
    {insert, name(), Value :: term(), atoll_attr_book:owner()}
    | {update, name(), Value :: term()}
    | {delete, name()}
    %% In place of what was configured.
    | {load, [atoll_attr_book:definition()]}
    %% Those of this node; `all' are all.
    | {values, all | [name()], Ms :: pos_integer()}
    | {ask, #{
        nodes := node_set(),
        names := [name()],
        %% Of those that do not fit nothing is answered.
        predicate := atoll_predicate:predicate(),
        ms := pos_integer(),
        %% How old values may be; 0 has every node asked.
        max_age := non_neg_integer()
    }}
    | {choose, #{
        tiers := [node_set()],
        predicate := atoll_predicate:predicate(),
        %% What to evaluate anew at the chosen node.
        names := [name()],
        ms := pos_integer(),
        %% Whether all of them have just said what they are like.
        fresh => boolean()
    }}
    | summary.

-type asked() :: #{
    answers := [{node(), values(), AgeMs :: non_neg_integer()}],
    silent := node_set(),
    unreachable := node_set()
}.

%% No place where nobody has answered in time.
-type choice() :: {ok, node(), Place :: pos_integer() | none, values()} | none.

-type id() :: pos_integer().

-record(question, {
    from :: atoll_protocol:from(),
    predicate :: atoll_predicate:predicate(),
    names :: [name()],
    %% Whether what is answered is to be remembered.
    keeps :: boolean(),
    answers :: [{node(), values(), non_neg_integer()}],
    pending :: #{node() => []},
    %% They have answered without something on which it hangs whether they fit.
    late = [] :: node_set(),
    unreachable = [] :: node_set()
}).

-record(choice, {
    from :: atoll_protocol:from(),
    predicate :: atoll_predicate:predicate(),
    names :: [name()],
    choosing :: atoll_choosing:choosing(),
    %% Of a node that was claimed.
    values = #{} :: #{node() => values()},
    %% The nodes whose answer it waits for, and the question.
    pending = #{} :: #{node() => claim | look},
    step_ms :: pos_integer(),
    %% Of which one is taken if no claim is answered in time.
    unclaimed :: node_set()
}).

-record(state, {
    self :: node(),
    options :: options(),
    rand :: rand:state(),
    next :: id(),
    book :: atoll_attr_book:book(),
    evaluation :: atoll_attr_evaluation:evaluations(),
    contact = atoll_attr_contact:new() :: atoll_attr_contact:contact(),
    gossip :: atoll_attr_gossip:gossip(),
    %% Which of its timers run.
    gathering = false :: boolean(),
    refreshing = false :: boolean(),
    claims :: atoll_claims:claims(),
    sent :: atoll_attr_sent:sent(),
    questions = #{} :: #{id() => #question{}},
    choices = #{} :: #{id() => #choice{}},
    counts = #{asked => 0, answered => 0, questions => 0, choices => 0, refused => 0, odd => 0, newer => 0} ::
        #{atom() => non_neg_integer()},
    %% Newest first, until the event is done with.
    effects = [] :: [atoll_protocol:effect()]
}).

-opaque state() :: #state{}.

-define(VERSION, 1).

%% @doc The options with their defaults, as {@link atoll_options:complete/2} reads them.
-spec options() -> atoll_options:known().
options() ->
    maps:merge(atoll_attr_gossip:options(), #{
        evaluate_ms => {pos_integer, 200},
        automatic_ms => {pos_integer, 5000},
        max_value => {pos_integer, 4096},
        max_attributes => {pos_integer, 1000},
        max_questions => {pos_integer, 10000},
        max_answers => {pos_integer, 10000},
        hold_ms => {pos_integer, 3000},
        max_claims => {pos_integer, 1000},
        looks => {non_neg_integer, 2},
        rounds => {non_neg_integer, 2}
    }).

%% @doc What the attributes of a node with these options must keep to.
-spec bounds(options()) -> atoll_attr_book:bounds().
bounds(Given) ->
    #{max_value := {_, MaxValue}, max_attributes := {_, Max}} = options(),
    maps:with([max_value, max_attributes], maps:merge(#{max_value => MaxValue, max_attributes => Max}, Given)).

%% @doc A node with what it is defined to be.
-spec init(config(), atoll_protocol:now_ms()) -> {state(), [atoll_protocol:effect()]}.
init(#{self := Self, incarnation := Incarnation, seed := Seed, options := Given, definitions := Definitions} = Config, _Now) ->
    Book = atoll_attr_book:restore(maps:get(added, Config, []), atoll_attr_book:new(Definitions)),
    Defaults = maps:map(fun(_Key, {_Kind, Default}) -> Default end, options()),
    Options = #{hold_ms := HoldMs, max_answers := MaxAnswers} = maps:merge(Defaults, Given),
    State = #state{
        self = Self,
        options = Options,
        rand = rand:seed_s(exsss, Seed),
        next = Incarnation,
        book = Book,
        evaluation = atoll_attr_evaluation:new(
            (maps:with([evaluate_ms, automatic_ms], Options))#{max_questions => MaxAnswers}
        ),
        gossip = atoll_attr_gossip:new(
            #{self => Self, incarnation => Incarnation}, maps:with(maps:keys(atoll_attr_gossip:options()), Options)
        ),
        claims = atoll_claims:new(maps:with([hold_ms, max_claims], Options)),
        sent = atoll_attr_sent:new(HoldMs)
    },
    Watches = [{act, {watch, Process}} || Process <- atoll_attr_book:owners(Book)],
    done(effects(Watches, prepare(State))).

%% @doc Takes one event. `up' and `down' are of connections. Calls are a {@link request()}
%% each; casts are `{unreachable, Node}', `{evaluated, Key, {ok, Value} | failed | too_large}' of
%% the deed `evaluate', and `{gone, Process}' of the deed `watch'. The deed `keep' has all that programs have
%% added.
-spec handle(atoll_protocol:event(), atoll_protocol:now_ms(), state()) -> {state(), [atoll_protocol:effect()]}.
handle({message, From, Message}, Now, #state{options = Limits} = State) ->
    case atoll_attr_message:read(Message, Limits) of
        {ok, Body} -> done(message(Body, From, Now, State));
        Refused -> {count(Refused, State), []}
    end;
handle({call, From, Request}, Now, State) ->
    done(call(Request, From, Now, State));
handle({up, Node}, Now, #state{contact = Contact} = State) ->
    done(contacted(atoll_attr_contact:up(Node, Now, Contact), State));
handle({down, Node, _Reason}, _Now, #state{contact = Contact} = State) ->
    done(contacted(atoll_attr_contact:down(Node, Contact), State));
handle({cast, {unreachable, Node}}, Now, #state{contact = Contact} = State) ->
    case atoll_attr_contact:is_connected(Node, Contact) of
        true -> {State, []};
        false -> done(lists:foldl(fun(Key, S) -> unreachable(Key, Node, Now, S) end, State, atoll_attr_contact:waiting(Node, Contact)))
    end;
handle({cast, {evaluated, Key, Outcome}}, Now, #state{evaluation = E} = State) ->
    done(evaluation(atoll_attr_evaluation:evaluated(Key, Outcome, E), Now, State));
handle({cast, {gone, Process}}, _Now, #state{book = Book} = State) ->
    done(keep(State#state{book = atoll_attr_book:gone(Process, Book)}));
handle({timeout, {evaluation, _} = Which}, Now, #state{evaluation = E} = State) ->
    done(evaluation(atoll_attr_evaluation:timed_out(Which, E), Now, State));
handle({timeout, {question, _} = Which}, Now, #state{evaluation = E} = State) ->
    done(evaluation(atoll_attr_evaluation:timed_out(Which, E), Now, State));
handle({timeout, {asked, Id}}, _Now, #state{questions = Questions} = State) ->
    #{Id := Question} = Questions,
    done(answer(Id, Question, State));
handle({timeout, {chosen, Id}}, _Now, #state{choices = Choices} = State) ->
    #{Id := #choice{choosing = Choosing} = Choice} = Choices,
    done(chosen(Id, Choice, atoll_choosing:current(Choosing), State));
handle({timeout, {step, Id}}, Now, #state{choices = Choices} = State) ->
    #{Id := #choice{pending = Pending}} = Choices,
    done(lists:foldl(fun(Node, S) -> no_answer(Id, Node, Now, S) end, State, lists:sort(maps:keys(Pending))));
handle({timeout, gather}, Now, State) ->
    done(tell(Now, State#state{gathering = false}));
handle({timeout, refresh}, Now, State) ->
    done(refresh(Now, State#state{refreshing = false})).

%% Calls

call({insert, Name, Value, Owner}, From, _Now, #state{book = Book, options = #{max_attributes := Max}} = State) ->
    case check_value(Value, State) of
        ok ->
            case length(atoll_attr_book:names(Book)) < Max of
                true -> booked(From, atoll_attr_book:insert(Name, Value, Owner, Book), watch(Owner), State);
                false -> reply(From, {error, {too_many_attributes, Max}}, State)
            end;
        {error, _} = Error ->
            reply(From, Error, State)
    end;
call({update, Name, Value}, From, _Now, #state{book = Book} = State) ->
    case check_value(Value, State) of
        ok -> booked(From, atoll_attr_book:update(Name, Value, Book), [], State);
        {error, _} = Error -> reply(From, Error, State)
    end;
call({delete, Name}, From, _Now, #state{book = Book} = State) ->
    booked(From, atoll_attr_book:delete(Name, Book), [], State);
call({load, Definitions}, From, _Now, #state{book = Book, options = Options} = State) ->
    Loaded = atoll_attr_book:load(Definitions, Book),
    case atoll_attr_book:within(Loaded, Options) of
        ok -> booked(From, {ok, Loaded}, [], State);
        {error, _} = Error -> booked(From, Error, [], State)
    end;
call({values, all, Ms}, From, Now, #state{book = Book} = State) ->
    local(From, atoll_attr_book:names(Book), Ms, Now, State);
call({values, Names, Ms}, From, Now, State) ->
    local(From, Names, Ms, Now, State);
call({Kind, _}, From, _Now, #state{questions = Q, choices = C, options = #{max_questions := Max}} = State) when
    Kind =:= ask orelse Kind =:= choose, map_size(Q) + map_size(C) >= Max
->
    reply(From, {error, overloaded}, count(refused, State));
call({ask, Asked}, From, Now, State) ->
    ask(Asked, From, Now, count(questions, State));
call({choose, Wanted}, From, Now, State) ->
    choose(Wanted, From, Now, count(choices, State));
call(summary, From, Now, State) ->
    reply(From, summary(Now, State), State).

watch({process, Process}) -> [{act, {watch, Process}}];
watch(_) -> [].

booked(From, {ok, Book}, Effects, State) ->
    reply(From, ok, keep(prepare(effects(Effects, State#state{book = Book}))));
booked(From, {error, Error}, _Effects, State) ->
    reply(From, {error, {book, Error}}, State).

%% Also when nothing of it has changed: that is seldom, and harmless.
keep(#state{book = Book} = State) ->
    effect({act, {keep, atoll_attr_book:added(Book)}}, State).

check_value(Value, #state{options = #{max_value := Max}}) ->
    case erlang:external_size(Value) of
        Bytes when Bytes > Max -> {error, {value_too_large, Bytes, Max}};
        _ -> ok
    end.

prepare(#state{book = Book, evaluation = E0} = State) ->
    {Effects, E} = atoll_attr_evaluation:prepare(Book, E0),
    effects(Effects, State#state{evaluation = E}).

summary(Now, #state{book = Book, evaluation = E, gossip = Gossip, claims = Claims} = State) ->
    #{
        attributes => atoll_attr_book:entries(Book),
        evaluations => atoll_attr_evaluation:counts(E),
        gossip => atoll_attr_gossip:counts(Gossip),
        claims => atoll_claims:count(Now, Claims),
        questions => map_size(State#state.questions),
        choices => map_size(State#state.choices),
        counts => State#state.counts
    }.

%% Values of this node

local(From, Names, Ms, Now, State) ->
    evaluate({local, From, Names}, Names, Ms, Now, State).

evaluate(Asker, Names, Ms, Now, #state{book = Book, evaluation = E} = State) ->
    evaluation(atoll_attr_evaluation:ask(Asker, lists:usort(Names), Ms, Book, E), Now, State).

evaluation({Done, Effects, E}, Now, State) ->
    lists:foldl(fun(One, S) -> evaluated(One, Now, S) end, effects(Effects, State#state{evaluation = E}), Done).

evaluated({automatic, Source, Value}, _Now, #state{book = Book} = State) ->
    Names = [Name || {Name, Same} <- atoll_attr_book:automatics(Book), Same =:= Source],
    State#state{book = lists:foldl(fun(Name, B) -> atoll_attr_book:evaluated(Name, {Source, Value}, B) end, Book, Names)};
evaluated({{local, From, Names}, Values}, _Now, State) ->
    reply(From, {ok, maps:merge(maps:from_keys(Names, undefined), Values)}, State);
evaluated({{asked, Id}, Values}, Now, #state{self = Self} = State) ->
    values(Id, Self, Values, Now, State);
evaluated({{remote, Node, Id}, Values}, _Now, State) ->
    send(Node, {values, Id, Values}, count(answered, State));
evaluated({{claimed, Node, Id, Place}, Values}, Now, #state{self = Node} = State) ->
    placed(Id, Node, Place, Values, Now, State);
evaluated({{claimed, Node, Id, Place}, Values}, _Now, State) ->
    send(Node, {place, Id, Place, Values}, State);
evaluated({refresh, Values}, Now, #state{gossip = Gossip} = State) ->
    gather(State#state{gossip = atoll_attr_gossip:own(Values, Now, Gossip)}).

%% Messages, as they were read

message({ask, Id, Names, Ms}, From, Now, State) ->
    evaluate({remote, From, Id}, Names, most_of(Ms), Now, count(asked, State));
message({values, Id, Values}, From, Now, State) ->
    values(Id, From, Values, Now, State);
message({claim, Id, Names, Ms}, From, Now, State) ->
    claimed(Id, From, Names, Ms, Now, State);
message({place, Id, Place, Values}, From, Now, State) ->
    placed(Id, From, Place, Values, Now, State);
message({look, Id}, From, Now, #state{claims = Claims} = State) ->
    {Place, Length} = atoll_claims:place({From, Id}, Now, Claims),
    send(From, {line, Id, Place, Length}, State);
message({line, Id, Place, Length}, From, Now, State) ->
    lined(Id, From, {Place, Length}, Now, State);
message({leave, Id}, From, _Now, #state{claims = Claims} = State) ->
    State#state{claims = atoll_claims:leave({From, Id}, Claims)};
message({gossip, _, _} = Message, From, Now, #state{gossip = Gossip} = State) ->
    refresh_soon(gather(State#state{gossip = atoll_attr_gossip:heard({From, Message}, Now, Gossip)})).

%% The answer takes its way back.
most_of(Ms) -> max(1, Ms - min(50, Ms div 4)).

%% Questions

ask(#{nodes := Nodes0, names := Names, predicate := Predicate, ms := Ms, max_age := MaxAge}, From, Now, State0) ->
    #state{self = Self, next = Id, gossip = Gossip0} = State0,
    Nodes = lists:usort(Nodes0),
    {Known, Others} =
        case MaxAge of
            0 -> {[], Nodes};
            _ -> atoll_attr_gossip:rows(lists:delete(Self, Nodes), Names, {Now, MaxAge}, Gossip0)
        end,
    %% This node knows itself best.
    Asked =
        case MaxAge > 0 andalso lists:member(Self, Nodes) of
            true -> [Self | Others];
            false -> Others
        end,
    State =
        case MaxAge of
            0 -> State0;
            _ -> refresh_soon(gather(State0#state{gossip = atoll_attr_gossip:asked(Names, Now, Gossip0)}))
        end,
    Question = #question{
        from = From,
        predicate = Predicate,
        names = Names,
        keeps = MaxAge > 0,
        answers = [Answer || {_, Values, _} = Answer <- Known, atoll_predicate:holds(Predicate, Values)],
        pending = maps:from_keys(Asked, [])
    },
    Entered = enter(Id, Question, State#state{next = Id + 1}),
    case Asked of
        [] ->
            answer(Id, Question, Entered);
        _ ->
            Timed = effect({timer, {asked, Id}, Ms}, Entered),
            Reached = lists:foldl(
                fun(Node, S) -> reach(Node, {asked, Id}, {{ask, Id, Names}, Now + Ms}, Now, S) end, Timed, lists:delete(Self, Asked)
            ),
            case lists:member(Self, Asked) of
                true -> evaluate({asked, Id}, Names, most_of(Ms), Now, Reached);
                false -> Reached
            end
    end.

enter(Id, Question, #state{questions = Questions} = State) ->
    State#state{questions = Questions#{Id => Question}}.

values(Id, Node, Given, Now, #state{questions = Questions, options = #{max_value := Max}} = State0) ->
    case Questions of
        #{Id := #question{pending = #{Node := _} = Pending} = Question0} ->
            #question{answers = Answers, predicate = Predicate, names = Names, keeps = Keeps, late = Late} = Question0,
            Values = atoll_attr_message:values(Names, Given, Max),
            State1 = release(Node, {asked, Id}, State0),
            Said = maps:with(maps:keys(Given), Values),
            State =
                case Keeps of
                    true -> refresh_soon(State1#state{gossip = atoll_attr_gossip:enters(Node, Said, Now, State1#state.gossip)});
                    false -> State1
                end,
            Question1 = Question0#question{pending = maps:remove(Node, Pending)},
            Question =
                case atoll_predicate:holds(Predicate, Values) of
                    true -> Question1#question{answers = [{Node, Values, 0} | Answers]};
                    false when map_size(Said) =:= map_size(Values) -> Question1;
                    false -> Question1#question{late = [Node | Late]}
                end,
            answered(Id, Question, State);
        #{} ->
            %% It is late.
            State0
    end.

answered(Id, #question{pending = Pending} = Question, State) when map_size(Pending) =:= 0 ->
    answer(Id, Question, effect({cancel, {asked, Id}}, State));
answered(Id, Question, State) ->
    enter(Id, Question, State).

answer(Id, #question{from = From, answers = Answers, pending = Pending, late = Late, unreachable = Unreachable}, State) ->
    Silent = lists:sort(maps:keys(Pending)),
    #state{questions = Questions} = Released = lists:foldl(fun(N, S) -> release(N, {asked, Id}, S) end, State, Silent),
    Answer = #{answers => lists:sort(Answers), silent => lists:merge(lists:sort(Late), Silent), unreachable => lists:sort(Unreachable)},
    reply(From, {ok, Answer}, Released#state{questions = maps:remove(Id, Questions)}).

unreachable({asked, Id} = Key, Node, _Now, #state{questions = Questions} = State) ->
    #{Id := #question{pending = Pending, unreachable = Others} = Question} = Questions,
    answered(
        Id, Question#question{pending = maps:remove(Node, Pending), unreachable = [Node | Others]}, release(Node, Key, State)
    );
unreachable({chosen, Id}, Node, Now, State) ->
    no_answer(Id, Node, Now, State).

%% Choices

choose(#{tiers := Tiers, predicate := Predicate, names := Names, ms := Ms} = Wanted, From, Now, State) ->
    #state{next = Id, choices = Choices, options = Options} = State,
    Choice = #choice{
        from = From,
        predicate = Predicate,
        names = Names,
        choosing = atoll_choosing:new([lists:usort(Tier) || Tier <- Tiers], maps:with([looks, rounds], Options)),
        step_ms = max(1, Ms div 2),
        %% Who is silent may just be slow, and there is nobody better.
        unclaimed = case Wanted of #{fresh := true} -> hd(Tiers ++ [[]]); #{} -> [] end
    },
    Entered = effect({timer, {chosen, Id}, Ms}, State#state{next = Id + 1, choices = Choices#{Id => Choice}}),
    steps(Id, fun atoll_choosing:start/2, Now, Entered).

%% One step of a choice, and what follows from it.
steps(Id, Step, Now, #state{choices = Choices, sent = Sent0, rand = Rand0} = State) ->
    #{Id := #choice{choosing = Choosing0} = Choice} = Choices,
    Sent = atoll_attr_sent:ended(Now, Sent0),
    {Choosing, Deeds, Rand} = Step(Choosing0, {atoll_attr_sent:counts(Sent), Rand0}),
    Stepped = State#state{choices = Choices#{Id := Choice#choice{choosing = Choosing}}, sent = Sent, rand = Rand},
    lists:foldl(fun(Deed, S) -> deed(Deed, Id, Now, S) end, Stepped, Deeds).

deed({claim, Node}, Id, Now, #state{choices = Choices, sent = Sent} = State0) ->
    #{Id := #choice{names = Names, step_ms = Ms}} = Choices,
    State = awaits(Node, claim, Id, State0#state{sent = atoll_attr_sent:add(Node, Id, Now, Sent)}),
    case State of
        #state{self = Node} -> claimed(Id, Node, Names, Ms, Now, State);
        _ -> reach(Node, {chosen, Id}, {{claim, Id, Names}, Now + Ms}, Now, State)
    end;
deed({look, Node}, Id, Now, #state{self = Node, claims = Claims} = State) ->
    lined(Id, Node, atoll_claims:place({Node, Id}, Now, Claims), Now, awaits(Node, look, Id, State));
deed({look, Node}, Id, Now, State) ->
    reach(Node, {chosen, Id}, {{look, Id}, none}, Now, awaits(Node, look, Id, State));
deed({leave, Node}, Id, _Now, #state{self = Self, claims = Claims, sent = Sent} = State0) ->
    State = State0#state{sent = atoll_attr_sent:remove(Node, Id, Sent)},
    case Node of
        Self -> State#state{claims = atoll_claims:leave({Self, Id}, Claims)};
        _ -> send(Node, {leave, Id}, State)
    end;
deed({done, Node, Place}, Id, _Now, #state{choices = Choices} = State) ->
    #{Id := Choice} = Choices,
    chosen(Id, Choice, {Node, Place}, effect({cancel, {chosen, Id}}, State));
deed(none, Id, _Now, #state{choices = Choices} = State) ->
    #{Id := Choice} = Choices,
    chosen(Id, Choice, none, effect({cancel, {chosen, Id}}, State)).

awaits(Node, What, Id, #state{choices = Choices} = State) ->
    #{Id := #choice{pending = Pending, step_ms = Ms} = Choice} = Choices,
    effect({timer, {step, Id}, Ms}, State#state{choices = Choices#{Id := Choice#choice{pending = Pending#{Node => What}}}}).

claimed(Id, From, Names, Ms, Now, #state{claims = Claims0} = State) ->
    {Place, Claims} = atoll_claims:take({From, Id}, Now, Claims0),
    evaluate({claimed, From, Id, Place}, Names, most_of(Ms), Now, State#state{claims = Claims}).

placed(Id, Node, Place, Given, Now, #state{choices = Choices, sent = Sent, options = #{max_value := Max}} = State) ->
    case Choices of
        #{Id := #choice{pending = #{Node := claim}, predicate = Predicate, names = Names, values = Known} = Choice} ->
            Values = atoll_attr_message:values(Names, Given, Max),
            Fits = Names =:= [] orelse atoll_predicate:holds(Predicate, Values),
            Entered = State#state{choices = Choices#{Id := Choice#choice{values = Known#{Node => Values}}}},
            step_on(Id, Node, {place, Place, Fits}, Now, Entered);
        #{Id := _} ->
            %% It has answered already, over a connection that was lost, or was told to forget it.
            State;
        #{} ->
            case atoll_attr_sent:is_sent(Node, Id, Sent) of
                %% That is where the choice fell, and this its second answer.
                true -> State;
                %% Too late for the one who claimed; it does not stand there.
                false -> send(Node, {leave, Id}, State)
            end
    end.

lined(Id, Node, {Place, Length}, Now, #state{choices = Choices} = State) ->
    case Choices of
        #{Id := #choice{pending = #{Node := look}}} -> step_on(Id, Node, {line, Place, Length}, Now, State);
        #{} -> State
    end.

step_on(Id, Node, Answer, Now, State) ->
    steps(Id, fun(C, Drawer) -> atoll_choosing:answer(Node, Answer, C, Drawer) end, Now, heard_of(Id, Node, State)).

no_answer(Id, Node, Now, #state{choices = Choices} = State) ->
    case Choices of
        #{Id := #choice{pending = #{Node := _}}} ->
            steps(Id, fun(C, Drawer) -> atoll_choosing:gone(Node, C, Drawer) end, Now, heard_of(Id, Node, State));
        #{} ->
            State
    end.

heard_of(Id, Node, #state{choices = Choices} = State) ->
    #{Id := #choice{pending = Pending} = Choice} = Choices,
    Left = maps:remove(Node, Pending),
    Less = release(Node, {chosen, Id}, State#state{choices = Choices#{Id := Choice#choice{pending = Left}}}),
    case map_size(Left) of
        0 -> effect({cancel, {step, Id}}, Less);
        _ -> Less
    end.

chosen(Id, #choice{from = From, pending = Pending, values = Values, unclaimed = Unclaimed}, Where, #state{choices = Choices} = State) ->
    Released = lists:foldl(fun(N, S) -> forgo(N, Id, S) end, State, lists:sort(maps:keys(Pending))),
    Over = effect({cancel, {step, Id}}, Released#state{choices = maps:remove(Id, Choices)}),
    case Where of
        {Node, Place} -> reply(From, {ok, Node, Place, maps:get(Node, Values, #{})}, Over);
        none when Unclaimed =:= [] -> reply(From, none, Over);
        none -> unclaimed(From, Unclaimed, Over)
    end.

unclaimed(From, Nodes, #state{rand = Rand0} = State) ->
    {Node, Rand} = atoll_random:pick(Nodes, Rand0),
    reply(From, {ok, Node, none, #{}}, State#state{rand = Rand}).

%% An answer is waited for no more; whose claim has none yet is not where the choice fell.
forgo(Node, Id, #state{choices = Choices, sent = Sent} = State) ->
    Released = release(Node, {chosen, Id}, State),
    case Choices of
        #{Id := #choice{pending = #{Node := claim}}} -> Released#state{sent = atoll_attr_sent:remove(Node, Id, Sent)};
        #{} -> Released
    end.

%% Gossip

%% Each starts its timer where it is not running already.
gather(#state{gathering = false, gossip = Gossip, options = #{gather_ms := Ms}} = State) ->
    case atoll_attr_gossip:is_quiet(Gossip) of
        true -> State;
        false -> effect({timer, gather, Ms}, State#state{gathering = true})
    end;
gather(State) ->
    State.

tell(Now, #state{gossip = Gossip0, contact = Contact, rand = Rand0} = State0) ->
    {Messages, Rand, Gossip} = atoll_attr_gossip:tell({atoll_attr_contact:connected(Contact), Rand0}, Now, Gossip0),
    State = State0#state{gossip = Gossip, rand = Rand},
    gather(lists:foldl(fun({Peer, Message}, S) -> send(Peer, Message, S) end, State, Messages)).

%% The first evaluation of an interest is at some moment, so that not all are at the same.
refresh_soon(#state{refreshing = false, gossip = Gossip, rand = Rand0, options = #{gather_ms := Ms}} = State) ->
    case atoll_attr_gossip:counts(Gossip) of
        #{interests := 0, rows := 0} ->
            State;
        #{} ->
            {Wait, Rand} = rand:uniform_s(Ms, Rand0),
            effect({timer, refresh, Wait}, State#state{refreshing = true, rand = Rand})
    end;
refresh_soon(State) ->
    State.

%% Evaluates what there is interest in, and forgets what is old.

refresh(Now, #state{gossip = Gossip0, options = #{refresh_ms := Ms, evaluate_ms := EvaluateMs}} = State) ->
    case atoll_attr_gossip:interests(Now, Gossip0) of
        {[], Gossip} ->
            case atoll_attr_gossip:counts(Gossip) of
                #{rows := 0} -> State#state{gossip = Gossip};
                #{} -> effect({timer, refresh, Ms}, State#state{gossip = Gossip, refreshing = true})
            end;
        {Names, Gossip} ->
            Again = effect({timer, refresh, Ms}, State#state{gossip = Gossip, refreshing = true}),
            evaluate(refresh, Names, EvaluateMs, Now, Again)
    end.

%% Effects

done(#state{effects = Effects} = State) ->
    {State#state{effects = []}, lists:reverse(Effects)}.

effect(Effect, #state{effects = Effects} = State) ->
    State#state{effects = [Effect | Effects]}.

effects(More, #state{effects = Effects} = State) ->
    State#state{effects = lists:reverse(More, Effects)}.

reply(From, Answer, State) ->
    effect({reply, From, Answer}, State).

send(Node, Message, State) ->
    effect({send, Node, {?VERSION, Message}}, State).

reach(Node, Key, Letter, Now, #state{contact = Contact} = State) ->
    contacted(atoll_attr_contact:reach(Node, Key, Letter, Now, Contact), State).

release(Node, Key, #state{contact = Contact} = State) ->
    contacted(atoll_attr_contact:release(Node, Key, Contact), State).

contacted({Effects, Contact}, State) ->
    effects([versioned(Effect) || Effect <- Effects], State#state{contact = Contact}).

versioned({send, Node, Message}) -> {send, Node, {?VERSION, Message}};
versioned(Effect) -> Effect.

count(What, #state{counts = Counts} = State) ->
    #{What := N} = Counts,
    State#state{counts = Counts#{What := N + 1}}.
