%% SPDX-License-Identifier: Apache-2.0
%% @doc Attributes of nodes, and choosing nodes by them.
%%
%% == Attributes ==
%% A node has those that come with it (`atoll_attr_builtin'), those of its
%% configuration, and those that programs add. A definition is `{Name, Value}' for a static
%% one, `{Name, {dynamic, {M, F}}}' or `{Name, {dynamic, {M, F, Args}}}' for one that is
%% evaluated at each question, and the same with `automatic' for one that is evaluated once.
%% What a function does not give in its time, or at all, is `undefined'; a node that is chosen from
%% is `silent' where it hangs on what was not given in time.
%%
%% == Choosing ==
%% Nodes are chosen from a list of nodes, from an s_group of this node (`{s_group, Name}'),
%% or from the `members': those of the overlay, or where there is none this node and all that
%% it is connected with, but for hidden ones. What they must be like is a predicate
%% ({@link atoll_predicate}), a term or a text. The options:
%% <dl>
%% <dt>`deadline'</dt><dd>In how many milliseconds there is an answer, however many nodes are
%%   silent: 500 unless it is said.</dd>
%% <dt>`max_age'</dt><dd>How many milliseconds old values may be. 0, the default, has every
%%   node asked, each time; with more, what is known is used, and attributes that are asked
%%   for often are told around (`atoll_attr_gossip').</dd>
%% <dt>`rank'</dt><dd>Which of the fitting nodes are better, see `atoll_attr_rank'.</dd>
%% <dt>`within'</dt><dd>The farthest that a node may be by its rank; at `most', the least that
%%   it must have.</dd>
%% <dt>`slack'</dt><dd>By which share of the best one's rank nodes may differ and are still
%%   equally good: 0.1 unless it is said.</dd>
%% <dt>`claim'</dt><dd>Whether `choose_node' stands in line at the node that it chooses. That
%%   is what spreads those who choose at the same moment (`atoll_choosing'); the
%%   default is true.</dd>
%% </dl>
%%
%% `atoll_attr_core' decides; this module is its process, and works out for the caller
%% what the caller's functions are needed for. Values are copied to whoever asks. What programs
%% have added outlives the process, but for updates of what is configured.
-module(atoll_attr).

-behaviour(atoll_interpreter).

-export([create_table/0, start_link/1, check/1, format_error/1]).
-export([insert/2, insert/3, update/2, delete/1, load/1, attributes/0, attributes/1, info/0]).
-export([request_attrs/2, request_attrs/3]).
-export([choose_nodes/1, choose_nodes/2, choose_nodes/3, choose_node/1, choose_node/2, choose_node/3]).
-export([open/1, act/2, event/2]).

-export_type([config/0, where/0, options/0, answer/0, choice/0, error/0]).

%% A helper ends with exit/1 by design.
-dialyzer({nowarn_function, [act/2, evaluate/2]}).

-type config() :: #{
    options := atoll_attr_core:options(),
    %% Of an attribute that is there twice the later one counts.
    definitions := [atoll_attr_book:definition()],
    builtins := boolean()
}.

-type where() :: members | {s_group, atom()} | [node()].

-type options() :: #{
    deadline => pos_integer(),
    max_age => non_neg_integer(),
    rank => atoll_attr_rank:rank(),
    within => number(),
    slack => number(),
    claim => boolean()
}.

-type answer() :: #{
    %% Each node's, with `undefined' for what it has not.
    values := #{node() => atoll_predicate:values()},
    %% How old the oldest of them is.
    age_ms := non_neg_integer(),
    %% Who did not answer in time, and who could not be connected.
    silent := [node()],
    unreachable := [node()]
}.

-type choice() :: #{
    %% The best first.
    nodes := [node()],
    values := #{node() => atoll_predicate:values()},
    age_ms := non_neg_integer(),
    silent := [node()],
    unreachable := [node()],
    %% Where one stands in line at the node that was chosen, if it has said so in time.
    place => pos_integer()
}.

-type error() ::
    not_running
    %% Its process was lost, and another is being started.
    | restarting
    | overloaded
    | {no_such_group, term()}
    | {not_a_place, term()}
    | {not_names, term()}
    | {not_an_owner, term()}
    | {bad_option, Key :: term(), Value :: term()}
    | {value_too_large, Bytes :: pos_integer(), Max :: pos_integer()}
    | {too_many_attributes, Max :: pos_integer()}
    | {predicate, atoll_predicate:error()}
    | {book, atoll_attr_book:error()}.

