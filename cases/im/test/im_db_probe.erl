%% SPDX-License-Identifier: Apache-2.0
%% What the suite of the databases does on a node.
-module(im_db_probe).

-export([start/1, hold_for/1, release/0, appends/2, open/2]).

%% The databases, without the rest of the application: in a mesh it would connect the nodes.
start(Settings) ->
    {ok, Plan} = im_plan:new(Settings),
    _ = [net_kernel:connect_node(Node) || im_plan:setting(mode, Plan) =:= rd, {_, Nodes} <- im_plan:groups(Plan), Node <- Nodes],
    ok = im_plan:install(Plan),
    Caller = self(),
    Ref = make_ref(),
    _ = spawn(fun() ->
        {ok, _} = case im_plan:role(node(), Plan) of
                      {server, _} -> im_db_sup:start_link();
                      _ -> {ok, none}
                  end,
        Caller ! Ref,
        receive after infinity -> ok end
    end),
    receive Ref -> ok end.

%% A suspended process goes on when the one ends that has suspended it.
hold_for(Name) ->
    Caller = self(),
    _ = spawn(fun() ->
        true = register(?MODULE, self()),
        true = erlang:suspend_process(whereis(Name)),
        Caller ! held,
        receive release -> ok end
    end),
    receive held -> true end.

release() ->
    ?MODULE ! release,
    true.

open(Server, Session) -> im_names:call(Server, chat_db, {open, Session, self(), 1}, 10_000).

%% So many messages, with 64 under way of each of 50 sessions; how long they took, in microseconds.
appends(Server, Count) ->
    Sessions = [{<<"a">>, integer_to_binary(I)} || I <- lists:seq(1001, 1050)],
    [{ok, {ok, _}} = open(Server, Session) || Session <- Sessions],
    {Took, _} = timer:tc(fun() ->
        Owner = {1, self()},
        Pids = [spawn_monitor(fun() -> append(Server, Session, Owner, 1, 0, Count div 50) end) || Session <- Sessions],
        [receive {'DOWN', Ref, process, _, normal} -> ok end || {_, Ref} <- Pids]
    end),
    Took.

append(_, _, _, _, Last, Last) -> ok;
append(Server, Session, Owner, Next, Acked, Last) when Next - Acked =< 64, Next =< Last ->
    ok = im_names:cast(Server, chat_db, {append, Session, Owner, <<"a">>, Next, <<"forty bytes of a text that says not much!">>, none, {Acked, 0}}, {self(), Next}),
    append(Server, Session, Owner, Next + 1, Acked, Last);
append(Server, Session, Owner, Next, Acked, Last) ->
    receive {im_db, Tag, ok} when Tag =:= Acked + 1 -> append(Server, Session, Owner, Next, Tag, Last) end.
