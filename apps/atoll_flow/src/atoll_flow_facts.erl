%% SPDX-License-Identifier: Apache-2.0
%% @doc What the probe reads of its node: what connections have carried, groups, run queues and mailboxes, who a process is. It
%% takes functions of OTP that every node has loaded, and those of others only where they are there.
-module(atoll_flow_facts).

-export([connections/0, is_view/1, groups/0, load/0, name/1, module/1]).

-define(MOST_NAMES, 1000).
-define(LONGEST, 5).
%% As atoll_view_join calls programs that look.
-define(VIEWS, "atoll_view_").

%% @doc The connections, but those with programs that look, and what has left over each. The VM counts on its own sockets; of
%% others the carrier knows.
-spec connections() -> [{node(), Packets :: non_neg_integer() | unknown, Bytes :: non_neg_integer() | unknown}].
connections() ->
    Known = [{Node, Controller, carried(Controller)} || {Node, Controller} <- erlang:system_info(dist_ctrl), not is_view(Node)],
    Others = case lists:keymember(unknown, 3, Known) andalso erlang:function_exported(atoll, links, 0) of
        true -> maps:from_list([{Node, Link} || #{node := Node} = Link <- called(atoll, links, [])]);
        false -> #{}
    end,
    [begin
        {Packets, Bytes} = case {Is, Others} of
            {unknown, #{Node := #{kind := Kind, bytes_out := Out}}} -> {packets(Kind, Node, Controller), Out};
            {unknown, #{}} -> {unknown, unknown};
            {_, _} -> Is
        end,
        {Node, Packets, Bytes}
    end || {Node, Controller, Is} <- Known].

carried(Port) when is_port(Port) ->
    case inet:getstat(Port, [send_cnt, send_oct]) of
        {ok, Stat} -> {proplists:get_value(send_cnt, Stat), proplists:get_value(send_oct, Stat)};
        {error, _} -> unknown
    end;
carried(_) ->
    unknown.

packets({lanes, _}, Node, _) ->
    case called(atoll_dist, lanes, [Node]) of
        {ok, #{lanes := Lanes}} -> lists:sum([Packets || #{packets := Packets} <- Lanes]);
        _ -> unknown
    end;
packets(relay, _, Controller) ->
    case called(atoll_dist, carried, [Controller]) of
        {ok, {_In, Out}} -> Out;
        _ -> unknown
    end;
packets(_, _, _) ->
    unknown.

called(M, F, Args) -> apply(M, F, Args).

%% @doc Whether a node is a program that looks.
-spec is_view(node()) -> boolean().
is_view(Node) -> lists:prefix(?VIEWS, atom_to_list(Node)).

%% @doc The groups of this node, of whatever implementation that is loaded.
-spec groups() -> [{Group :: term(), [node()]}] | none.
groups() ->
    try [{Group, Nodes} || {Group, Nodes} <- called(s_group, own_s_groups, [])]
    catch _:_ -> none
    end.

%% @doc Run queues, the longest mailboxes of registered processes, and how the processors are built.
-spec load() -> #{queues := [non_neg_integer()], mailboxes := [{Name :: atom(), non_neg_integer()}], topology := term()}.
load() ->
    Registered = lists:sublist(registered(), ?MOST_NAMES),
    Lengths = [{Length, Name} || Name <- Registered, {message_queue_len, Length} <- [length_of(whereis(Name))]],
    #{
        %% That of dirty schedulers stands last, and is no scheduler's.
        queues => lists:sublist(erlang:statistics(run_queue_lengths), erlang:system_info(schedulers_online)),
        mailboxes => [{Name, Length} || {Length, Name} <- lists:sublist(lists:reverse(lists:sort(Lengths)), ?LONGEST)],
        topology => erlang:system_info(cpu_topology)
    }.

length_of(Pid) when is_pid(Pid) -> erlang:process_info(Pid, message_queue_len);
length_of(_) -> undefined.

%% @doc The registered name of who sends.
-spec name(pid() | port()) -> atom().
name(Pid) ->
    case is_pid(Pid) andalso erlang:process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> unnamed
    end.

%% @doc The module that a process was started in: as proc_lib has it, of processes that it has started.
-spec module(pid() | port()) -> module().
module(Pid) ->
    case is_pid(Pid) andalso erlang:process_info(Pid, [initial_call, dictionary]) of
        [{initial_call, {Module, _, _}}, {dictionary, Dictionary}] ->
            case lists:keyfind('$initial_call', 1, Dictionary) of
                {_, {Its, _, _}} -> Its;
                false -> Module
            end;
        _ -> gone
    end.