-record(world, {
    %% Bytes of a value.
    max_value :: pos_integer(),
    %% Owner => the monitor on it.
    owners = #{} :: #{pid() => reference()},
    %% What is being evaluated, by its monitor and the other way round.
    running = #{} :: #{reference() => atoll_attr_evaluation:key()},
    helpers = #{} :: #{atoll_attr_evaluation:key() => {pid(), reference()}}
}).

-define(DEADLINE_MS, 500).
%% The part of the time in which all are asked when one is then to be chosen.
-define(ASK_SHARE, 0.6).
%% How many of the best are worth to be looked at.
-define(MAX_CANDIDATES, 1000).
-define(MAX_MS, 16#7FFFFFFF).

%% @doc Makes the table that keeps what programs have added while the process is lost; the
%% caller owns it.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

%% @doc Starts the process of this node's attributes.
-spec start_link(config()) -> gen_server:start_ret().
start_link(#{options := Options} = Config) ->
    atoll_interpreter:start_link(#{
        name => ?MODULE,
        protocol => atoll_attr_core,
        process => ?MODULE,
        config => #{
            self => node(),
            incarnation => erlang:system_time(microsecond),
            seed => rand:uniform(1 bsl 32),
            options => Options,
            definitions => configured(Config),
            added => ets:tab2list(?MODULE)
        }
    }).

