%% SPDX-License-Identifier: Apache-2.0
%% @doc A running cluster, seen from outside of it: one that `atoll up' holds on this machine,
%% or any other, by some of its nodes.
%%
%% Promised: nothing is loaded into the nodes and nothing is started there; they are asked by
%% functions of OTP, and those that run the application `atoll' by its public functions too. This VM
%% is a hidden node (see {@link atoll_view_join}), so no two nodes come to know each other by it.
%% Nodes that are silent delay an answer by five seconds, and by eight the first time, when they are
%% connected with; however many they are.
%%
%% Which nodes there are is asked of those that are known, again and again, until nobody knows
%% another one: who is connected with nobody of them is not found.
%%
%% Not promised: that nothing is seen of it. While it is open the nodes have a hidden connection
%% more, and the first that a node ever has loads modules of OTP's distribution there.
-module(atoll_view).

-export([open/1, close/1, way/1, name/1, nodes/1, up/1, running/1, without/1, absent/1, let_in/2]).
-export([ask/4, ask/5, ask_all/4, status/1, links/1, groups/1, names/2, place/4, attributes/2, round_trips/2]).

-compile({no_auto_import, [nodes/1]}).

-export_type([target/0, view/0, state/0, status/0, node_status/0, groups/0, found/0]).

-type target() ::
    {held, Name :: string()}
    | {joined, Name :: string(), atoll_view_join:way()}.

%% `silent' is one that others are connected with and that does not answer here; the others
%% are what the holder of the cluster says.
-type state() :: up | down | paused | silent.

-opaque view() :: #{
    name := string(),
    nodes := [{node(), state()}],
    %% Those that are up and do not run the application atoll.
    without := [node()],
    way := atoll_view_join:way(),
    cookie := atoll_view_join:cookie()
}.

-type status() :: #{name := string(), owner_pid := pos_integer() | undefined, nodes := [node_status()]}.

-type node_status() :: #{
    %% Names of nodes here and in `atoll' are texts: no atom is made of what a holder says.
    node := node() | binary(),
    state := state(),
    connections := non_neg_integer() | undefined,
    %% The bytes that its VM has allocated.
    memory := non_neg_integer() | undefined,
    os_pid := pos_integer() | undefined,
    %% What atoll:status/0 says there, as atoll_cluster_plain makes it; `off' where atoll does
    %% not run, `undefined' where nobody could say.
    atoll := atoll_cluster_plain:plain() | off | undefined
}.

-type groups() :: #{
    %% Sorted by name; two that know nothing of each other may have the same.
    groups := [atoll_topology:group()],
    %% The nodes in no group.
    free := [node()],
    silent := [node()],
    without := [node()]
}.

-type found() :: #{
    choice := atoll_place:choice(),
    %% The one that was chosen, if one was to be and could be.
    node := node() | none,
    %% By which distance they are sorted, if by one.
    how := atoll_distance:how() | none
}.

-define(ASK_MS, 5000).
%% The first question takes a connection: OTP gives that seven seconds.
-define(MEET_MS, 8000).
%% Each of them is connected with.
-define(MAX_NODES, 2000).

