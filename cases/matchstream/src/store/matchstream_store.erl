%% SPDX-License-Identifier: Apache-2.0
%% @doc Where matches and their events are kept, and what a keeper is: a module of this behaviour, {@link matchstream_store_mnesia} or
%% {@link matchstream_store_redis}.
%%
%% Promised: what `append' has answered with `ok' is kept as the keeper says of itself, and an event number of a match is
%% given once, whoever asks on whichever node: the other one is told `taken'. After `unavailable' it is not known whether
%% something was kept; who reads afterwards sees it.
%%
%% The process takes the requests of a node to its keeper. With the switch `noreply' a process of its own does each of them;
%% without, they are done one after the other.
-module(matchstream_store).
-behaviour(gen_server).

-export([start_link/1, create/1, append/2, read/3, matches/0, running/0, is_ready/0, apart/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0, request/0, connection/0, up_to/0]).

-type options() :: #{module := module(), _ => _}.
%% Beside the module what that takes.

-type connection() :: term().
%% One of those that a keeper has opened.

-type up_to() :: pos_integer() | infinity.

-type request() ::
    {create, matchstream_match:id(), matchstream_match:about()}
    | {append, matchstream_match:id(), matchstream_match:event()}
    | {read, matchstream_match:id(), After :: non_neg_integer(), up_to()}
    | matches
    | running
    | apart.

-callback open(options()) -> {ok, [connection(), ...]} | {error, term()}.
%% Called by the process of the store, again and again until it can be done; what it links ends with that.

-callback create(matchstream_match:id(), matchstream_match:about(), Most :: pos_integer(), connection()) -> ok | exists | full | unavailable.
%% So many are kept at most.

-callback append(matchstream_match:id(), matchstream_match:event(), connection()) -> ok | taken | unavailable.

-callback read(matchstream_match:id(), After :: non_neg_integer(), up_to(), connection()) ->
    {ok, matchstream_match:about(), [matchstream_match:event()]} | none | unavailable.

-callback matches(connection()) -> {ok, [matchstream_match:id()]} | unavailable.

-callback running(connection()) -> {ok, matchstream_match:id()} | none | unavailable.
%% The first one by its name that has begun and not ended.

-callback apart(connection()) -> [node()].
%% Nodes that this one has met again after it was cut off, and whose matches it does not have: it takes nothing.

-record(state, {
    options :: options(),
    %% the one that is next comes first; none while the keeper is not there
    connections = [] :: [connection()]
}).

-define(CALL_MS, 8000).
-define(AGAIN_MS, 200).

%% @doc Starts it. Its keeper is opened after that.
-spec start_link(options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc Keeps a match that is new.
-spec create(matchstream_match:about()) -> {ok, matchstream_match:id()} | exists | full | unavailable | {error, matchstream_match:error()}.
create(About) ->
    case matchstream_match:new(About) of
        {ok, Match} ->
            Id = matchstream_match:id(Match),
            case ask({create, Id, About}) of
                ok -> {ok, Id};
                Other -> Other
            end;
        {error, _} = Error -> Error
    end.

%% @doc Keeps an event with the number that it has.
-spec append(matchstream_match:id(), matchstream_match:event()) -> ok | taken | unavailable.
append(Id, Event) ->
    Answer = ask({append, Id, Event}),
    _ = [matchstream_count:add(unstored, 1) || Answer =:= unavailable],
    Answer.

%% @doc A match as it began, and its events after that number, up to another one.
-spec read(matchstream_match:id(), After :: non_neg_integer(), up_to()) -> {ok, matchstream_match:about(), [matchstream_match:event()]} | none | unavailable.
read(Id, After, UpTo) -> ask({read, Id, After, UpTo}).

%% @doc All matches, in the order of their names.
-spec matches() -> {ok, [matchstream_match:id()]} | unavailable.
matches() ->
    case ask(matches) of
        {ok, Ids} -> {ok, lists:sort(Ids)};
        unavailable -> unavailable
    end.

%% @doc The first match that runs.
-spec running() -> {ok, matchstream_match:id()} | none | unavailable.
running() -> ask(running).

%% @doc Whether the keeper is there, and has what the others have.
-spec is_ready() -> boolean().
is_ready() -> ask(apart) =:= [].

%% @doc From which nodes the keeper is apart, though this one is connected with them.
-spec apart() -> [node()].
apart() ->
    case ask(apart) of
        Nodes when is_list(Nodes) -> Nodes;
        unavailable -> []
    end.

%% One that does not answer in time may have done it.
ask(Request) ->
    try gen_server:call(?MODULE, Request, ?CALL_MS)
    catch exit:_ -> unavailable
    end.

%% @private
-spec init(options()) -> {ok, #state{}, {continue, open}}.
init(Options) ->
    %% A connection that ends is opened again.
    _ = process_flag(trap_exit, true),
    {ok, #state{options = Options}, {continue, open}}.

%% @private
-spec handle_continue(open, #state{}) -> {noreply, #state{}}.
handle_continue(open, S) -> {noreply, open(S)}.

open(#state{options = #{module := Module} = Options} = S) ->
    case Module:open(Options) of
        {ok, Connections} ->
            S#state{connections = Connections};
        {error, _} ->
            _ = erlang:send_after(?AGAIN_MS, self(), open),
            S
    end.

%% @private
-spec handle_call(request(), gen_server:from(), #state{}) -> {reply, term(), #state{}} | {noreply, #state{}}.
handle_call(_, _, #state{connections = []} = S) -> {reply, unavailable, S};
handle_call(Request, From, #state{options = #{module := Module}, connections = [Next | Others]} = S) ->
    Used = S#state{connections = Others ++ [Next]},
    case matchstream_switches:is_on(noreply) of
        true ->
            _ = spawn(fun() -> gen_server:reply(From, done(Request, Module, Next)) end),
            {noreply, Used};
        false ->
            {reply, done(Request, Module, Next), Used}
    end.

done({create, Id, About}, Module, Connection) -> Module:create(Id, About, matchstream_settings:get(matches), Connection);
done({append, Id, Event}, Module, Connection) -> Module:append(Id, Event, Connection);
done({read, Id, After, UpTo}, Module, Connection) -> Module:read(Id, After, UpTo, Connection);
done(matches, Module, Connection) -> Module:matches(Connection);
done(running, Module, Connection) -> Module:running(Connection);
done(apart, Module, Connection) -> Module:apart(Connection).

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info(open | {'EXIT', pid() | port(), term()} | {reference(), term()}, #state{}) -> {noreply, #state{}}.
handle_info(open, #state{connections = []} = S) -> {noreply, open(S)};
handle_info({'EXIT', Pid, _}, #state{connections = Connections} = S) ->
    case lists:member(Pid, Connections) of
        true ->
            %% All are opened anew: a keeper that is gone has lost them all.
            _ = [begin unlink(Other), exit(Other, shutdown) end || Other <- Connections, Other =/= Pid],
            {noreply, open(S#state{connections = []})};
        %% One that could not be opened.
        false -> {noreply, S}
    end;
%% It was opened meanwhile.
handle_info(open, S) -> {noreply, S};
%% The answer to a call that was given up on.
handle_info({Ref, _}, S) when is_reference(Ref) -> {noreply, S}.
