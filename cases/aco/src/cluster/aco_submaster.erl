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
    %% of what was asked; each with who was and for which round
    requests = gen_server:reqids_new() :: gen_server:request_id_collection(),
    told = [] :: aco_branch:told(),
    %% who waits for the present round; more than one if the first was killed meanwhile
    askers = [] :: [gen_server:from()],
    %% where there are no names
    pids = #{} :: #{aco_tree:id() => pid()},
    %% since when one is not found
    missing = #{} :: #{aco_tree:id() => integer()}
}).

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
    {noreply, event({ask, Round, Told}, S#state{askers = [From | Askers], told = Told})}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({again, Id, Round}, S) ->
    {noreply, ask(Id, Round, S)};
handle_info({duplicate, _}, S) ->
    {noreply, S};
handle_info(Message, #state{requests = Requests} = S) ->
    case gen_server:check_response(Message, Requests, true) of
        {{reply, {ok, Value}}, {Id, Round}, Left} ->
            {noreply, event({answer, Id, Round, Value}, found(Id, S#state{requests = Left}))};
        {{reply, {error, Reason}}, _, Left} ->
            {noreply, fail(Reason, S#state{requests = Left})};
        {{error, {Why, _}}, {Id, Round}, Left} ->
            {noreply, lost(Why, Id, Round, S#state{requests = Left})}
    end.

event(Event, #state{branch = Branch} = S) ->
    {Next, Effects} = aco_branch:handle(Event, Branch),
    lists:foldl(fun act/2, S#state{branch = Next}, Effects).

act({ask, Id, Round, _}, S) -> ask(Id, Round, S);
act({answer, Round, Value}, S) -> answer({ok, finished(Round, Value, S)}, S);
act({fail, Reason}, S) -> fail(Reason, S).

answer(Answer, #state{askers = Askers} = S) ->
    lists:foreach(fun(From) -> gen_server:reply(From, Answer) end, Askers),
    S#state{askers = []}.

fail(Reason, S) -> answer({error, Reason}, S).

%%% Asking by name

ask(Id, Round, #state{branch = Branch, run = Run, pids = Pids} = S) ->
    case {aco_branch:is_open(Id, Round, Branch), aco_name:of_id(Id, Run), Pids} of
        {false, _, _} -> S;
        {true, none, #{Id := Pid}} -> request(Pid, Id, Round, S);
        {true, none, #{}} -> start(Id, Round, S);
        {true, Name, _} -> request(Name, Id, Round, S)
    end.

request(To, Id, Round, #state{requests = Requests, told = Told} = S) ->
    S#state{requests = gen_server:send_request(To, {round, Round, Told}, {Id, Round}, Requests)}.

lost(Why, Id, _, #state{run = #{reliable := false}, branch = Branch} = S) ->
    Node = aco_branch:node_of(Id, Branch),
    case is_kill(Why) of
        true when Why =:= noconnection -> fail({node_lost, Id, Node}, S);
        true -> fail({process_lost, Id, Node}, S);
        false -> fail({crashed, Id, Node, Why}, S)
    end;
lost(noproc, Id, Round, S) ->
    start(Id, Round, S);
lost(Why, Id, Round, #state{branch = Branch} = S) ->
    case is_kill(Why) of
        true -> again(Id, Round, S);
        %% What fails by itself would again.
        false -> fail({crashed, Id, aco_branch:node_of(Id, Branch), Why}, S)
    end.

is_kill(Why) -> lists:member(Why, [killed, noproc, noconnection, shutdown, normal]).

again(Id, Round, S) ->
    _ = erlang:send_after(?AGAIN_MS, self(), {again, Id, Round}),
    S.

%% Nobody has the name.
start(Id, Round, #state{branch = Branch, run = Run, pids = Pids} = S) ->
    Node = aco_branch:node_of(Id, Branch),
    case aco_name:reach(Node, Id, Run) of
        ok ->
            case aco_host:start(Node, Id, Run) of
                {ok, Pid} -> waiting(Id, Round, Node, S#state{pids = Pids#{Id => Pid}});
                again -> waiting(Id, Round, Node, S);
                {error, Reason} -> fail(Reason, S)
            end;
        again -> waiting(Id, Round, Node, S);
        {error, {not_made, _} = Reason} -> fail(Reason, S);
        {error, Reason} -> event({unreachable, Id, Node, Reason}, S)
    end.

waiting(Id, Round, Node, #state{missing = Missing} = S) ->
    Now = erlang:monotonic_time(millisecond),
    case maps:get(Id, Missing, Now) of
        Since when Now - Since > ?BACK_MS -> fail({not_back, Id, Node, ?BACK_MS div 1000}, S);
        Since when Since =:= Now -> ask(Id, Round, S#state{missing = Missing#{Id => Since}});
        _ -> again(Id, Round, S)
    end.

found(Id, #state{missing = Missing} = S) -> S#state{missing = maps:remove(Id, Missing)}.

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
