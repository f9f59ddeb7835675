%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a submaster, which asks those below it by their names, and does what {@link
%% aco_branch} decides. It holds nothing that could be lost with it: started again it is asked again,
%% and finds those below it by their names.
%%
%% This is all of the recovery: a request whose process ends, or is not there, is sent again to
%% whoever has the name next; if nobody has it, that one is started where it is to be, which changes
%% nothing if its supervisor is just doing so; if its node cannot be reached, on the next node.
-module(aco_submaster).
-behaviour(gen_server).

-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([reason/0]).

-type reason() ::
    %% where nothing is reliable
    {process_lost, aco_tree:id(), node()}
    %% not by a kill
    | {crashed, aco_tree:id(), node(), Why :: term()}
    %% started again so many times there without getting anything done in between
    | {in_vain, aco_tree:id(), node(), pos_integer()}
    %% in so many seconds
    | {not_back, aco_tree:id(), node(), pos_integer()}.

-record(state, {
    id :: aco_tree:path(),
    run :: aco_host:run(),
    branch :: aco_branch:branch(),
    %% of what was asked; each with who was, for which round, and since when that one is not found
    requests = gen_server:reqids_new() :: gen_server:request_id_collection(),
    told = [] :: aco_branch:told(),
    %% who waits for the present round; more than one if the first was killed meanwhile
    askers = [] :: [gen_server:from()],
    %% where there are no names
    pids = #{} :: #{aco_tree:id() => pid()}
}).

