%% SPDX-License-Identifier: Apache-2.0
%% Runs on the nodes under test: many callers at once of whatever changes names and
%% groups, drawn from a seed. What they are answered is counted, and what is not in the
%% documentation is kept.
-module(atoll_name_traffic).

-export([run/5]).

-define(DEADLINE_MS, 15000).

%% @doc So many calls by so many callers, about names of processes on the other node, in
%% a group that stands and in such as come and go. The other node, and a third, are in
%% those.
run(Seed, Calls, Callers, Other, Third) ->
    Works = [
        spawn_monitor(fun() ->
            %% Some of each caller's own.
            Pids = erpc:call(Other, atoll_name_witness, holders, [3], ?DEADLINE_MS),
            exit({told, calls(Calls div Callers, {Pids, Other, Third}, rand:seed_s(exsss, {Seed, N, erlang:phash2(node())}), #{})})
        end)
     || N <- lists:seq(1, Callers)
    ],
    lists:foldl(fun add_all/2, #{}, [receive {'DOWN', Ref, process, Pid, {told, Told}} -> Told end || {Pid, Ref} <- Works]).

calls(0, _World, _Random, Told) ->
    Told;
calls(Left, World, Random0, Told) ->
    {Call, Random} = draw(World, Random0),
    {F, Args} = Call,
    Started = erlang:monotonic_time(millisecond),
    Answer = apply(s_group, F, Args),
    Ms = erlang:monotonic_time(millisecond) - Started,
    New =
        case is_documented(Call, Answer) of
            true -> #{kind(F, Answer) => 1, longest(F) => Ms};
            false -> #{wrong => [{Call, Answer}], longest(F) => Ms}
        end,
    calls(Left - 1, World, Random, add_all(New, Told)).

longest(F) when F =:= register_name; F =:= re_register_name; F =:= unregister_name -> longest_of_names;
longest(_) -> longest_of_groups.

kind(F, {ok, _, _}) -> {F, ok};
kind(F, {_, {Why, _}}) -> {F, Why};
kind(F, {_, Why}) -> {F, Why};
kind(F, Answer) -> {F, Answer}.

add_all(New, Told) -> maps:fold(fun add/3, Told, New).

add(Key, N, Told) when Key =:= longest_of_names; Key =:= longest_of_groups ->
    maps:update_with(Key, fun(M) -> max(M, N) end, N, Told);
add(wrong, L, Told) ->
    maps:update_with(wrong, fun(M) -> L ++ M end, L, Told);
add(Key, N, Told) ->
    maps:update_with(Key, fun(M) -> M + N end, N, Told).

draw({Pids, Other, Third}, Random0) ->
    {F, Random1} = pick([register_name, register_name, re_register_name, unregister_name, new_s_group, add_nodes, remove_nodes, delete_s_group], Random0),
    {Group, Random2} = pick([a, b, c], Random1),
    {Nodes, Random3} = pick([[Other], [Third], [Other, Third]], Random2),
    {Pid, Random4} = pick(Pids, Random3),
    {Name, Random5} = rand:uniform_s(6, Random4),
    {Of, Random} = pick([stands, stands, Group], Random5),
    Args =
        case F of
            new_s_group -> [Group, [node() | Nodes]];
            add_nodes -> [Group, Nodes];
            remove_nodes -> [Group, Nodes];
            delete_s_group -> [Group];
            unregister_name -> [Of, Name];
            _ -> [Of, Name, Pid]
        end,
    {{F, Args}, Random}.

pick(List, Random0) ->
    {N, Random} = rand:uniform_s(length(List), Random0),
    {lists:nth(N, List), Random}.

%% What may come where nobody is down, silent or cut off.
is_documented({new_s_group, [G, Nodes]}, {ok, G, Members}) -> Members =:= lists:sort(Members) andalso Members -- Nodes =:= [] andalso lists:member(node(), Members);
is_documented({new_s_group, _}, {error, Why}) -> Why =:= s_group_name_is_in_use;
is_documented({add_nodes, [G, Nodes]}, {ok, G, Added}) -> Added -- Nodes =:= [];
is_documented({add_nodes, _}, {error, Why}) -> Why =:= node_does_not_belong_to_the_s_group;
is_documented({remove_nodes, _}, ok) -> true;
is_documented({remove_nodes, [G, _]}, {error, Why}) -> Why =:= {"node_does_not_belong_to_s_group", G};
is_documented({delete_s_group, _}, ok) -> true;
is_documented({delete_s_group, [G]}, {error, Why}) -> Why =:= {"remote_s_group", G};
is_documented({register_name, _}, yes) -> true;
is_documented({re_register_name, _}, yes) -> true;
is_documented({unregister_name, _}, ok) -> true;
is_documented({register_name, [stands | _]}, {no, Why}) -> Why =:= name_or_pid_already_registered;
is_documented({re_register_name, [stands | _]}, {no, Why}) -> Why =:= pid_is_already_registered;
is_documented({unregister_name, [stands | _]}, _) -> false;
is_documented({register_name, _}, {no, Why}) -> lists:member(Why, [cannot_register_in_remote_group, pid_is_not_on_a_member, name_or_pid_already_registered]);
is_documented({re_register_name, _}, {no, Why}) -> lists:member(Why, [cannot_re_register_in_remote_group, pid_is_not_on_a_member, pid_is_already_registered]);
is_documented({unregister_name, _}, {no, Why}) -> lists:member(Why, [cannot_unregister_from_remote_group, pid_is_not_on_a_member]);
is_documented(_, _) -> false.
