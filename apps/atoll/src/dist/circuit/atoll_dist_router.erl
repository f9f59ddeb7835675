%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Which way a connection to a node goes: over a link of its own, or as a circuit
%% over other nodes. A room above knows the ways; here it is asked.
%%
%% That room registers a process. It is asked by processes that may wait, and never for
%% longer than a deadline: one that is gone, or silent, or answers what is no way reads as
%% `no_answer'.
-module(atoll_dist_router).

-export([set/1, tell/1, way/2, ask/3, asker/2, asker/3, around/2]).
-export([question/3]).

-export_type([way/0, answer/0]).

-type way() ::
    link
    %% All nodes, this one first; at least three.
    | {circuit, [node(), ...]}
    | {refused, unicode:chardata()}.

-type answer() :: {ok, [node(), ...]} | {error, {unknown | no_route | refused | no_answer, unicode:chardata()}}.

-define(DEADLINE_MS, 2000).

%% A path has no more connections, whatever relays allow.
-define(MAX_HOPS, 16).

%% @doc Sets the name of the process to be asked.
-spec set(atom()) -> ok.
set(Name) ->
    %% Hardly ever changed; and a distribution that is started again has the same.
    persistent_term:put(?MODULE, Name).

%% @doc Sends it a message, if it is there.
-spec tell(term()) -> ok.
tell(Message) ->
    case whereis(persistent_term:get(?MODULE, none)) of
        undefined ->
            ok;
        Pid ->
            Pid ! Message,
            ok
    end.

%% @doc How to connect with a node.
-spec way(node(), atoll_dist_config:config()) -> way().
way(_Node, #{relay := off}) ->
    link;
way(Node, #{peers := Peers, unrouted := Unrouted}) ->
    IsLink = is_map_key(atom_to_binary(Node), Peers) orelse atoll_dist_circuits:is_own(Node),
    case persistent_term:get(?MODULE, none) of
        Name when IsLink; Name =:= none -> link;
        %% Without a salt each time the same, as long as nothing changes.
        Name -> way_of(answer(Name, Node, #{avoid => [], salt => none}, ?DEADLINE_MS), Unrouted)
    end.

way_of({ok, [_, _]}, _Unrouted) -> link;
way_of({ok, Path}, _Unrouted) -> {circuit, Path};
way_of({error, {refused, Said}}, _Unrouted) -> {refused, Said};
way_of({error, {_, _}}, direct) -> link;
way_of({error, {_, Said}}, refuse) -> {refused, Said}.

%% @doc Asks for another way after some were lost.
-spec ask(node(), Avoid :: [node()], Salt :: term()) -> answer().
ask(Node, Avoid, Salt) ->
    (asker(Node, Salt))(Avoid).

%% @doc A function that asks for ways around these nodes. All that it is asked has one deadline
%% together, so that who tries several may not wait for each.
-spec asker(node(), Salt :: term()) -> fun((Avoid :: [node()]) -> answer()).
asker(Node, Salt) ->
    asker(Node, Salt, ?DEADLINE_MS).

%% @doc The same with a deadline so many milliseconds from now.
-spec asker(node(), Salt :: term(), Ms :: pos_integer()) -> fun((Avoid :: [node()]) -> answer()).
asker(Node, Salt, Ms) ->
    Until = erlang:monotonic_time(millisecond) + Ms,
    fun(Avoid) ->
        case persistent_term:get(?MODULE, none) of
            none -> nothing("nobody on this node knows ways");
            Name -> answer(Name, Node, #{avoid => Avoid, salt => Salt}, max(0, Until - erlang:monotonic_time(millisecond)))
        end
    end.

answer(Name, Node, Options, Ms) ->
    %% The answer is awaited by a circuit that stands still, perhaps for want of processor time.
    {Pid, Ref} = spawn_opt(?MODULE, question, [Name, Node, Options], [monitor, {priority, high}]),
    receive
        {'DOWN', Ref, process, Pid, {answer, Answer}} -> checked(Answer, Node);
        {'DOWN', Ref, process, Pid, _} -> nothing("who knows the ways has ended")
    after Ms ->
        exit(Pid, kill),
        true = demonitor(Ref, [flush]),
        nothing("who knows the ways does not answer")
    end.

%% @private
-spec question(atom(), node(), map()) -> no_return().
question(Name, Node, Options) ->
    exit({answer, atoll_interpreter:call(Name, {route, Node, Options})}).

checked({ok, [From, _ | _] = Path} = Answer, Node) when From =:= node() ->
    case length(Path) =< ?MAX_HOPS + 1 andalso lists:all(fun is_atom/1, Path) andalso lists:last(Path) =:= Node of
        true -> Answer;
        false -> nothing("what was found is no way")
    end;
checked({error, {Why, _Said}} = Answer, _Node) when Why =:= unknown; Why =:= no_route; Why =:= refused ->
    Answer;
checked(_Answer, _Node) ->
    nothing("what was found is no way").

nothing(Said) -> {error, {no_answer, Said}}.

%% @doc The first way around those that may be to blame for these failures, by a function
%% that finds one around the nodes of these names. Of a path that fell silent it is not known
%% which of its nodes did: at first all are avoided; where that leaves no way, all but the
%% nearest one, and then that one alone.
-spec around(fun(([atoll_dist_circuit_frame:name()]) -> {ok, Way} | {error, Why}), atoll_dist_circuit:avoid()) ->
    {ok, Way} | {error, Why}.
around(Find, Failed) ->
    Blamed = [blamed(lists:sublist(tl(Path), length(Path) - 2), Why) || {Path, Why} <- Failed],
    [All | Fewer] = lists:uniq([lists:usort(lists:append(Some)) || Some <- [Blamed, farther(Blamed), nearest(Blamed)]]),
    around(Find, Fewer, Find(All)).

around(Find, [Names | Fewer], {error, _} = None) ->
    case Find(Names) of
        {ok, _} = Found -> Found;
        %% What stands in the way of all says more.
        {error, _} -> around(Find, Fewer, None)
    end;
around(_Find, _Fewer, Answer) ->
    Answer.

farther(Blamed) ->
    [case Names of [_, _ | _] -> tl(Names); _ -> Names end || Names <- Blamed].

nearest(Blamed) ->
    [lists:sublist(Names, 1) || Names <- Blamed].

%% Of the nodes between the ends, the nearest one first.
blamed(Between, {Kind, {At, Why, About}}) when Kind =:= refused; Kind =:= path_lost ->
    %% The one with which there is no connection, if it is not the end.
    case (Why =:= no_link orelse Why =:= link_down) andalso lists:member(About, Between) of
        true -> [About];
        false -> some(At, Between)
    end;
blamed([First | _], {down, _Leg}) ->
    [First];
blamed(Between, _Silent) ->
    Between.

%% It may have been the end that said so, or somebody who lies.
some(At, Between) ->
    case lists:member(At, Between) of
        true -> [At];
        false -> Between
    end.