%% `none' of one that was there when it was heard of last.
-type missing() :: none | integer().

%% Longer than it takes to start again what was killed.
-define(AGAIN_MS, 5).
%% Who is not back by then is not coming back.
-define(BACK_MS, 30_000).
-define(STOP_MS, 10_000).

%% @private
-spec init({aco_tree:path(), aco_host:run()}) -> {ok, #state{}}.
init({Id, #{tree := Tree} = Run}) ->
    #{below := Below} = aco_tree:place(Id, Tree),
    Children = [{Child, Nodes} || Child <- Below, #{nodes := Nodes} <- [aco_tree:place(Child, Tree)]],
    {ok, #state{id = Id, run = Run, branch = aco_branch:new(Children)}}.

%% @private
-spec handle_call({round, aco_branch:round_number(), aco_branch:told()}, gen_server:from(), #state{}) -> {noreply, #state{}}.
handle_call({round, Round, Told}, {Pid, _} = From, #state{askers = Askers, id = Id, run = #{id := RunId}} = S) ->
    ok = aco_leash:follow(RunId, Id, Pid),
    {noreply, event({ask, Round}, S#state{askers = [From | Askers], told = Told})}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({again, Id, Round, Missing}, S) ->
    {noreply, ask(Id, Round, Missing, S)};
handle_info({duplicate, _}, S) ->
    {noreply, S};
handle_info(Message, #state{requests = Requests} = S) ->
    case gen_server:check_response(Message, Requests, true) of
        {{reply, {ok, Value}}, {Id, Round, _}, Left} ->
            {noreply, event({answer, Id, Round, Value}, S#state{requests = Left})};
        {{reply, {error, Reason}}, _, Left} ->
            {noreply, fail(Reason, S#state{requests = Left})};
        {{error, {Why, _}}, {Id, Round, Missing}, Left} ->
            {noreply, lost(Why, Id, Round, Missing, S#state{requests = Left})}
    end.

event(Event, #state{branch = Branch} = S) ->
    {Next, Effects} = aco_branch:handle(Event, Branch),
    lists:foldl(fun act/2, S#state{branch = Next}, Effects).

act({ask, Id, Round}, S) -> ask(Id, Round, none, S);
act({answer, Round, Value}, S) -> answer({ok, finished(Round, Value, S)}, S);
act({fail, Reason}, S) -> fail(Reason, S).

answer(Answer, #state{askers = Askers} = S) ->
    lists:foreach(fun(From) -> gen_server:reply(From, Answer) end, Askers),
    S#state{askers = []}.

fail(Reason, S) -> answer({error, Reason}, S).

%%% Asking by name

-spec ask(aco_tree:id(), aco_branch:round_number(), missing(), #state{}) -> #state{}.
ask(Id, Round, Missing, #state{branch = Branch, run = Run, pids = Pids} = S) ->
    case {aco_branch:is_open(Id, Round, Branch), aco_name:of_id(Id, Run), Pids} of
        {false, _, _} -> S;
        {true, none, #{Id := Pid}} -> request(Pid, Id, Round, Missing, S);
        {true, none, #{}} -> start(Id, Round, Missing, S);
        {true, Name, _} -> request(Name, Id, Round, Missing, S)
    end.

request(To, Id, Round, Missing, #state{requests = Requests, told = Told} = S) ->
    S#state{requests = gen_server:send_request(To, {round, Round, Told}, {Id, Round, Missing}, Requests)}.

lost(Why, Id, _, _, #state{run = #{reliable := false}, branch = Branch} = S) ->
    Node = aco_branch:node_of(Id, Branch),
    case is_kill(Why) of
        true when Why =:= noconnection -> fail({node_lost, Id, Node}, S);
        true -> fail({process_lost, Id, Node}, S);
        false -> fail({crashed, Id, Node, Why}, S)
    end;
lost(noproc, Id, Round, Missing, S) ->
    start(Id, Round, Missing, S);
lost(noconnection, Id, Round, Missing, S) ->
    again(Id, Round, Missing, S);
lost(Why, Id, Round, _, #state{branch = Branch} = S) ->
    case is_kill(Why) of
        %% It was there, however long it had been missing before.
        true -> again(Id, Round, none, S);
        %% What fails by itself would again.
        false -> fail({crashed, Id, aco_branch:node_of(Id, Branch), Why}, S)
    end.

is_kill(Why) -> lists:member(Why, [killed, noproc, noconnection, shutdown, normal]).

again(Id, Round, Missing, S) ->
    _ = erlang:send_after(?AGAIN_MS, self(), {again, Id, Round, Missing}),
    S.

%% Nobody has the name.
start(Id, Round, Missing, #state{branch = Branch, run = Run, pids = Pids} = S) ->
    Node = aco_branch:node_of(Id, Branch),
    case aco_host:start(Node, Id, Run) of
        {ok, Pid} -> waiting(Id, Round, Node, Missing, S#state{pids = Pids#{Id => Pid}});
        again -> waiting(Id, Round, Node, Missing, S);
        {no_way, Why} -> event({unreachable, Id, Node, Why}, S);
        {error, Reason} -> fail(Reason, S)
    end.

waiting(Id, Round, _, none, S) ->
    ask(Id, Round, now_ms(), S);
waiting(Id, Round, Node, Missing, S) ->
    case now_ms() - Missing > ?BACK_MS of
        true -> fail({not_back, Id, Node, ?BACK_MS div 1000}, S);
        false -> again(Id, Round, Missing, S)
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%%% The end

%% Those below are ended, and this node says what there is to say of it.
finished(finish, Reports, #state{id = Id, run = #{id := RunId, tree := Tree} = Run, pids = Pids}) ->
    #{below := [First | _] = Below} = aco_tree:place(Id, Tree),
    Kept = case aco_name:of_id(First, Run) of {via, _, {Group, _}} -> Group; _ -> none end,
    Where = [case aco_name:whereis(Child, Run) of undefined -> maps:get(Child, Pids, none); Pid -> Pid end || Child <- Below],
    Nodes = lists:usort([node(Pid) || Pid <- Where, is_pid(Pid), node(Pid) =/= node()]),
    _ = erpc:multicall(Nodes, aco_host, stop, [RunId, Kept], ?STOP_MS),
    maps:merge(Reports, aco_host:report(Run));
finished(_, Value, _) ->
    Value.
