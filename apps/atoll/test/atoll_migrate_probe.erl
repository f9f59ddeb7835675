%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: a server that keeps who has asked it what and how often, and can be
%% handed over to another node, and clients that ask it all the time and never twice the same.
-module(atoll_migrate_probe).

-behaviour(gen_server).

-export([boot/1, start/1, second/1, hand_over/2, asked/1]).
-export([client/2, switch/2, report/1, rest/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(NAME, ledger).
-define(DEADLINE_MS, 15000).

%% @doc Loads the page's program, and starts `pg'.
boot(Programs) ->
    [{module, Module} = code:load_binary(Module, "", Code) || {Module, Code} <- Programs],
    Caller = self(),
    %% The scope ends with who has started it.
    Pid = spawn(fun() ->
        {ok, _} = pg:start_link(),
        Caller ! {self(), started},
        receive stop -> ok end
    end),
    receive
        {Pid, started} -> ok
    after ?DEADLINE_MS -> error(timeout)
    end.

%% @doc The server, with that name.
start(Name) ->
    {ok, Pid} = gen_server:start(Name, ?MODULE, #{}, []),
    Pid.

%% @doc What starting another one answers.
second(Name) -> gen_server:start(Name, ?MODULE, #{}, []).

%% @doc Has the server go on at that node; gives the process there. All that is asked of the old one
%% from now on it passes on.
hand_over(Server, Node) -> gen_server:call(Server, {hand_over, Node}, ?DEADLINE_MS).

%% @doc What was asked, and how often.
asked(Server) -> gen_server:call(Server, asked, ?DEADLINE_MS).

init({heir, Asked}) ->
    yes = both:re_register_name(?NAME, self()),
    {ok, Asked};
init(Asked) ->
    {ok, Asked}.

handle_call(Question, From, Heir) when is_pid(Heir) ->
    Heir ! {'$gen_call', From, Question},
    {noreply, Heir};
handle_call({hand_over, Node}, _From, Asked) ->
    {ok, Heir} = erpc:call(Node, gen_server, start, [?MODULE, {heir, Asked}, []]),
    {reply, Heir, Heir};
handle_call(asked, _From, Asked) ->
    {reply, Asked, Asked};
handle_call({ask, Id}, _From, Asked) ->
    {reply, {answer, Id}, maps:update_with(Id, fun(N) -> N + 1 end, 1, Asked)}.

handle_cast(_, State) -> {noreply, State}.

%% @doc A process that asks the server of that name all the time; Tag tells its questions from those
%% of others.
client(Tag, Name) ->
    spawn(fun() ->
        ok = pg:join(clients, self()),
        ask(Tag, Name, 1, [], [])
    end).

%% @doc From now on it uses that name.
switch(Client, Name) -> tell(Client, {switch, Name}).

%% @doc The questions that were answered, and what came of the others. It stands between two
%% questions when it says so: the next one is for who has the name by then.
report(Client) -> tell(Client, report).

%% @doc The same, and it ends.
rest(Client) -> tell(Client, rest).

tell(Client, What) ->
    Ref = monitor(process, Client),
    Client ! {self(), Ref, What},
    receive
        {Ref, Answer} -> true = demonitor(Ref, [flush]), Answer;
        {'DOWN', Ref, process, _, Why} -> error(Why)
    after ?DEADLINE_MS -> error(timeout)
    end.

ask(Tag, Name, N, Answered, Failed) ->
    receive
        {From, Ref, {switch, Next}} ->
            From ! {Ref, ok},
            ask(Tag, Next, N, Answered, Failed);
        {From, Ref, report} ->
            From ! {Ref, {Answered, Failed}},
            ask(Tag, Name, N, Answered, Failed);
        {From, Ref, rest} ->
            From ! {Ref, {Answered, Failed}}
    %% The others have the processor too.
    after 1 ->
        Id = {Tag, N},
        try gen_server:call(Name, {ask, Id}, ?DEADLINE_MS) of
            {answer, Id} -> ask(Tag, Name, N + 1, [Id | Answered], Failed)
        catch
            exit:Why -> ask(Tag, Name, N + 1, Answered, [{Id, Name, Why} | Failed])
        end
    end.
