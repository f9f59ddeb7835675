%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The attributes of one node: their names, and what their values are or come from.
%% Pure; nothing is evaluated here.
%%
%% A static attribute has its value, a dynamic one a function that is evaluated at each
%% question, an automatic one a function that is evaluated once. Those of the configuration
%% stay; what a program adds belongs to a process, and goes with it, or is permanent.
-module(atoll_attr_book).

-export([new/1, load/2, insert/4, update/3, delete/2, evaluated/3, gone/2, restore/2]).
-export([look/2, names/1, owners/1, added/1, entries/1, automatics/1, check/1, within/2, format_error/1]).

-export_type([book/0, definition/0, entry/0, owner/0, source/0, bounds/0, error/0]).

-type definition() ::
    {atoll_predicate:name(), Value :: term()}
    | {atoll_predicate:name(), {dynamic | automatic, {module(), Function :: atom()}}}
    | {atoll_predicate:name(), {dynamic | automatic, {module(), Function :: atom(), Args :: [term()]}}}.

-type source() :: {module(), Function :: atom(), Args :: [term()]}.

-type entry() :: {static, term()} | {dynamic, source()} | {automatic, source()}.
%% An automatic one becomes static when it is evaluated.

-type owner() :: configured | permanent | {process, term()}.

-opaque book() :: #{atoll_predicate:name() => {entry(), owner()}}.

-type bounds() :: #{
    %% Bytes of a value, or of the function that gives it; and attributes of a node.
    max_value := pos_integer(),
    max_attributes := pos_integer(),
    atom() => term()
}.

-type error() ::
    not_a_list
    | {not_a_definition, term()}
    | {not_a_name, term(), Whole :: term()}
    | {not_a_function, Name :: atom(), term()}
    | {twice, Name :: atom()}
    | {attr_exists, Name :: atom()}
    | {attr_not_set, Name :: atom()}
    | {too_large, Name :: atom(), Bytes :: pos_integer(), Max :: pos_integer()}
    | {too_many, Count :: pos_integer(), Max :: pos_integer()}.

%% @doc A book with these definitions, of which later ones override earlier ones.
-spec new([definition()]) -> book().
new(Definitions) ->
    maps:from_list([{Name, {entry(Value), configured}} || {Name, Value} <- Definitions]).

%% @doc Puts these in place of all that was configured. What programs have added stays, but
%% where it is defined anew.
-spec load([definition()], book()) -> book().
load(Definitions, Book) ->
    maps:merge(maps:filter(fun(_, {_, Owner}) -> Owner =/= configured end, Book), new(Definitions)).

entry({Kind, {M, F}}) when (Kind =:= dynamic orelse Kind =:= automatic), is_atom(M), is_atom(F) -> {Kind, {M, F, []}};
entry({Kind, {M, F, Args}}) when
    (Kind =:= dynamic orelse Kind =:= automatic), is_atom(M), is_atom(F), length(Args) >= 0
->
    {Kind, {M, F, Args}};
entry(Value) ->
    {static, Value}.

%% @doc Adds an attribute that the node does not have yet.
-spec insert(atoll_predicate:name(), term(), owner(), book()) -> {ok, book()} | {error, error()}.
insert(Name, Value, Owner, Book) ->
    case Book of
        #{Name := _} -> {error, {attr_exists, Name}};
        #{} -> {ok, Book#{Name => {entry(Value), Owner}}}
    end.

%% @doc Gives an attribute another value. Whose it is stays.
-spec update(atoll_predicate:name(), term(), book()) -> {ok, book()} | {error, error()}.
update(Name, Value, Book) ->
    case Book of
        #{Name := {_, Owner}} -> {ok, Book#{Name := {entry(Value), Owner}}};
        #{} -> {error, {attr_not_set, Name}}
    end.

%% @doc Takes an attribute away, whoever owns it.
-spec delete(atoll_predicate:name(), book()) -> {ok, book()} | {error, error()}.
delete(Name, Book) ->
    case Book of
        #{Name := _} -> {ok, maps:remove(Name, Book)};
        #{} -> {error, {attr_not_set, Name}}
    end.

%% @doc The automatic attribute has this value from now on, if it is still the one that was
%% evaluated.
-spec evaluated(atoll_predicate:name(), {source(), Value :: term()}, book()) -> book().
evaluated(Name, {Source, Value}, Book) ->
    case Book of
        #{Name := {{automatic, Source}, Owner}} -> Book#{Name := {{static, Value}, Owner}};
        #{} -> Book
    end.

%% @doc Without the attributes of a process that is gone.
-spec gone(term(), book()) -> book().
gone(Process, Book) ->
    maps:filter(fun(_, {_, Owner}) -> Owner =/= {process, Process} end, Book).

