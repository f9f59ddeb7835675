%% SPDX-License-Identifier: Apache-2.0
%% @doc Deployments for a program that runs for long and is asked by several: one operation at a time, which goes on by itself and
%% tells how far it is, and questions meanwhile. The state is held while an operation goes on, and else for a moment after it was
%% opened, however often it is asked: the command line works with it too. A fault in what is asked is that of who asks.
-module(atoll_deploy_server).
-behaviour(gen_server).

-export([start_link/1, dir/0, ask/1, begin_operation/3, operation/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([operation/0]).

-type operation() :: #{
    what := run | roll | terminate | plan,
    family := string(),
    done := non_neg_integer(),
    total := non_neg_integer(),
    %% What came of it, when it has ended.
    result := none | result()
}.

-type result() ::
    {ok, atoll_deploy:outcome()} | {planned, [atoll_deploy_plan:step()]} | {back, Why :: unicode:chardata(), atoll_deploy:outcome()} | {error, unicode:chardata()}.

-type work() :: fun((atoll_deploy:deployment(), atoll_deploy:tell()) -> result()).

-record(state, {
    dir :: file:filename(),
    store = none :: none | atoll_deploy:deployment(),
    operation = none :: none | operation(),
    %% who does it, while it goes on
    worker = none :: none | {pid(), reference()}
}).

%% A worker ends by exit, with what came of it.
-dialyzer({nowarn_function, handle_call/3}).

-define(HELD_MS, 2000).
-define(WAIT_MS, 2000).
-define(CALL_MS, 120000).

%% @doc Starts it, for the state in a folder.
-spec start_link(Dir :: file:filename()) -> gen_server:start_ret().
start_link(Dir) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Dir, []).

%% @doc The folder of the state.
-spec dir() -> file:filename().
dir() -> gen_server:call(?MODULE, dir, ?CALL_MS).

%% @doc Calls a function with the state. It is to ask no host.
-spec ask(fun((atoll_deploy:deployment()) -> Answer)) -> {ok, Answer} | {error, unicode:chardata()}.
ask(Fun) ->
    case gen_server:call(?MODULE, {ask, Fun}, ?CALL_MS) of
        {raised, {Class, Reason, Stack}} -> erlang:raise(Class, Reason, Stack);
        Answer -> Answer
    end.

%% @doc Begins an operation, if none is under way.
-spec begin_operation(run | roll | terminate | plan, Family :: string(), work()) -> {ok, operation()} | {error, unicode:chardata()}.
begin_operation(What, Family, Work) -> gen_server:call(?MODULE, {begin_operation, What, Family, Work}, ?CALL_MS).

%% @doc The operation that is under way, or was last.
-spec operation() -> none | operation().
operation() -> gen_server:call(?MODULE, operation, ?CALL_MS).

%% @private
-spec init(file:filename()) -> {ok, #state{}}.
init(Dir) -> {ok, #state{dir = Dir}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(dir, _From, #state{dir = Dir} = State) ->
    reply(Dir, State);
handle_call(operation, _From, #state{operation = Operation} = State) ->
    reply(Operation, State);
handle_call({ask, Fun}, _From, State) ->
    case opened(State) of
        {ok, Store, Opened} -> reply(try {ok, Fun(Store)} catch Class:Reason:Stack -> {raised, {Class, Reason, Stack}} end, Opened);
        {error, Sentence} -> reply({error, Sentence}, State)
    end;
handle_call({begin_operation, _, _, _}, _From, #state{worker = {_, _}, operation = #{what := What, family := Family}} = State) ->
    reply({error, ["Something else is under way: ", atom_to_list(What), " of the family ", Family, $.]}, State);
handle_call({begin_operation, What, Family, Work}, _From, State) ->
    case opened(State) of
        {ok, Store, Opened} ->
            Self = self(),
            Worker = spawn_monitor(fun() -> exit({came, Work(Store, fun(Done, Total) -> Self ! {told, Done, Total} end)}) end),
            Operation = #{what => What, family => Family, done => 0, total => 0, result => none},
            reply({ok, Operation}, Opened#state{operation = Operation, worker = Worker});
        {error, Sentence} ->
            reply({error, Sentence}, State)
    end.

reply(Answer, State) -> {reply, Answer, State}.

opened(#state{store = none, dir = Dir} = State) ->
    case atoll_deploy:open(Dir, ?WAIT_MS) of
        {ok, Store} ->
            ok = held(),
            {ok, Store, State#state{store = Store}};
        {error, _} = Error -> Error
    end;
opened(#state{store = Store} = State) ->
    {ok, Store, State}.

held() ->
    _ = erlang:send_after(?HELD_MS, self(), held),
    ok.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Request, _State) -> error({unknown, Request}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({told, Done, Total}, #state{operation = Operation} = State) ->
    {noreply, State#state{operation = Operation#{done := Done, total := Total}}};
handle_info({'DOWN', Ref, process, Pid, Reason}, #state{worker = {Pid, Ref}, operation = Operation} = State) ->
    Result = case Reason of
        {came, Is} -> Is;
        _ -> {error, io_lib:format("A fault of the master: ~0tP.", [Reason, 12])}
    end,
    ok = held(),
    {noreply, State#state{worker = none, operation = Operation#{result := Result}}};
handle_info(held, #state{worker = none, store = #{} = Store} = State) ->
    ok = atoll_deploy:close(Store),
    {noreply, State#state{store = none}};
handle_info(held, State) ->
    {noreply, State}.