configured(#{builtins := true, definitions := Definitions}) -> atoll_attr_builtin:definitions() ++ Definitions;
configured(#{builtins := false, definitions := Definitions}) -> Definitions.

%% @doc Whether all that is configured is within the bounds of its options.
-spec check(config()) -> ok | {error, atoll_attr_book:error()}.
check(#{options := Options} = Config) ->
    atoll_attr_book:within(atoll_attr_book:new(configured(Config)), atoll_attr_core:bounds(Options)).

%% @doc Adds an attribute, or a definition of one, that belongs to the calling process: it
%% is gone when the process ends.
-spec insert(atoll_predicate:name(), term()) -> ok | {error, error()}.
insert(Name, Value) ->
    insert(Name, Value, self()).

%% @doc Adds an attribute that belongs to a process of this node, or is permanent.
-spec insert(atoll_predicate:name(), term(), pid() | permanent) -> ok | {error, error()}.
insert(Name, Value, permanent) ->
    book({insert, Name, Value, permanent}, Name, Value);
insert(Name, Value, Owner) when is_pid(Owner), node(Owner) =:= node() ->
    book({insert, Name, Value, {process, Owner}}, Name, Value);
insert(_Name, _Value, Other) ->
    {error, {not_an_owner, Other}}.

%% @doc Gives an attribute of this node another value, or another definition, whoever owns
%% it; it is owned as before.
-spec update(atoll_predicate:name(), term()) -> ok | {error, error()}.
update(Name, Value) ->
    book({update, Name, Value}, Name, Value).

%% @doc Takes an attribute of this node away, whoever owns it.
-spec delete(atoll_predicate:name()) -> ok | {error, error()}.
delete(Name) ->
    book({delete, Name}, Name, none).

book(Request, Name, Value) ->
    case atoll_attr_book:check([{Name, Value}]) of
        ok -> call(Request);
        {error, Error} -> {error, {book, Error}}
    end.

%% @doc Puts definitions in place of all that are configured, those that come with the node
%% among them. What programs have added stays. It is all or nothing: one value that is too
%% large, or too many attributes, and everything is as it was.
-spec load([atoll_attr_book:definition()]) -> ok | {error, error()}.
load(Definitions) ->
    case atoll_attr_book:check(Definitions) of
        ok -> call({load, Definitions});
        {error, Error} -> {error, {book, Error}}
    end.

%% @doc All attributes of this node, the dynamic ones evaluated now.
-spec attributes() -> {ok, atoll_predicate:values()} | {error, error()}.
attributes() ->
    call({values, all, ?DEADLINE_MS}).

%% @doc These attributes of this node.
-spec attributes([atoll_predicate:name()]) -> {ok, atoll_predicate:values()} | {error, error()}.
attributes(Names) ->
    case is_names(Names) of
        true -> call({values, Names, ?DEADLINE_MS});
        false -> {error, {not_names, Names}}
    end.

%% @doc For people: the attributes with their definitions and owners, what is under way,
%% and what was counted.
-spec info() -> #{atom() => term()} | {error, error()}.
info() ->
    call(summary).

%% @doc Asks nodes for attributes.
-spec request_attrs(where(), [atoll_predicate:name()] | atoll_predicate:name()) -> {ok, answer()} | {error, error()}.
request_attrs(Where, Names) ->
    request_attrs(Where, Names, #{}).

%% @doc As request_attrs/2, with `deadline' and `max_age' of the options.
-spec request_attrs(where(), [atoll_predicate:name()] | atoll_predicate:name(), options()) ->
    {ok, answer()} | {error, error()}.
request_attrs(Where, Name, Given) when is_atom(Name), Name =/= [] ->
    request_attrs(Where, [Name], Given);
request_attrs(Where, Names, Given) ->
    case {is_names(Names), nodes_of(Where), options(Given)} of
        {false, _, _} ->
            {error, {not_names, Names}};
        {true, {ok, Nodes}, {ok, #{deadline := Ms} = Options}} ->
            case ask(Nodes, Names, atoll_predicate:any(), in_time(Ms), Options) of
                {ok, Asked} -> {ok, answer(Asked)};
                {error, _} = Error -> Error
            end;
        {true, {error, _} = Error, _} ->
            Error;
        {true, _, {error, _} = Error} ->
            Error
    end.

%% @doc The members that fit.
-spec choose_nodes(atoll_predicate:source()) -> {ok, choice()} | {error, error()}.
choose_nodes(Predicate) ->
    choose_nodes(members, Predicate, #{}).

%% @doc The nodes among these that fit.
-spec choose_nodes(where(), atoll_predicate:source()) -> {ok, choice()} | {error, error()}.
choose_nodes(Where, Predicate) ->
    choose_nodes(Where, Predicate, #{}).

%% @doc The nodes among these that fit, in the order that the options say. All that have
%% answered by the deadline and fit are in it.
-spec choose_nodes(where(), atoll_predicate:source(), options()) -> {ok, choice()} | {error, error()}.
choose_nodes(Where, Source, Given) ->
    case prepared(Where, Source, Given) of
        {ok, Predicate, Nodes, #{deadline := Ms} = Options} ->
            case fitting(Predicate, Nodes, in_time(Ms), Options) of
                {ok, _Tiers, Choice} -> {ok, Choice};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc One of the members that fit, see choose_node/3.
-spec choose_node(atoll_predicate:source()) -> {ok, node(), choice()} | {none, choice()} | {error, error()}.
choose_node(Predicate) ->
    choose_node(members, Predicate, #{}).

%% @doc One of these nodes that fit, see choose_node/3.
-spec choose_node(where(), atoll_predicate:source()) -> {ok, node(), choice()} | {none, choice()} | {error, error()}.
choose_node(Where, Predicate) ->
    choose_node(Where, Predicate, #{}).

%% @doc One of the best of these nodes that fit. Those who choose at the same moment are
%% spread over the equally good ones. The choice has all the fitting nodes too.
-spec choose_node(where(), atoll_predicate:source(), options()) ->
    {ok, node(), choice()} | {none, choice()} | {error, error()}.
choose_node(Where, Source, Given) ->
    Start = erlang:monotonic_time(millisecond),
    case prepared(Where, Source, Given) of
        {ok, Predicate, Nodes, #{deadline := Ms} = Options} ->
            case fitting(Predicate, Nodes, max(1, round(?ASK_SHARE * Ms)), Options) of
                {ok, [], Choice} -> {none, Choice};
                {ok, Tiers, Choice} -> one(Tiers, Choice, Predicate, Start + in_time(Ms), Options);
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

one([Best | _], Choice, _Predicate, _Deadline, #{claim := false}) ->
    {ok, lists:nth(rand:uniform(length(Best)), Best), Choice};
one(Tiers, Choice, Predicate, Deadline, #{max_age := MaxAge}) ->
    %% What was told a moment ago is 0 ms old, and may have changed: its age says nothing.
    IsFresh = MaxAge =:= 0,
    Names =
        case IsFresh of
            true -> [];
            false -> atoll_predicate:names(Predicate)
        end,
    Ms = max(1, Deadline - erlang:monotonic_time(millisecond)),
    Request = #{tiers => few(Tiers, ?MAX_CANDIDATES), predicate => Predicate, names => Names, fresh => IsFresh, ms => Ms},
    case call({choose, Request}) of
        {ok, Node, none, _} ->
            {ok, Node, Choice};
        {ok, Node, Place, Values} ->
            #{values := Known} = Choice,
            Newer = maps:merge(maps:get(Node, Known), Values),
            {ok, Node, Choice#{place => Place, values := Known#{Node := Newer}}};
        none ->
            {none, Choice};
        {error, _} = Error ->
            Error
    end.

few([Tier | Tiers], Room) when length(Tier) =< Room -> [Tier | few(Tiers, Room - length(Tier))];
few([Tier | _], Room) when Room > 0 -> [lists:sublist(Tier, Room)];
few(_, _) -> [].

prepared(Where, Source, Given) ->
    case {atoll_predicate:new(Source), nodes_of(Where), options(Given)} of
        {{ok, Predicate}, {ok, Nodes}, {ok, Options}} -> {ok, Predicate, Nodes, Options};
        {{error, Error}, _, _} -> {error, {predicate, Error}};
        {_, {error, _} = Error, _} -> Error;
        {_, _, {error, _} = Error} -> Error
    end.

%% The fitting nodes in tiers, and what is known of them.
fitting(Predicate, Nodes, Ms, #{rank := Rank, slack := Slack, within := Within} = Options) ->
    Names = lists:usort(atoll_attr_rank:name(Rank) ++ atoll_predicate:names(Predicate)),
    case ask(Nodes, Names, Predicate, Ms, Options) of
        {ok, Asked} ->
            #{values := Values} = Answer = answer(Asked),
            Tiers = atoll_attr_rank:tiers(maps:to_list(Values), Rank, Slack, Within),
            Best = lists:append(Tiers),
            {ok, Tiers, Answer#{values := maps:with(Best, Values), nodes => Best}};
        {error, _} = Error ->
            Error
    end.

ask(Nodes, Names, Predicate, Ms, #{max_age := MaxAge}) ->
    call({ask, #{nodes => Nodes, names => Names, predicate => Predicate, ms => Ms, max_age => MaxAge}}).

answer(#{answers := Answers, silent := Silent, unreachable := Unreachable}) ->
    #{
        values => maps:from_list([{Node, Values} || {Node, Values, _} <- Answers]),
        age_ms => lists:max([0 | [Age || {_, _, Age} <- Answers]]),
        silent => Silent,
        unreachable => Unreachable
    }.

%% The answer takes its own way back.
in_time(Ms) ->
    max(1, Ms - min(20, Ms div 10)).

nodes_of(members) ->
    case atoll_overlay:members() of
        [] -> {ok, [node() | nodes()]};
        Members -> {ok, Members}
    end;
nodes_of({s_group, Name}) ->
    case is_atom(Name) andalso atoll_group:own(Name) of
        {ok, {_, _, Nodes}} -> {ok, Nodes};
        _ -> {error, {no_such_group, Name}}
    end;
nodes_of(Nodes) when is_list(Nodes), length(Nodes) >= 0 ->
    case [Bad || Bad <- Nodes, not is_atom(Bad)] of
        [] -> {ok, Nodes};
        [Bad | _] -> {error, {not_a_place, Bad}}
    end;
nodes_of(Other) ->
    {error, {not_a_place, Other}}.

%% The guard fails for a list that is none to the end.
is_names(Names) when length(Names) >= 0 -> lists:all(fun is_atom/1, Names);
is_names(_) -> false.

options(Given) when is_map(Given) ->
    Defaults = #{
        deadline => ?DEADLINE_MS, max_age => 0, rank => none, within => infinity, slack => 0.1, claim => true
    },
    case [{Key, Value} || {Key, Value} <- lists:sort(maps:to_list(Given)), not is_option(Key, Value)] of
        [] -> {ok, maps:merge(Defaults, Given)};
        [{Key, Value} | _] -> {error, {bad_option, Key, Value}}
    end;
options(Other) ->
    {error, {bad_option, Other, none}}.

is_option(deadline, Ms) -> is_integer(Ms) andalso Ms > 0 andalso Ms =< ?MAX_MS;
is_option(max_age, Ms) -> is_integer(Ms) andalso Ms >= 0;
is_option(rank, Rank) -> atoll_attr_rank:is_rank(Rank);
is_option(within, Limit) -> is_number(Limit);
is_option(slack, Slack) -> is_number(Slack) andalso Slack >= 0;
is_option(claim, Claim) -> is_boolean(Claim);
is_option(_, _) -> false.

call(Request) ->
    case atoll_interpreter:ask(?MODULE, Request) of
        {ok, Answer} -> Answer;
        {error, _} = Error -> Error
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(not_running) ->
    "atoll does not run on this node";
format_error(restarting) ->
    "what keeps the attributes was lost on this node and is being started again";
format_error(overloaded) ->
    "too many choices are under way on this node";
format_error({no_such_group, Name}) ->
    io_lib:format("this node is in no s_group ~tp", [Name]);
format_error({not_a_place, Term}) ->
    io_lib:format("~0tP is neither members, nor {s_group, Name}, nor a list of nodes", [Term, 12]);
format_error({not_names, Term}) ->
    io_lib:format("~0tP is no list of names of attributes", [Term, 12]);
format_error({not_an_owner, Term}) ->
    io_lib:format("an attribute belongs to a process of its node or is permanent, and ~0tP is neither", [Term, 12]);
format_error({bad_option, Key, Value}) ->
    io_lib:format("a choice has no option ~0tP that is ~0tP", [Key, 8, Value, 12]);
format_error({value_too_large, Bytes, Max}) ->
    io_lib:format("the value has ~b bytes, and ~b are the most", [Bytes, Max]);
format_error({too_many_attributes, Max}) ->
    io_lib:format("this node has ~b attributes already", [Max]);
format_error({predicate, Error}) ->
    atoll_predicate:format_error(Error);
format_error({book, Error}) ->
    atoll_attr_book:format_error(Error).

%% @private
-spec open(atoll_attr_core:config()) -> #world{}.
open(#{options := Options}) ->
    ok = atoll_link:watch(),
    #{max_value := Max} = atoll_attr_core:bounds(Options),
    #world{max_value = Max}.

%% @private
-spec act(atoll_protocol:effect(), #world{}) -> #world{}.
act({want, Node}, World) ->
    ok = atoll_link:want(Node),
    World;
act({unwant, Node}, World) ->
    ok = atoll_link:unwant(Node),
    World;
act({act, {evaluate, Key, Source}}, #world{running = Running, helpers = Helpers, max_value = Max} = World) ->
    {Pid, Ref} = spawn_monitor(fun() -> evaluate(Source, Max) end),
    World#world{running = Running#{Ref => Key}, helpers = Helpers#{Key => {Pid, Ref}}};
act({act, {abandon, Key}}, #world{running = Running, helpers = Helpers} = World) ->
    {{Pid, Ref}, Rest} = maps:take(Key, Helpers),
    true = exit(Pid, kill),
    true = erlang:demonitor(Ref, [flush]),
    World#world{running = maps:remove(Ref, Running), helpers = Rest};
act({act, {keep, Added}}, World) ->
    true = ets:delete_all_objects(?MODULE),
    true = ets:insert(?MODULE, Added),
    World;
act({act, {watch, Owner}}, #world{owners = Owners} = World) ->
    case Owners of
        #{Owner := _} -> World;
        #{} -> World#world{owners = Owners#{Owner => erlang:monitor(process, Owner)}}
    end.

%% A helper ends with what came out as its reason, so that a value and a crash come the same
%% way and none can be missed, and what it has in its mailbox goes with it. A value that is
%% too large stays where it is: it is copied with the reason.
evaluate({M, F, Args}, Max) ->
    exit(
        {?MODULE,
            try apply(M, F, Args) of
                Value -> measured(Value, erlang:external_size(Value), Max)
            catch
                _:_ -> failed
            end}
    ).

measured(_Value, Bytes, Max) when Bytes > Max -> too_large;
measured(Value, _Bytes, _Max) -> {ok, Value}.

%% @private
-spec event(term(), #world{}) -> {[atoll_hidden:outside()], #world{}}.
event({'DOWN', Ref, process, Pid, Reason}, #world{owners = Owners, running = Running, helpers = Helpers} = World) ->
    case maps:take(Ref, Running) of
        {Key, Rest} ->
            {[{cast, {evaluated, Key, outcome(Reason)}}], World#world{running = Rest, helpers = maps:remove(Key, Helpers)}};
        error ->
            #{Pid := Ref} = Owners,
            {[{cast, {gone, Pid}}], World#world{owners = maps:remove(Pid, Owners)}}
    end;
event(Message, World) ->
    {atoll_link:heard(Message), World}.

outcome({?MODULE, Outcome}) -> Outcome;
outcome(_Killed) -> failed.
