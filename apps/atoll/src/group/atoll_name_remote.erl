%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Names of groups that this node is not in: a member is asked.
%%
%% Who is in the group the directory knows ({@link atoll_route:members/2}), which tells the nearest
%% first; where there is no directory, or it knows nobody, the configuration does. Members
%% that this node is connected with come before all others. The next one is asked when one has
%% failed, or has said nothing for 300 ms, and the first answer is taken; so who stands still
%% costs that much and no more. After 3 seconds it is over, however many were asked
%% ({@link deadline_ms/0}).
%%
%% A member is asked over plain distribution: where this node uses the carrier and has no connection with
%% it, that is a circuit over gateways; on stock distribution a connection is made on demand,
%% which the link room closes later.
%%
%% Promised: the answer is what one member's table had while the question was under way. The caller
%% is back in time whatever becomes of the members, and its mailbox is left alone.
%%
%% Not promised: which of two groups is meant that have one name.
-module(atoll_name_remote).

-export([find/2, names/1, call/3, deadline_ms/0]).
-export([ask_for/2]).

-export_type([error/0]).

-type error() ::
    %% Neither the directory nor the configuration names another node that is in it.
    no_information_about_remote_group
    %% There are some, and none has answered.
    | no_answer
    %% One has, and nobody has that name.
    | no_such_name
    %% The directory of this node is being started anew, and the configuration does not
    %% name anybody.
    | restarting.

-define(DEADLINE_MS, 3000).
-define(NEXT_MS, 300).

%% @doc The process that has this name in the group.
-spec find(atom(), Name :: term()) -> {ok, pid()} | {error, error()}.
find(Group, Name) ->
    case ask(Group, {name, Name}) of
        {ok, undefined} -> {error, no_such_name};
        Answer -> Answer
    end.

%% @doc All names of the group, sorted.
-spec names(atom()) -> {ok, [Name :: term()]} | {error, error()}.
names(Group) ->
    ask(Group, names).

%% @doc How long a question may take, in milliseconds.
-spec deadline_ms() -> pos_integer().
deadline_ms() -> ?DEADLINE_MS.

%% @doc What a function of {@link atoll_name} answers on that node; `none' if it does not
%% answer in time, or does not have this library.
-spec call(node(), Function :: atom(), Args :: [term()]) -> {ok, term()} | none.
call(Node, Function, Args) ->
    case first_of([Node], fun(_) -> call_directly(Node, Function, Args) end) of
        {error, no_answer} -> none;
        Answer -> Answer
    end.

ask(Group, Question) ->
    case members(Group) of
        {ok, Members} -> first_of(Members, fun(Member) -> ask(Member, Group, Question) end);
        {error, _} = Error -> Error
    end.

%% Who is in the group no more says so.
ask(Member, Group, Question) ->
    case call_directly(Member, told, [Group, Question]) of
        {ok, Told} -> Told;
        none -> none
    end.

call_directly(Node, Function, Args) ->
    try
        {ok, erpc:call(Node, atoll_name, Function, Args, ?DEADLINE_MS)}
    catch
        error:{erpc, _} -> none;
        error:{exception, undef, _} -> none
    end.

members(Group) ->
    Configured = proplists:get_value(Group, atoll_group:configured(), []) -- [node()],
    case {atoll_route:members(Group, make_ref()), Configured} of
        {{ok, [_ | _] = Members}, _} -> {ok, connected_first(Members)};
        {_, [_ | _]} -> {ok, connected_first(Configured)};
        {{error, restarting}, []} -> {error, restarting};
        {_, []} -> {error, no_information_about_remote_group}
    end.

connected_first(Nodes) ->
    Connected = nodes(connected),
    {Near, Far} = lists:partition(fun(Node) -> lists:member(Node, Connected) end, Nodes),
    Near ++ Far.

%% In a process of its own, which ends with all that it has begun: a busy connection suspends
%% who writes to it, and answers that come too late are nobody's.
first_of(Nodes, Ask) ->
    {Asker, Ref} = spawn_monitor(?MODULE, ask_for, [Nodes, Ask]),
    receive
        {'DOWN', Ref, process, Asker, Ended} ->
            {asked, Answer} = Ended,
            Answer
    end.

%% @private
-spec ask_for([node()], fun((node()) -> {ok, term()} | none)) -> no_return().
ask_for(Nodes, Ask) ->
    Timer = erlang:start_timer(?DEADLINE_MS, self(), deadline),
    exit({asked, next(Nodes, 0, {Ask, Timer})}).

next([], 0, _) ->
    {error, no_answer};
next([], Waiting, Asking) ->
    await([], Waiting, infinity, Asking);
next([Node | Nodes], Waiting, {Ask, _} = Asking) ->
    Self = self(),
    _ = spawn_link(fun() -> Self ! {told, Ask(Node)} end),
    await(Nodes, Waiting + 1, ?NEXT_MS, Asking).

await(Nodes, Waiting, Ms, {_, Timer} = Asking) ->
    receive
        {told, {ok, _} = Answer} -> Answer;
        {told, none} -> next(Nodes, Waiting - 1, Asking);
        {timeout, Timer, deadline} -> {error, no_answer}
    after Ms -> next(Nodes, Waiting, Asking)
    end.