%% @doc Finds the nodes of a cluster, and how they are. From then on this VM is a node.
-spec open(target()) -> {ok, view()} | {error, unicode:chardata()}.
open({held, Name}) ->
    case atoll_cluster:ask(Name, status) of
        {ok, #{nodes := Infos}} ->
            Nodes = [{binary_to_atom(Node), State} || #{node := Node, state := State} <- Infos],
            Names = [Node || {Node, _} <- Nodes],
            Way = #{nodes => Names},
            case atoll_view_join:start(Way) of
                {ok, Cookie} ->
                    ok = atoll_view_join:let_in(Names, Cookie),
                    {ok, #{name => Name, nodes => Nodes, without => [], way => Way, cookie => Cookie}};
                {error, _} = Error ->
                    Error
            end;
        {error, {not_running, Name}} ->
            {error, atoll_view_context:not_running(Name)};
        {error, Reason} ->
            {error, atoll_cluster:format_error(Reason)}
    end;
open({joined, Name, #{nodes := Entries} = Way}) ->
    case atoll_view_join:start(Way) of
        {ok, Cookie} ->
            case found(Entries, Cookie, #{}) of
                Found when map_size(Found) > ?MAX_NODES ->
                    {error, io_lib:format("The cluster ~ts has more than ~b nodes.", [Name, ?MAX_NODES])};
                Found ->
                    joined(Name, Found, Entries, Way, Cookie)
            end;
        {error, _} = Error ->
            Error
    end.

joined(Name, Found, [First | _], Way, Cookie) ->
    case [Node || {Node, {up, _}} <- maps:to_list(Found)] of
        [] ->
            {error, atoll_view_join:why_not(First, Way)};
        [_ | _] ->
            {ok, #{
                name => Name,
                nodes => [{Node, case Is of {up, _} -> up; silent -> silent end} || {Node, Is} <- lists:sort(maps:to_list(Found))],
                without => lists:sort([Node || {Node, {up, undefined}} <- maps:to_list(Found)]),
                way => Way,
                cookie => Cookie
            }}
    end.

%% One question for each node, the new ones at once.
found(New, Cookie, Found) when New =/= [], map_size(Found) =< ?MAX_NODES ->
    ok = atoll_view_join:let_in(New, Cookie),
    Answers = asked(New, several([{erlang, nodes, []}, {erlang, whereis, [atoll_sup]}]), ?MEET_MS),
    Known = maps:merge(Found, maps:from_list([{Node, is(Answer)} || {Node, Answer} <- Answers])),
    Told = lists:usort(lists:append([Nodes || {_, {ok, [Nodes, _]}} <- Answers])),
    found([Node || Node <- Told, not is_map_key(Node, Known), Node =/= node()], Cookie, Known);
found(_New, _Cookie, Found) ->
    Found.

is({ok, [_, Atoll]}) -> {up, Atoll};
is(_) -> silent.

%% Several functions in one call, by what every node has loaded.
several(Calls) ->
    {Ms, Fs, As} = lists:unzip3(Calls),
    {lists, zipwith3, [fun erlang:apply/3, Ms, Fs, As]}.

%% @doc Gives up the connections with its nodes; those of others are kept.
-spec close(view()) -> ok.
close(#{nodes := Nodes}) -> lists:foreach(fun({Node, _}) -> _ = erlang:disconnect_node(Node) end, Nodes).

%% @doc How another VM comes to talk with its nodes.
-spec way(view()) -> atoll_view_join:way().
way(#{way := Way}) -> Way.

%% @doc What the cluster is called.
-spec name(view()) -> string().
name(#{name := Name}) -> Name.

%% @doc All nodes that are known of, with how they are.
-spec nodes(view()) -> [{node(), state()}].
nodes(#{nodes := Nodes}) -> Nodes.

%% @doc Those that were up when it was opened.
-spec up(view()) -> [node()].
up(#{nodes := Nodes}) -> [Node || {Node, up} <- Nodes].

%% @doc Has other nodes of the cluster, which have come later, talked to as those that were found.
-spec let_in([node()], view()) -> ok.
let_in(Nodes, #{cookie := Cookie}) -> atoll_view_join:let_in(Nodes, Cookie).

%% @doc Those of them that run the application `atoll'.
-spec running(view()) -> [node()].
running(#{without := Without} = View) -> up(View) -- Without.

%% @doc Those of them that do not.
-spec without(view()) -> [node()].
without(#{without := Without}) -> Without.

%% @doc What cannot be done where no node runs `atoll'.
-spec absent(view()) -> none | unicode:chardata().
absent(#{name := Name} = View) ->
    case {up(View), running(View)} of
        {[_ | _], []} ->
            ["Atoll does not run on the nodes of ", Name,
             ": \"atoll status\", \"links\", \"top\", \"metrics\", \"alarms\", \"watch\", \"chaos\" and \"debench\" work there; groups, names, routes, placing and distances take the application atoll."];
        _ ->
            none
    end.

%% @doc Calls a function on a node, within five seconds.
-spec ask(node(), module(), Function :: atom(), Args :: [term()]) -> {ok, Answer :: term()} | {error, unicode:chardata()}.
ask(Node, M, F, Args) ->
    ask(Node, M, F, Args, ?ASK_MS).

%% @doc Calls a function on a node, within a time.
-spec ask(node(), module(), Function :: atom(), Args :: [term()], timeout()) ->
    {ok, Answer :: term()} | {error, unicode:chardata()}.
ask(Node, M, F, Args, Ms) ->
    [{_, Answer}] = asked([Node], {M, F, Args}, Ms),
    case Answer of
        {ok, _} ->
            Answer;
        {error, {erpc, _}} ->
            {error, [atom_to_list(Node), " does not answer"]};
        {error, {exception, undef, [{M, F, _, _} | _]}} ->
            {error, io_lib:format("~ts has no ~ts:~ts/~b: it runs another version of atoll, or none", [Node, M, F, length(Args)])};
        Failed ->
            {error, io_lib:format("~ts could not answer: ~0tP", [Node, Failed, 20])}
    end.

%% @doc What nodes answer, all asked at once, and which of them do not.
-spec ask_all([node()], module(), Function :: atom(), Args :: [term()]) -> {[{node(), Answer :: term()}], Silent :: [node()]}.
ask_all(Nodes, M, F, Args) ->
    Told = [{Node, Answer} || {Node, {ok, Answer}} <- asked(Nodes, {M, F, Args})],
    {Told, lists:sort(Nodes -- [Node || {Node, _} <- Told])}.

asked(Nodes, MFA) ->
    asked(Nodes, MFA, ?ASK_MS).

asked(Nodes, {M, F, Args}, Ms) ->
    lists:zip(Nodes, [answer(Answer) || Answer <- erpc:multicall(Nodes, M, F, Args, Ms)]).

answer({ok, _} = Answer) -> Answer;
answer({error, Reason}) -> {error, Reason};
answer({Class, Reason}) -> {error, {Class, Reason}}.

not_up(#{nodes := Nodes}) -> lists:sort([Node || {Node, State} <- Nodes, State =/= up]).

%% @doc The nodes, what their VMs hold, and what atoll says there. A cluster that is held is asked
%% over its own connections with its nodes, whatever becomes of Erlang's.
-spec status(target()) -> {ok, status()} | {error, unicode:chardata()}.
status({held, Name}) ->
    case atoll_cluster:ask(Name, status) of
        {ok, #{nodes := Nodes} = Status} ->
            {ok, (maps:with([name, owner_pid], Status))#{
                nodes => [
                    (maps:with([node, state, connections, memory, os_pid], Info))#{atoll => atoll_plain(Probe)}
                 || #{probe := Probe} = Info <- Nodes
                ]
            }};
        {error, {not_running, Name}} ->
            {error, atoll_view_context:not_running(Name)};
        {error, Reason} ->
            {error, atoll_cluster:format_error(Reason)}
    end;
status(Target) ->
    case open(Target) of
        {ok, #{name := Name, nodes := Nodes} = View} ->
            {Vms, _} = ask_all(up(View), lists, zipwith3, element(3, several([
                {erlang, nodes, [connected]}, {erlang, memory, [total]}, {os, getpid, []}
            ]))),
            {Atolls, _} = ask_all(running(View), atoll, status, []),
            {ok, #{name => Name, owner_pid => undefined, nodes => [
                node_status(Node, State, lists:keyfind(Node, 1, Vms), lists:keyfind(Node, 1, Atolls), View)
             || {Node, State} <- Nodes
            ]}};
        {error, _} = Error ->
            Error
    end.

atoll_plain(<<"not_running">>) -> off;
atoll_plain(Said) -> Said.

node_status(Node, State, false, _, _View) ->
    #{node => Node, state => State, connections => undefined, memory => undefined, os_pid => undefined, atoll => undefined};
node_status(Node, State, {_, [Connected, Memory, Pid]}, Said, View) ->
    #{
        node => Node,
        state => State,
        connections => length([Peer || Peer <- Connected, not is_guest(Peer)]),
        memory => Memory,
        os_pid => list_to_integer(Pid),
        atoll =>
            case {Said, lists:member(Node, without(View))} of
                {{_, Status}, _} -> atoll_plain(atoll_cluster_plain:term(Status));
                {false, true} -> off;
                {false, false} -> undefined
            end
    }.

%% This program, and others that look meanwhile.
is_guest(Node) -> Node =:= node() orelse atoll_view_join:is_view(Node).

%% @doc The connections, less those with programs that look, what each node relays, and who is silent.
-spec links(view()) -> #{links := [atoll_view_links:link()], relays := [{node(), #{atom() => term()}}], silent := [node()]}.
links(View) ->
    {Own, Silent} = ask_all(running(View), atoll, links, []),
    {Stock, Mute} = atoll_view_links:stock(without(View)),
    {Relays, _} = ask_all(running(View), atoll_dist, relay, []),
    #{
        links => atoll_view_links:paired(
            [{Node, [Link || #{node := Peer} = Link <- Links, not is_guest(Peer)]} || {Node, Links} <- Own ++ Stock]
        ),
        relays => Relays,
        silent => lists:usort(Silent ++ Mute ++ not_up(View))
    }.

%% @doc The groups of the cluster, as its nodes tell.
-spec groups(view()) -> groups().
groups(View) ->
    {Told, Silent} = ask_all(running(View), s_group, own_s_groups, []),
    #{
        groups => lists:usort([Group || {_, Groups} <- Told, Group <- Groups]),
        free => lists:sort([Node || {Node, []} <- Told]),
        silent => lists:usort(Silent ++ not_up(View)),
        without => without(View)
    }.

%% @doc The names in groups, or in one alone, as each node knows them, and who is silent. Nodes in
%% no group tell of the names of the free nodes, whose group is `undefined'.
-spec names(all | {group, s_group:name()}, view()) -> {[{node(), atoll_view_names:told()}], Silent :: [node()]}.
names(Which, View) ->
    {M, F, Args} = several([{erlang, whereis, [atoll_name]}, {s_group, own_s_groups, []}, {s_group, own_nodes, [undefined]}]),
    {Known, _} = ask_all(running(View), M, F, Args),
    %% Where that process does not run there are no names, rather than none.
    In = [{Node, chosen(Which, groups_of(Own, Free))} || {Node, [Pid, Own, Free]} <- Known, is_pid(Pid)],
    %% A question for each node: what it is asked for are its own groups.
    Requests = [
        {Node, Groups, erpc:send_request(Node, lists, map, [fun atoll_name:entries/1, [Name || {Name, _} <- Groups]])}
     || {Node, Groups} <- In
    ],
    Deadline = erlang:monotonic_time(millisecond) + ?ASK_MS,
    Told = [
        {Node, [{Group, Nodes, Names} || {{Group, Nodes}, Names} <- lists:zip(Groups, Entries)]}
     || {Node, Groups, Request} <- Requests, {ok, Entries} <- [response(Request, Deadline)]
    ],
    {Told, lists:sort([Node || {Node, _} <- nodes(View), not lists:keymember(Node, 1, Told), not lists:member(Node, without(View))])}.

groups_of([], Free) -> [{undefined, Free}];
groups_of(Own, _Free) -> Own.

chosen(all, Groups) -> Groups;
chosen({group, Name}, Groups) -> [Group || {Its, _} = Group <- Groups, Its =:= Name].

response(Request, Deadline) ->
    try
        {ok, erpc:receive_response(Request, max(0, Deadline - erlang:monotonic_time(millisecond)))}
    catch
        _:_ -> none
    end.

%% @doc The nodes that fit, as a node of the cluster finds them, and one of them if one is to
%% be chosen. What was asked may be wrong: that is a sentence, and an error of atoll_place.
-spec place(node(), One :: boolean(), atoll_place:params(), timeout()) ->
    {ok, found()} | {error, {place, atoll_place:error()} | unicode:chardata()}.
place(From, One, Params, Ms) ->
    case ask(From, atoll_place, case One of true -> choose; false -> nodes end, [Params], Ms) of
        {ok, {ok, Node, Choice}} -> how(From, Params, #{node => Node, choice => Choice});
        {ok, {ok, Choice}} -> how(From, Params, #{node => none, choice => Choice});
        {ok, {none, Choice}} -> how(From, Params, #{node => none, choice => Choice});
        {ok, {error, Error}} -> {error, {place, Error}};
        {error, _} = Error -> Error
    end.

how(_From, #{how := How}, Found) ->
    {ok, Found#{how => How}};
how(From, #{near := _}, Found) ->
    case ask(From, atoll_distance, declared, []) of
        {ok, {ok, _}} -> {ok, Found#{how => declared}};
        {ok, {error, _}} -> {ok, Found#{how => estimated}};
        {error, _} = Error -> Error
    end;
how(_From, #{}, Found) ->
    {ok, Found#{how => none}}.

%% @doc The names of all attributes that some of these nodes have, whether they have a value or
%% not, and whether any has answered.
-spec attributes([node()], view()) -> none | {ok, [atoll_predicate:name()]}.
attributes(Nodes, View) ->
    case ask_all([Node || Node <- Nodes, lists:member(Node, running(View))], atoll_attr, info, []) of
        {[], _} -> none;
        {Told, _} -> {ok, lists:usort([Name || {_, #{attributes := Entries}} <- Told, {Name, _, _} <- Entries])}
    end.

%% @doc The round trips between all nodes that run `atoll', see {@link atoll_round_trips}; those that
%% are not up are silent.
-spec round_trips(atoll_round_trips:options(), view()) -> atoll_round_trips:measured().
round_trips(Options, View) ->
    #{silent := Silent} = Measured = atoll_round_trips:measure(running(View), Options),
    Measured#{silent := lists:usort(Silent ++ not_up(View))}.
