%% SPDX-License-Identifier: Apache-2.0
%% @doc A replica of named objects ({@link atoll_crdt}) on this node, and the process that keeps it equal with those of the
%% other members, over the overlay's neighbours. `atoll_crdt_replica_core' decides, and says what is promised; its process is
%% that of a handler.
%%
%% It belongs to a supervisor of the program, by {@link child_spec/1}. Its name is registered, and is the same on all nodes:
%% replicas of one name talk with each other. When it crashes its objects are gone here, and a neighbour brings them back; what it had
%% told nobody yet is lost. When the application `atoll' is stopped it ends, with `{shutdown, not_running}'.
%%
%% An object is there from its first change on. What type it has the first change says.
-module(atoll_crdt_replica).

-export([child_spec/1, start_link/1, start_link/2]).
-export([update/4, value/2, online/2, status/1, subscribe/1, unsubscribe/1, format_error/1]).

-export_type([options/0, error/0]).

-type options() :: atoll_options:options().
%% See `atoll_crdt_replica_core:options/0'; those not given have their defaults.

-type error() ::
    atoll:error()
    %% There is none of this name on this node.
    | {no_replica, atom()}
    | {crdt, atoll_crdt:error()}
    | {no_such_type, term()}
    | {other_type, atoll_crdt_replica_core:name(), Has :: atoll_crdt:type(), Asked :: term()}
    | {too_many_objects, Max :: pos_integer()}.

%% @doc For a supervisor of the program: the name, with options or without.
-spec child_spec(atom() | {atom(), options()}) -> supervisor:child_spec().
child_spec({Name, Options}) -> #{id => Name, start => {?MODULE, start_link, [Name, Options]}};
child_spec(Name) -> child_spec({Name, #{}}).

%% @doc Starts the replica of that name, with the default options.
-spec start_link(atom()) -> gen_server:start_ret() | {error, error()}.
start_link(Name) -> start_link(Name, #{}).

%% @doc Starts the replica of that name.
-spec start_link(atom(), options()) -> gen_server:start_ret() | {error, error()}.
start_link(Name, Given) when is_atom(Name), is_map(Given) ->
    atoll_handler_process:start_link({?MODULE, Name}, atoll_crdt_replica_core, Given, #{life => crypto:strong_rand_bytes(8)}).

%% @doc Changes an object here; the others get it soon. An error changes nothing.
-spec update(atom(), atoll_crdt_replica_core:name(), atoll_crdt:type(), atoll_crdt:operation()) -> ok | {error, error()}.
update(Replica, Name, Type, Operation) -> call(Replica, {update, Name, Type, Operation}).

%% @doc What an object is here and now, or that there is none yet.
-spec value(atom(), atoll_crdt_replica_core:name()) -> {ok, term()} | none | {error, error()}.
value(Replica, Name) -> call(Replica, {value, Name}).

%% @doc Goes off line, or on line again: off line it tells nobody anything, and hears nothing.
-spec online(atom(), boolean()) -> ok | {error, error()}.
online(Replica, IsOnline) when is_boolean(IsOnline) -> call(Replica, {online, IsOnline}).

%% @doc For people: see `atoll_crdt_replica_core:summary/1'.
-spec status(atom()) -> #{atom() => term()} | {error, error()}.
status(Replica) -> call(Replica, status).

%% @doc From now on the caller gets `{atoll, Replica, {changed, Name}}' for each change of an object, here or from elsewhere.
-spec subscribe(atom()) -> ok.
subscribe(Replica) -> atoll_interpreter:subscribe(Replica).

%% @doc Ends the caller's subscription.
-spec unsubscribe(atom()) -> ok.
unsubscribe(Replica) -> atoll_interpreter:unsubscribe(Replica).

call(Replica, Request) -> atoll_handler_process:ask(no_replica, Replica, Request).

%% @doc One sentence for an error.
-spec format_error(error() | atoll_options:error()) -> unicode:chardata().
format_error({no_replica, Name}) -> io_lib:format("there is no replica ~0tp on this node", [Name]);
format_error({crdt, Error}) -> atoll_crdt:format_error(Error);
format_error({no_such_type, Type}) ->
    io_lib:format("~0tp is no type of an object; there are ~ts", [Type, lists:join(", ", [atom_to_list(T) || T <- atoll_crdt:types()])]);
format_error({other_type, Name, Has, Asked}) -> io_lib:format("the object ~0tp has the type ~0tp, and not ~0tp", [Name, Has, Asked]);
format_error({too_many_objects, Max}) -> io_lib:format("there are ~b objects already, as many as the option objects_max allows", [Max]);
format_error({bad_option, _, _} = Error) -> atoll_options:format_error(Error);
format_error(Error) -> atoll:format_error(Error).
