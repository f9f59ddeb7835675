%% SPDX-License-Identifier: Apache-2.0
%% @doc A router, client monitor and session of the messenger in one process that keeps all in memory, for tests of what
%% stands before them. It is `router_1' of this node.
-module(im_made_up_server).

-export([start/0, stop/1, init/0]).

-record(s, {clients = #{}, sessions = #{}, incs = #{}}).

-spec start() -> pid().
start() -> {ok, Pid} = proc_lib:start_link(?MODULE, init, []), Pid.

-spec stop(pid()) -> ok.
stop(Pid) ->
    Ref = monitor(process, Pid),
    unlink(Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, _, _, _} -> ok after 5000 -> error(still_there) end.

-spec init() -> no_return().
init() ->
    true = register(router_1, self()),
    proc_lib:init_ack({ok, self()}),
    loop(#s{}).

loop(S) ->
    receive
        {'DOWN', _, _, C, _} -> loop(gone(C, S));
        Message -> loop(message(Message, S))
    end.

message({im, login, Client, C}, #s{clients = Clients, incs = Incs} = S) ->
    case Clients of
        #{Client := Other} when Other =/= C -> C ! {im, login_error, already_logged_in}, S;
        #{} ->
            _ = monitor(process, C),
            C ! {im, login_success, self(), [Session || {A, B} = Session <- maps:keys(Incs), A =:= Client orelse B =:= Client]},
            S#s{clients = Clients#{Client => C}}
    end;
message({im, logout, Client, C}, #s{clients = Clients} = S) ->
    C ! {im, logged_out},
    S#s{clients = maps:remove(Client, Clients)};
message({im, chat, From, To, C}, #s{clients = Clients, incs = Incs, sessions = Sessions} = S) ->
    Session = {min(From, To), max(From, To)},
    case Incs of
        #{Session := Inc} -> tell(From, C, Inc, S);
        #{} when not is_map_key(To, Clients) -> C ! {im, chat_error, To, receiver_not_found}, S;
        #{} ->
            Inc = erlang:unique_integer([positive, monotonic]),
            Row = #{session => Session, ready => #{}, said => #{From => [], To => []}, done => #{From => 0, To => 0}},
            tell(To, maps:get(To, Clients), Inc, tell(From, C, Inc, S#s{incs = Incs#{Session => Inc}, sessions = Sessions#{Inc => Row}}))
    end;
message({im, open, Session, Client, C}, #s{incs = Incs} = S) ->
    case Incs of
        #{Session := Inc} -> tell(Client, C, Inc, S);
        #{} -> C ! {im, ended, Session, erlang:unique_integer([positive, monotonic]), expired}, S
    end;
message({im, hello, Inc, Client, C, Received}, S) ->
    in(Inc, S, fun(#{ready := Ready, done := Done, said := Said, session := Session} = Row) ->
        Peer = peer(Client, Row),
        _ = [C ! {im, message, Session, Inc, Peer, Seq, Body, Meta} || {Seq, Body, Meta} <- lists:reverse(maps:get(Peer, Said)), Seq > max(Received, maps:get(Peer, Done))],
        _ = [Other ! {im, presence, Session, Client, online} || #{Peer := Other} <- [Ready]],
        Row#{ready := Ready#{Client => C}}
    end);
message({im, say, Inc, Client, Seq, Body, Meta, C}, S) ->
    in(Inc, S, fun(#{said := Said, session := Session, ready := Ready} = Row) ->
        #{Client := Mine} = Said,
        Peer = peer(Client, Row),
        case length(Mine) + 1 of
            Seq ->
                C ! {im, accepted, Session, Inc, Seq},
                _ = [Other ! {im, message, Session, Inc, Client, Seq, Body, Meta} || #{Peer := Other} <- [Ready]],
                Row#{said := Said#{Client := [{Seq, Body, Meta} | Mine]}};
            _ -> Row
        end
    end);
message({im, received, Inc, Client, UpTo}, S) ->
    in(Inc, S, fun(#{done := Done, session := Session, ready := Ready} = Row) ->
        Peer = peer(Client, Row),
        _ = [Other ! {im, delivered, Session, Inc, UpTo} || #{Peer := Other} <- [Ready]],
        Row#{done := Done#{Peer := UpTo}}
    end);
message({im, finish, Inc, _}, #s{sessions = Sessions, incs = Incs} = S) ->
    #{session := Session, ready := Ready} = maps:get(Inc, Sessions),
    _ = [C ! {im, ended, Session, Inc, finished} || C <- maps:values(Ready)],
    S#s{sessions = maps:remove(Inc, Sessions), incs = maps:remove(Session, Incs)}.

in(Inc, #s{sessions = Sessions} = S, Fun) ->
    case Sessions of
        #{Inc := Row} -> S#s{sessions = Sessions#{Inc := Fun(Row)}};
        #{} -> S
    end.

peer(Client, #{session := {Client, Peer}}) -> Peer;
peer(_, #{session := {Peer, _}}) -> Peer.

tell(Client, C, Inc, #s{sessions = Sessions, clients = Clients} = S) ->
    #{session := Session, said := Said} = Row = maps:get(Inc, Sessions),
    Presence = case is_map_key(peer(Client, Row), Clients) of true -> online; false -> away end,
    C ! {im, session, Session, Inc, self(), length(maps:get(Client, Said)), Presence},
    S.

gone(C, #s{clients = Clients, sessions = Sessions} = S) ->
    Here = maps:filter(fun(_, Is) -> Is =/= C end, Clients),
    Left = maps:map(fun(Inc, #{ready := Ready, session := Session} = Row) ->
        Still = maps:filter(fun(_, Is) -> Is =/= C end, Ready),
        _ = [Other ! {im, presence, Session, Client, away} || Client <- maps:keys(Ready) -- maps:keys(Still), Other <- maps:values(Still), is_integer(Inc)],
        Row#{ready := Still}
    end, Sessions),
    S#s{clients = Here, sessions = Left}.
