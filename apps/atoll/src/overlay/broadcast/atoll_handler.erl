%% SPDX-License-Identifier: Apache-2.0
%% @doc State that all members have, kept by broadcasts: the behaviour of what merges it, and the
%% process that runs that on this node.
%%
%% A handler is a module that says what a value does to the state (`merge/3'), and what somebody lacks
%% (`digest/1' and `since/2'). {@link put/3} merges a value here and broadcasts it. Whoever did
%% not get it, because it was started late, was cut off, missed it, or was too slow, gets it when
%% it compares its state with a neighbour's (`atoll_handler_core' says when).
%%
%% == What a handler must do ==
%% <ul>
%% <li>`merge/3' comes to the same state in whatever order the same values come, however often.
%%   It answers `stale' for what changes nothing, which is told to nobody, and for what it cannot
%%   read.</li>
%% <li>`digest/1' is equal for equal states and for no others; lists in it are sorted. It travels
%%   whole: keep it small.</li>
%% <li>`since/2' gives what somebody with that digest lacks, and nothing that it has.</li>
%% <li>What is deleted is a value like others, as a mark with its time; else a neighbour brings it
%%   back. A handler that forgets such marks does so when nobody can be without them any more.</li>
%% </ul>
%% All of them run in the handler's process. Who wants to read without asking it has `init/1'
%% make a table; it ends with the process.
%%
%% == Who owns it ==
%% The process belongs to a supervisor of the program, by {@link child_spec/1}. Its name is
%% registered, is the same on all nodes, and belongs to one handler, as the name of a scope of
%% `pg' does. When it crashes its state is gone here, and the next one fetches it from a
%% neighbour. Nobody else notices. A value on which `merge/3' crashes is not broadcast by `put/3'. When the
%% process is stopped the others keep their state. When the overlay's process begins anew
%% it keeps its state and compares it with the neighbours that come; when the application
%% `atoll' is stopped it ends, with `{shutdown, not_running}'.
%%
%% Promised: `put/3' has merged when it returns. All handlers whose neighbours have one too come to the
%% same state. At most `queue_max' broadcasts wait for a handler that is slow; what is beyond is
%% dropped and counted, and a comparison brings it.
%%
%% Not promised: that all have it when `put/3' returns, or in which order they get it. That a
%% node whose neighbours have no such handler gets more than what is broadcast. That anything of
%% it is on disk: when the last node ends, its state is gone.
-module(atoll_handler).

-export([start_link/3, start_link/4, child_spec/1]).
-export([put/3, subscribe/1, unsubscribe/1, status/1, format_error/1]).

-export_type([name/0, options/0, error/0, own_error/0]).

-type name() :: atom().

-type options() :: atoll_options:options().
%% See `atoll_handler_core:options/0'; those not given have their defaults.

-type error() :: atoll_overlay:error() | own_error().

-type own_error() ::
    %% There is none of this name on this node.
    {no_handler, name()}
    %% What was to be one is none, or has been given options that are none.
    | atoll_options:error().

%% The state without any value.
-callback init(Args :: term()) -> State :: term().
%% Somebody has said this.
-callback merge(Id :: term(), Value :: term(), State) -> {new | stale, State}.
%% What this state has, for somebody else to compare with.
-callback digest(State :: term()) -> Digest :: term().
%% What somebody with that digest lacks.
-callback since(Digest :: term(), State :: term()) -> [{Id :: term(), Value :: term()}].

%% @doc Starts the handler Name of this node, with the default options.
-spec start_link(name(), module(), Args :: term()) -> gen_server:start_ret() | {error, error()}.
start_link(Name, Module, Args) ->
    start_link(Name, Module, Args, #{}).

%% @doc Starts the handler Name of this node: the module's `init/1' is called with Args.
-spec start_link(name(), module(), Args :: term(), options()) -> gen_server:start_ret() | {error, error()}.
start_link(Name, Module, Args, Given) when is_atom(Name), is_map(Given) ->
    case atoll_plug:module(handler, Module, {?MODULE, #{}}) of
        {ok, Module} -> atoll_handler_process:start_link(topic(Name), atoll_handler_core, Given, #{module => Module, args => Args});
        {error, _} = Error -> Error
    end.

%% @doc For a supervisor of the program.
-spec child_spec({name(), module(), Args :: term()} | {name(), module(), Args :: term(), options()}) ->
    supervisor:child_spec().
child_spec({Name, Module, Args}) ->
    child_spec({Name, Module, Args, #{}});
child_spec({Name, Module, Args, Options}) ->
    #{id => Name, start => {?MODULE, start_link, [Name, Module, Args, Options]}, modules => [?MODULE, Module]}.

%% @doc Merges a value into the state of this node, and broadcasts it if it was not stale. After
%% `{error, overloaded}', and any other reason of {@link atoll:broadcast/2}, it is merged here, and the
%% others get it when they compare their state with this node's. After `{error, {no_handler, Name}}'
%% nothing has happened. Where `merge/3' crashes, the caller exits, as one does that has called a server.
-spec put(name(), Id :: term(), Value :: term()) -> ok | {error, error()}.
put(Name, Id, Value) ->
    case call(Name, {put, Id, Value}) of
        new -> atoll_overlay:broadcast(topic(Name), {Id, Value});
        stale -> ok;
        {error, _} = Error -> Error
    end.

%% @doc From now on the caller gets `{atoll, Name, {new, Id, Value}}' for each value that is merged here
%% and was not stale, until it ends. A handler that crashes forgets it.
-spec subscribe(name()) -> ok.
subscribe(Name) -> atoll_interpreter:subscribe(Name).

%% @doc Ends the caller's subscription.
-spec unsubscribe(name()) -> ok.
unsubscribe(Name) -> atoll_interpreter:unsubscribe(Name).

%% @doc For people: see `atoll_handler_core:summary/1'.
-spec status(name()) -> #{atom() => term()} | {error, error()}.
status(Name) ->
    call(Name, status).

call(Name, Request) -> atoll_handler_process:ask(no_handler, Name, Request).

%% @doc One sentence for an error of this module's own; {@link atoll:format_error/1} has one for each.
-spec format_error(own_error()) -> unicode:chardata().
format_error({no_handler, Name}) ->
    io_lib:format("there is no handler ~tp on this node", [Name]);
format_error(Error) ->
    atoll_options:format_error(Error).

topic(Name) -> {?MODULE, Name}.
