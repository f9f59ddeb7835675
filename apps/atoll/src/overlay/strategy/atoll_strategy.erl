%% SPDX-License-Identifier: Apache-2.0
%% @doc The behaviour of an overlay strategy: which nodes are this node's
%% neighbours, that is, with whom it holds a standing link.
%%
%% A strategy is a pure protocol (`atoll_protocol') that runs as one part of
%% `atoll_overlay_core', which makes its life easier in four ways:
%% <ul>
%% <li>It may send to any node. Without a link the overlay connects on demand, for
%%   the message and a short while after it; if that fails, the strategy hears
%%   `{cast, {unreachable, Node}}' and the message is gone.</li>
%% <li>A node that was started again is told apart from its earlier life: the
%%   strategy hears `{down, Node, restarted}' before the first message of the new
%%   one.</li>
%% <li>It need not detect silent nodes. Of a neighbour that is silent it hears
%%   `{down, Node, silent}', as if the connection had broken.</li>
%% <li>It need not find out that it is alone: it is told to join again.</li>
%% </ul>
%%
%% What a strategy owes: it says of each neighbour that it gains or loses
%% (`{notify, {neighbour_up, Node}}', `{notify, {neighbour_down, Node, Why}}'), it
%% wants the links that it lives on (`{want, Node}', `{unwant, Node}'), and a node
%% is its neighbour only while the link with it is up. Links and messages may be
%% lost at any time, and a message may come twice.
%%
%% Its events, beside those of links, messages and timers, are casts:
%% <dl>
%% <dt>`{join, [Node]}'</dt><dd>contacts: become a neighbour of somebody, through
%%   any of them. Comes again while the node is alone; it must be harmless when it
%%   is not.</dd>
%% <dt>`leave'</dt><dd>part from all neighbours, in order. Should the node join again,
%%   the overlay starts the strategy anew, with what it is `known' to have known.</dd>
%% <dt>`{unreachable, Node}'</dt><dd>an attempt to connect with it failed.</dd>
%% <dt>`{dead, Node}'</dt><dd>the cluster's verdict: its present life is over.</dd>
%% <dt>`{stranger, Node}'</dt><dd>this node takes Node for a neighbour, and Node
%%   says that they are none: a message was lost.</dd>
%% <dt>`{tell, Term}'</dt><dd>what only this strategy knows, from its user. Of a term
%%   that it does not know it does nothing but count it, in its summary as
%%   `not_understood': a user's mistake, or one strategy's term under another, takes
%%   no node down.</dd>
%% </dl>
-module(atoll_strategy).

-export([module/1, names/0, is_partial/1, is_node_name/1]).

-export_type([config/0, notice/0, why/0]).

-type config() :: #{
    self := node(),
    %% Grows with each start of the node.
    incarnation := pos_integer(),
    seed := integer(),
    options := atoll_options:options(),
    %% Nodes that were known before a restart, if that was kept.
    remembered := [node()]
}.

-type notice() :: {neighbour_up, node()} | {neighbour_down, node(), why()}.

-type why() ::
    %% The link broke, or the node is silent.
    lost
    %% One of the two decided so, and both know.
    | dropped.

%% The options with their defaults. Times are in milliseconds.
-callback options() -> atoll_options:known().
-callback init(config(), atoll_protocol:now_ms()) -> {State :: term(), [atoll_protocol:effect()]}.
-callback handle(atoll_protocol:event(), atoll_protocol:now_ms(), State) ->
    {State, [atoll_protocol:effect()]}.
%% In the order of their names.
-callback neighbours(State :: term()) -> [node()].
%% Nodes that it knows beside its neighbours, for a restart; bounded.
-callback known(State :: term()) -> [node()].
%% For people: sizes of views and queues, and what was dropped, by reason.
-callback summary(State :: term()) -> #{atom() => term()}.

-define(OWN, #{
    mesh => atoll_mesh,
    star => atoll_star,
    hyparview => atoll_hyparview,
    cliques => atoll_cliques,
    static => atoll_static,
    scamp => atoll_scamp
}).

%% @doc The module of a strategy: one of ours by its name, or another by its
%% module, if that is one.
-spec module(atom()) -> {ok, module()} | {error, atoll_plug:error()}.
module(Name) ->
    atoll_plug:module(strategy, Name, {?MODULE, ?OWN}).

%% @doc The names of our own.
-spec names() -> [atom()].
names() ->
    lists:sort(maps:keys(?OWN)).

%% @doc Whether it leaves nodes unconnected, which Erlang's own `connect_all' would
%% undo. Of a module that is not ours nobody knows, so it is taken for one that does.
-spec is_partial(module()) -> boolean().
is_partial(Module) ->
    Module =/= atoll_mesh.

%% @doc Whether a term is the name of a node, `name@host'.
-spec is_node_name(term()) -> boolean().
is_node_name(Node) when is_atom(Node) ->
    case string:split(atom_to_list(Node), "@", all) of
        [[_ | _], [_ | _]] -> true;
        _ -> false
    end;
is_node_name(_) ->
    false.
