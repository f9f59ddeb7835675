%% SPDX-License-Identifier: Apache-2.0
%% @doc Observes what flows in the watched cluster ({@link atoll_flow}) as long as a page shows it: the first that joins has it begin, and
%% when the last one has left or is lost it ends, and with it all that was put into nodes for it. All that join see the
%% same. Messages are traced as long as one of them wants that. Its agents are in a VM of their own.
-module(atoll_watch_traffic).

-behaviour(gen_server).

-export([start_link/1, join/1, leave/0, joined/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([wants/0]).

-type wants() :: #{
    trace := boolean(),
    %% Whose run queues, migrations and mailboxes are looked at, too.
    load := node() | none
}.

-record(state, {
    target :: atoll_view:target(),
    flow = none :: none | pid(),
    joined = #{} :: #{pid() => {reference(), wants()}}
}).

-define(JOIN_MS, 60000).

%% @doc Of that cluster.
-spec start_link(atoll_view:target()) -> {ok, pid()}.
start_link(Target) -> {ok, _} = gen_server:start_link({local, ?MODULE}, ?MODULE, Target, []).

%% @doc The caller gets frames from now on, `{atoll_flow, Flow, Frame}'.
-spec join(wants()) -> {ok, Flow :: pid()} | {error, unicode:chardata()}.
join(#{load := Load} = Wants) ->
    try gen_server:call(?MODULE, {join, self(), Wants}, ?JOIN_MS) of
        {ok, Flow} ->
            ok = atoll_flow:subscribe(Flow),
            ok = atoll_flow:load(Flow, Load),
            {ok, Flow};
        {error, _} = Error -> Error
    catch
        exit:_ -> {error, "What flows cannot be looked at now: try it again."}
    end.

%% @doc And no more.
-spec leave() -> ok.
leave() -> gen_server:call(?MODULE, {leave, self()}, ?JOIN_MS).

%% @doc How many have joined.
-spec joined() -> non_neg_integer().
joined() -> gen_server:call(?MODULE, joined, ?JOIN_MS).

%% @private
-spec init(atoll_view:target()) -> {ok, #state{}}.
init(Target) ->
    _ = process_flag(trap_exit, true),
    {ok, #state{target = Target}}.

%% @private
-spec handle_call({join, pid(), wants()} | {leave, pid()} | joined, gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({join, Pid, Wants}, From, #state{flow = none, target = Target} = State) ->
    case atoll_flow:start_link(Target, #{apart => true}) of
        {ok, Flow} -> handle_call({join, Pid, Wants}, From, State#state{flow = Flow});
        {error, {unable, Sentence}} -> {reply, {error, Sentence}, State}
    end;
handle_call({join, Pid, Wants}, _From, #state{flow = Flow, joined = Joined} = State) ->
    {reply, {ok, Flow}, traced(State#state{joined = Joined#{Pid => {monitor(process, Pid), Wants}}})};
handle_call({leave, Pid}, _From, State) ->
    {reply, ok, left(Pid, State)};
handle_call(joined, _From, #state{joined = Joined} = State) ->
    {reply, map_size(Joined), State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _) -> error({unknown_message, Message}).

%% @private
-spec handle_info({'DOWN', reference(), process, pid(), term()} | {'EXIT', pid(), term()}, #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({'DOWN', _, process, Pid, _}, State) ->
    {noreply, left(Pid, State)};
%% Who has joined sees it too, and joins again.
handle_info({'EXIT', Flow, _}, #state{flow = Flow} = State) ->
    {noreply, State#state{flow = none}};
handle_info({'EXIT', _, normal}, State) ->
    {noreply, State};
%% One that could not begin has said why.
handle_info({'EXIT', _, {shutdown, {unable, _}}}, State) ->
    {noreply, State};
handle_info({'EXIT', _, Reason}, State) ->
    {stop, Reason, State}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{flow = none}) -> ok;
terminate(_, #state{flow = Flow}) -> ended(Flow).

traced(#state{flow = Flow, joined = Joined} = State) ->
    ok = atoll_flow:wants(Flow, lists:any(fun({_, #{trace := Trace}}) -> Trace end, maps:values(Joined))),
    State.

left(Pid, #state{joined = Joined, flow = Flow} = State) ->
    case maps:take(Pid, Joined) of
        {{Ref, _}, Others} ->
            true = demonitor(Ref, [flush]),
            Left = State#state{joined = Others},
            case {map_size(Others), Flow} of
                {_, none} -> Left;
                {0, _} -> ok = ended(Flow), Left#state{flow = none};
                {_, _} -> ok = atoll_flow:forget(Flow, Pid), traced(Left)
            end;
        error -> State
    end.

%% Its end is no news here.
ended(Flow) ->
    true = unlink(Flow),
    receive {'EXIT', Flow, _} -> ok after 0 -> ok end,
    gen_server:stop(Flow).