%% @doc What programs have added, to be kept.
-spec added(book()) -> [{atoll_predicate:name(), entry(), owner()}].
added(Book) ->
    [Added || {_, _, Owner} = Added <- entries(Book), Owner =/= configured].

%% @doc With what was kept; what is configured has precedence.
-spec restore([{atoll_predicate:name(), entry(), owner()}], book()) -> book().
restore(Added, Book) ->
    maps:merge(maps:from_list([{Name, {Entry, Owner}} || {Name, Entry, Owner} <- Added]), Book).

%% @doc What is known of an attribute.
-spec look(atoll_predicate:name(), book()) -> entry() | none.
look(Name, Book) ->
    case Book of
        #{Name := {Entry, _}} -> Entry;
        #{} -> none
    end.

%% @doc All names, sorted.
-spec names(book()) -> [atoll_predicate:name()].
names(Book) ->
    lists:sort(maps:keys(Book)).

%% @doc All attributes with what they are and whose, sorted by name.
-spec entries(book()) -> [{atoll_predicate:name(), entry(), owner()}].
entries(Book) ->
    [{Name, Entry, Owner} || {Name, {Entry, Owner}} <- lists:sort(maps:to_list(Book))].

%% @doc The processes that own some.
-spec owners(book()) -> [term()].
owners(Book) ->
    lists:usort([Process || {_, {process, Process}} <- maps:values(Book)]).

%% @doc The automatic attributes that are yet to be evaluated.
-spec automatics(book()) -> [{atoll_predicate:name(), source()}].
automatics(Book) ->
    [{Name, Source} || {Name, {automatic, Source}, _} <- entries(Book)].

%% @doc Whether a term is a list of definitions, each of another attribute.
-spec check(term()) -> ok | {error, error()}.
check(Definitions) when length(Definitions) >= 0 ->
    check(Definitions, #{});
check(_) ->
    {error, not_a_list}.

check([], _Seen) ->
    ok;
check([{Name, {Kind, Function} = Value} | Rest], Seen) when is_atom(Name), Kind =:= dynamic orelse Kind =:= automatic ->
    case entry(Value) of
        {static, _} -> {error, {not_a_function, Name, Function}};
        _ -> check_new(Name, Rest, Seen)
    end;
check([{Name, _} | Rest], Seen) when is_atom(Name) ->
    check_new(Name, Rest, Seen);
check([{Name, _} = Definition | _], _Seen) ->
    {error, {not_a_name, Name, Definition}};
check([Other | _], _Seen) ->
    {error, {not_a_definition, Other}}.

check_new(Name, Rest, Seen) ->
    case Seen of
        #{Name := _} -> {error, {twice, Name}};
        #{} -> check(Rest, Seen#{Name => []})
    end.

%% @doc Whether a book is within these bounds.
-spec within(book(), bounds()) -> ok | {error, error()}.
within(Book, #{max_attributes := Max}) when map_size(Book) > Max ->
    {error, {too_many, map_size(Book), Max}};
within(Book, #{max_value := Max}) ->
    Sizes = [{Name, size_of(Entry)} || {Name, Entry, _} <- entries(Book)],
    case [{Name, Bytes} || {Name, Bytes} <- Sizes, Bytes > Max] of
        [] -> ok;
        [{Name, Bytes} | _] -> {error, {too_large, Name, Bytes, Max}}
    end.

size_of({static, Value}) -> erlang:external_size(Value);
size_of(Entry) -> erlang:external_size(Entry).

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(not_a_list) ->
    "attributes are defined in a list";
format_error({not_a_definition, Term}) ->
    io_lib:format("~0tP defines no attribute as {Name, Value} does", [Term, 12]);
format_error({not_a_name, Name, Definition}) ->
    io_lib:format("in ~0tP there is ~0tP where the name of an attribute, an atom, should be", [Definition, 12, Name, 8]);
format_error({not_a_function, Name, Term}) ->
    io_lib:format("the attribute ~tw comes from ~0tP, which is neither {Module, Function} nor {Module, Function, Args}", [
        Name, Term, 12
    ]);
format_error({twice, Name}) ->
    io_lib:format("the attribute ~tw is defined twice", [Name]);
format_error({attr_exists, Name}) ->
    io_lib:format("this node has an attribute ~tw already", [Name]);
format_error({attr_not_set, Name}) ->
    io_lib:format("this node has no attribute ~tw", [Name]);
format_error({too_large, Name, Bytes, Max}) ->
    io_lib:format("the attribute ~tw has ~b bytes, and ~b are the most", [Name, Bytes, Max]);
format_error({too_many, Count, Max}) ->
    io_lib:format("there are ~b attributes, and ~b are the most of a node", [Count, Max]).
