%% SPDX-License-Identifier: Apache-2.0
%% @doc The behaviour of a failure detector: which of this node's neighbours are alive.
%%
%% A detector is a pure protocol (`atoll_protocol') that runs as one part of {@link
%% atoll_overlay_core}: its messages go to the same detector on other nodes, and those of
%% another detector do not reach it. All nodes of a cluster use the same one. Ours is
%% `atoll_detector_watchers', for short `watchers'.
%%
%% What it is told:
%% <dl>
%% <dt>`{up, Node}', `{down, Node, lost | dropped}'</dt><dd>a neighbour from now on; no
%%   more, because the link broke or because the two have agreed.</dd>
%% <dt>`{message, Node, Message}', `{timeout, Key}'</dt><dd>from whatever node; its own
%%   timers.</dd>
%% <dt>`{cast, {unreachable, Node}}'</dt><dd>an attempt to connect with it failed, whoever
%%   made it.</dd>
%% <dt>`{cast, {bytes, Node}}'</dt><dd>some have come from it, in answer to `listen'.</dd>
%% <dt>`{cast, {cargo, Term}}'</dt><dd>to be sent with every beat from now on, or whatever
%%   it sends again and again to some neighbours.</dd>
%% <dt>`{cast, {incarnation, Life}}'</dt><dd>this node has begun a new life.</dd>
%% </dl>
%% It may send to any node, has timers, and says by `{notify, Notice}' what it finds
%% ({@link notice()}). It owes these: the cargo that comes from another node, without which
%% parts of a cluster do not find each other; and of each `suspect' one end, `cleared',
%% `silent' or a death. A death is of one life, so a node says with its beats which one it
%% is in. Nothing that it says needs to be right: a node that was declared dead and is not
%% hears of it from the roster, and begins a new life.
-module(atoll_detector).

-export([new/1, module/1, format_error/1]).

-export_type([config/0, spec/0, notice/0, life/0, error/0]).

-type config() :: #{
    self := node(),
    incarnation := life(),
    seed := integer(),
    %% All of them.
    options := atoll_options:options()
}.

-type spec() ::
    %% The module, or the short name of ours, with the options that differ from its
    %% defaults; these alone are for ours.
    off | module() | {module(), atoll_options:options()} | atoll_options:options().

-type life() :: pos_integer().
%% The incarnation of a node.

-type notice() ::
    %% So long it has not been heard.
    {suspect, node(), SilenceMs :: non_neg_integer()}
    %% It was heard, or it is no longer for this node to judge.
    | {cleared, node()}
    %% That life is over: the strategy lets go of it, and a link with it is closed. The
    %% others are told, so that they know the members; or they are not, where each
    %% detector hears of it from this one.
    | {found_dead, node(), life()}
    | {dead, node(), life()}
    %% The own link with it is of no use, though it may be alive: as if it had broken.
    | {silent, node()}
    %% It says that it is no neighbour.
    | {stranger, node()}
    %% What came with its beat.
    | {cargo, node(), Term :: term()}
    %% This node's lives up to this one were declared dead.
    | {buried, life()}
    %% Say so if bytes have arrived from it since it was listened for last, no longer ago
    %% than this.
    | {listen, node(), Ms :: pos_integer()}
    %% A message to so many members, drawn at random; to nobody where no roster knows any.
    | {tell_some, pos_integer(), Message :: term()}.

-type error() :: {not_a_detector, term()} | atoll_options:error().

-callback options() -> atoll_options:known().
-callback init(config(), atoll_protocol:now_ms()) -> {State :: term(), [atoll_protocol:effect()]}.
-callback handle(atoll_protocol:event(), atoll_protocol:now_ms(), State) -> {State, [atoll_protocol:effect()]}.
%% For people: sizes, and what was dropped, by reason.
-callback summary(State :: term()) -> #{atom() => term()}.

-define(OWN, #{watchers => atoll_detector_watchers}).

%% @doc The module that is meant, with all its options.
-spec new(spec() | term()) -> {ok, off | {module(), atoll_options:options()}} | {error, error()}.
new(off) ->
    {ok, off};
new(#{} = Options) ->
    new({watchers, Options});
new(Name) when is_atom(Name) ->
    new({Name, #{}});
new({Name, #{} = Given}) when is_atom(Name) ->
    case module(Name) of
        {ok, Module} ->
            case atoll_options:complete(Module, Given) of
                {ok, Options} -> {ok, {Module, Options}};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end;
new(Term) ->
    {error, {not_a_detector, Term}}.

%% @doc The module of a detector: ours by its short name, or another by its module, if that
%% is one.
-spec module(atom()) -> {ok, module()} | {error, error()}.
module(Name) ->
    atoll_plug:module(detector, Name, {?MODULE, ?OWN}).

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({not_a_detector, Term}) ->
    io_lib:format("a detector is a map of options, off, Module or {Module, Options}, not ~0tp", [Term]);
format_error(Error) ->
    atoll_options:format_error(Error).
