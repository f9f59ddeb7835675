%% SPDX-License-Identifier: Apache-2.0
%% @doc The module `attr' of the portability libraries of the RELEASE project (MacKenzie,
%% Chechina, Trinder, "Performance Portability through Semi-explicit Placement in Distributed
%% Erlang", 2015), over {@link atoll_attr}: programs that were written for it run as they
%% are, and nodes that run it can ask nodes that run this.
%%
%% What is different, and better:
%% <ul>
%% <li>Any process may insert, update and delete, and not only the one that started the
%%   server.</li>
%% <li>A dynamic attribute that crashes or hangs is `undefined', and nothing else happens.</li>
%% <li>A time-out is for the whole of an answer, and not for each reply. A node that is not
%%   there does not keep choose_nodes from choosing among the others.</li>
%% <li>The arguments of start/2 may stand in either order, as the paper and the library have
%%   them.</li>
%% <li>Nodes are asked whether they run `attr' or not: it takes `atoll' there. Those that
%%   run the original only are silent.</li>
%% <li>There is choose_node, as in the paper.</li>
%% </ul>
%% Nodes that fit come in the order of their names. Malformed predicates raise
%% `{bad_predicate, Sentence}'.
-module(attr).

-export([start/0, start/1, start/2, stop/0]).
-export([insert_attr/2, insert/2, update_attr/2, update/2, delete_attr/1, delete/1]).
-export([request_attrs/2, request_attrs/3, choose_nodes/1, choose_nodes/2, choose_nodes/3, choose_node/1, choose_node/2]).

-export_type([predicates/0]).

-type predicates() :: tuple() | [tuple()].

-define(TIMEOUT_MS, 5000).

%% @doc Starts what answers nodes that run the original, and Atoll where it does not run. The
%% attributes are those that come with every node, and those of Atoll's configuration.
-spec start() -> ok | {error, already_running | term()}.
start() ->
    started(fun() -> ok end).

%% @doc With those of a file, or without those that come with every node. Both take the place
%% of what Atoll was configured with.
-spec start(nobuiltins | file:filename_all()) -> ok | {error, already_running | {attr_config_error, term()} | term()}.
start(nobuiltins) ->
    started(fun() -> atoll_attr:load([]) end);
start(File) ->
    started(fun() -> load(File, atoll_attr_builtin:definitions()) end).

%% @doc With those of a file alone.
-spec start(nobuiltins | file:filename_all(), nobuiltins | file:filename_all()) ->
    ok | {error, already_running | {attr_config_error, term()} | term()}.
start(nobuiltins, File) ->
    start(File, nobuiltins);
start(File, nobuiltins) ->
    started(fun() -> load(File, []) end).

started(Load) ->
    case application:ensure_all_started(atoll) of
        {ok, _} ->
            case attr_server:start(Load) of
                {ok, _} -> ok;
                {error, {already_started, _}} -> {error, already_running};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

load(File, Before) ->
    case atoll_attr_file:read(File) of
        {ok, Definitions} ->
            Names = [Name || {Name, _} <- Definitions],
            atoll_attr:load([D || {Name, _} = D <- Before, not lists:member(Name, Names)] ++ Definitions);
        {error, {_, Why}} ->
            {error, {attr_config_error, Why}}
    end.

%% @doc Stops it. Atoll goes on, with its attributes.
-spec stop() -> ok | {error, not_running}.
stop() ->
    attr_server:stop().

%% @doc Adds an attribute, for as long as Atoll runs.
-spec insert_attr(atom(), term()) -> ok | {error, {attr_exists, atom()} | term()}.
insert_attr(Name, Value) ->
    plain(atoll_attr:insert(Name, Value, permanent)).

%% @doc The same.
-spec insert(atom(), term()) -> ok | {error, {attr_exists, atom()} | term()}.
insert(Name, Value) ->
    insert_attr(Name, Value).

%% @doc Gives an attribute another value.
-spec update_attr(atom(), term()) -> ok | {error, {attr_not_set, atom()} | term()}.
update_attr(Name, Value) ->
    plain(atoll_attr:update(Name, Value)).

%% @doc The same.
-spec update(atom(), term()) -> ok | {error, {attr_not_set, atom()} | term()}.
update(Name, Value) ->
    update_attr(Name, Value).

%% @doc Takes an attribute away.
-spec delete_attr(atom()) -> ok | {error, {attr_not_set, atom()} | term()}.
delete_attr(Name) ->
    plain(atoll_attr:delete(Name)).

%% @doc The same.
-spec delete(atom()) -> ok | {error, {attr_not_set, atom()} | term()}.
delete(Name) ->
    delete_attr(Name).

plain({error, {book, Error}}) -> {error, Error};
plain(Answer) -> Answer.

%% @doc As request_attrs/3, with five seconds.
-spec request_attrs([node()], atom() | [atom()]) ->
    [{node(), [{atom(), term()}]} | timeout] | {error, {node_not_found, node()} | term()}.
request_attrs(Nodes, Names) ->
    request_attrs(Nodes, Names, ?TIMEOUT_MS).

%% @doc What these nodes say of these attributes. Where some are silent the list ends with
%% `timeout'.
-spec request_attrs([node()], atom() | [atom()], Ms :: pos_integer()) ->
    [{node(), [{atom(), term()}]} | timeout] | {error, {node_not_found, node()} | term()}.
