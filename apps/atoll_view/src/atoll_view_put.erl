%% SPDX-License-Identifier: Apache-2.0
%% @doc Modules of ours in a running node: put there from memory, so that no file is touched and embedded mode does not
%% matter, and asked by a message to a process that one of them starts. That monitors whoever asks, from its beginning on, and
%% goes with its modules when it has lost the last one.
-module(atoll_view_put).

-export([code/1, guest/2, put/5, ask/4]).

-export_type([code/0, guest/0]).

-type code() :: [{module(), file:filename(), binary()}].

%% What the process is started with.
-type guest() :: #{
    %% Who asks first.
    watcher := pid(),
    %% What `lists:zipwith3/4' has to apply to take its modules away: a process that runs OTP's code alone does that, and has the name
    %% meanwhile, since one that started then would lose its code. It tries again while a process is still in one of
    %% them, which a purge that does not ask would kill. Where one was killed before this one there is old code, and no more can
    %% be deleted as long as that is.
    leaves := [[term()], ...]
}.

-define(PURGES, 1000).

%% @doc The modules as they are put, stripped.
-spec code([module()]) -> code().
code(Modules) ->
    [begin
        {Module, Code, File} = code:get_object_code(Module),
        {ok, {Module, Stripped}} = beam_lib:strip(Code),
        {Module, File, Stripped}
    end || Module <- Modules].

%% @doc With which the last of these modules is started there.
-spec guest(Watcher :: pid(), [module()]) -> guest().
guest(Watcher, Modules) ->
    Purges = [{lists, any, [fun code:soft_purge/1, lists:duplicate(?PURGES, Module)]} || Module <- Modules],
    {Ms, Functions, Args} = lists:unzip3(Purges ++ [{code, delete, [Module]} || Module <- Modules] ++ Purges),
    #{watcher => Watcher, leaves => [Ms, Functions, Args]}.

%% @doc Puts them into a node and has the function `start' of the last one called with a {@link guest()}, all in one call, by functions
%% that every node has loaded. Code that is there already and the same takes the place of itself under whoever runs it.
-spec put(node(), code(), Last :: module(), Watcher :: pid(), timeout()) -> ok | {error, noconnection | timeout | {not_loaded, term()}}.
put(Node, Code, Last, Watcher, Ms) ->
    Guest = guest(Watcher, [Module || {Module, _, _} <- Code]),
    Calls = [[code || _ <- Code] ++ [Last], [load_binary || _ <- Code] ++ [start], [tuple_to_list(Is) || Is <- Code] ++ [[Guest]]],
    try erpc:call(Node, lists, zipwith3, [fun erlang:apply/3 | Calls], Ms) of
        Done ->
            case [Reason || {error, Reason} <- Done] of
                [] -> ok;
                [Reason | _] -> {error, {not_loaded, Reason}}
            end
    catch
        error:{erpc, Reason} when Reason =:= noconnection; Reason =:= timeout -> {error, Reason};
        %% The one before it was being taken away meanwhile.
        error:{exception, undef, [{Last, start, _, _} | _]} -> ok;
        error:{exception, Reason, _} -> {error, {not_loaded, Reason}}
    end.

%% @doc Asks the process of that name: `{Name, From, Request}' goes there, and `{From, Answer}' is to come to the alias From. So
%% what comes too late comes nowhere.
-spec ask(node(), Name :: atom(), Request :: term(), timeout()) -> {ok, Answer :: term()} | noconnection | timeout | gone.
ask(Node, Name, Request, Ms) ->
    Ref = monitor(process, {Name, Node}, [{alias, reply_demonitor}]),
    {Name, Node} ! {Name, Ref, Request},
    receive
        {Ref, Answer} -> {ok, Answer};
        {'DOWN', Ref, process, _, noconnection} -> noconnection;
        {'DOWN', Ref, process, _, _} -> gone
    after Ms ->
        true = demonitor(Ref, [flush]),
        receive {Ref, Answer} -> {ok, Answer} after 0 -> timeout end
    end.