request_attrs(Nodes, Name, Ms) when is_atom(Name), Name =/= [] ->
    request_attrs(Nodes, [Name], Ms);
request_attrs(Nodes, Names, Ms) ->
    case atoll_attr:request_attrs(Nodes, Names, #{deadline => Ms}) of
        {ok, #{unreachable := [Node | _]}} ->
            {error, {node_not_found, Node}};
        {ok, #{values := Values, silent := Silent}} ->
            [{Node, [{Name, maps:get(Name, Of, undefined)} || Name <- Names]} || {Node, Of} <- lists:sort(maps:to_list(Values))] ++
                [timeout || Silent =/= []];
        {error, _} = Error ->
            Error
    end.

%% @doc The members that fit.
-spec choose_nodes(predicates()) -> [node()] | {error, term()}.
choose_nodes(Predicates) ->
    chosen(atoll_attr:choose_nodes(members, Predicates, #{deadline => ?TIMEOUT_MS})).

%% @doc As choose_nodes/3, with five seconds.
-spec choose_nodes([node()], predicates()) -> [node()] | {error, term()}.
choose_nodes(Nodes, Predicates) ->
    choose_nodes(Nodes, Predicates, ?TIMEOUT_MS).

%% @doc Those of these nodes that fit and answer in time.
-spec choose_nodes([node()], predicates(), Ms :: pos_integer()) -> [node()] | {error, term()}.
choose_nodes(Nodes, Predicates, Ms) ->
    chosen(atoll_attr:choose_nodes(Nodes, Predicates, #{deadline => Ms})).

chosen({ok, #{nodes := Nodes}}) -> Nodes;
chosen({error, Error}) -> refused(Error).

%% @doc One of the members that fit.
-spec choose_node(predicates()) -> node() | none | {error, term()}.
choose_node(Predicates) ->
    one(atoll_attr:choose_node(members, Predicates, #{deadline => ?TIMEOUT_MS})).

%% @doc One of these nodes that fit.
-spec choose_node([node()], predicates()) -> node() | none | {error, term()}.
choose_node(Nodes, Predicates) ->
    one(atoll_attr:choose_node(Nodes, Predicates, #{deadline => ?TIMEOUT_MS})).

one({ok, Node, _}) -> Node;
one({none, _}) -> none;
one({error, Error}) -> refused(Error).

refused({predicate, Error}) ->
    error({bad_predicate, unicode:characters_to_list(atoll_predicate:format_error(Error))});
refused(Error) ->
    {error, Error}.
