%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc How the further lanes of a connection join it, once Erlang's handshake has said
%% that both ends have the same cookie.
%%
%% The end that connected opens them all at once, at the address of the first. Each says
%% which lane it is, and proves with the cookie that it belongs to the connection; the
%% other end answers with a proof of its own. What both prove is over the connection's
%% id, the acceptor's nonce and one of the lane's own, so nothing that was heard before
%% proves anything.
%%
%% Promised: all lanes are there within kernel's `net_setuptime', or the connection is
%% given up. A lane that proves nothing, or is there already, is refused and costs the
%% connection nothing.
-module(atoll_dist_join).

-export([lanes/2, knock/2]).

-export_type([needs/0]).

-type needs() :: #{
    lanes := atoll_dist_lanes:count(),
    key := binary(),
    %% The connection's id and the acceptor's nonce.
    said := [binary()],
    driver := atoll_dist_socket:driver(),
    %% Where to connect; none for the end that accepts.
    at := {inet:ip_address(), inet:port_number()} | none,
    peer := binary()
}.

%% @doc The sockets of all further lanes, in their order; all belong to the calling
%% process, which they reach by the message of {@link knock/2}. It ends if they are not
%% all there in the time.
-spec lanes(needs(), Ms :: pos_integer()) -> [atoll_dist_transport:socket()].
lanes(#{lanes := N} = Needs, Ms) ->
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    Missing = lists:seq(1, N - 1),
    case Needs of
        #{at := none} -> accept(Missing, #{}, #{}, Deadline, Needs);
        #{at := At} -> connected(connect(Missing, At, Ms, Needs), #{}, Deadline, Needs)
    end.

%% The end that connects

connect(Missing, At, Ms, Needs) ->
    Self = self(),
    [spawn_link(fun() -> lane(Self, Index, At, Ms, Needs) end) || Index <- Missing].

lane(Joining, Index, {Ip, Port}, Ms, #{driver := Driver, key := Key, said := [Id, _] = Said, peer := Peer}) ->
    Nonce = crypto:strong_rand_bytes(16),
    <<_:256>> = Theirs = atoll_dist_hello:proof(Key, acceptor, Index, Said ++ [Nonce]),
    Lane = #{id => Id, index => Index, nonce => Nonce, mac => atoll_dist_hello:proof(Key, connector, Index, Said ++ [Nonce])},
    case atoll_dist_address:connect(Driver, Ip, Port, Peer, Ms) of
        {ok, Socket} ->
            _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({lane, Lane})),
            case atoll_dist_transport:recv(Socket, 0, Ms) of
                {ok, Frame} ->
                    case atoll_dist_hello:read(list_to_binary(Frame)) of
                        {ok, {lane_answer, Theirs}} ->
                            ok = atoll_dist_transport:controlling_process(Socket, Joining),
                            Joining ! {lane, Index, Socket},
                            true = unlink(Joining);
                        _ ->
                            fail(Joining, Index, "its answer proves nothing")
                    end;
                {error, Reason} ->
                    fail(Joining, Index, io_lib:format("it was not answered (~0p)", [Reason]))
            end;
        {error, Reason} ->
            fail(Joining, Index, atoll_dist_address:format_error(Reason))
    end.

%% The first that fails ends all, but not before that is said.
fail(Joining, Index, Why) ->
    Joining ! {failed, Index, Why},
    true.

-spec failed(binary(), atoll_dist_lanes:lane(), iodata()) -> no_return().
failed(Peer, Index, Why) ->
    Said = ["Gave up a connection with ", Peer, ": of its lane ", integer_to_list(Index), ", ", Why, "."],
    ok = atoll_dist_keeper:say_once(carrier_lane_failed, Peer, Said),
    atoll_dist_process:over({lane_failed, Index}).

connected(Connecting, Sockets, _Deadline, _Needs) when map_size(Sockets) =:= length(Connecting) ->
    in_order(Sockets);
connected(Connecting, Sockets, Deadline, Needs) ->
    receive
        {lane, Index, Socket} -> connected(Connecting, Sockets#{Index => Socket}, Deadline, Needs);
        {failed, Index, Why} -> failed(maps:get(peer, Needs), Index, Why)
    after left(Deadline) ->
        late(lists:seq(1, length(Connecting)) -- maps:keys(Sockets), Needs)
    end.

%% The end that accepts

%% Missing: the lanes that have not come. Coming: those that were let in, whose sockets
%% are on their way here, by the process that has them.
accept([], Coming, Sockets, _Deadline, _Needs) when map_size(Coming) =:= 0 ->
    in_order(Sockets);
accept(Missing, Coming, Sockets, Deadline, #{key := Key, said := Said} = Needs) ->
    receive
        {knock, Doorkeeper, #{index := Index, nonce := Nonce, mac := Mac}} ->
            Proof = Said ++ [Nonce],
            case lists:member(Index, Missing) andalso equal(Mac, atoll_dist_hello:proof(Key, connector, Index, Proof)) of
                true ->
                    Ref = monitor(process, Doorkeeper),
                    Doorkeeper ! {self(), come_in},
                    Answer = atoll_dist_hello:proof(Key, acceptor, Index, Proof),
                    accept(Missing -- [Index], Coming#{Doorkeeper => {Index, Answer, Ref}}, Sockets, Deadline, Needs);
                false ->
                    Doorkeeper ! {self(), refused},
                    accept(Missing, Coming, Sockets, Deadline, Needs)
            end;
        {lane, Doorkeeper, Socket} when is_map_key(Doorkeeper, Coming) ->
            {{Index, Answer, Ref}, Left} = maps:take(Doorkeeper, Coming),
            _ = demonitor(Ref, [flush]),
            %% If that fails the socket tells so later.
            _ = atoll_dist_transport:send(Socket, atoll_dist_hello:make({lane_answer, Answer})),
            accept(Missing, Left, Sockets#{Index => Socket}, Deadline, Needs);
        {'DOWN', _, process, Doorkeeper, _} when is_map_key(Doorkeeper, Coming) ->
            {{Index, _, _}, Left} = maps:take(Doorkeeper, Coming),
            accept([Index | Missing], Left, Sockets, Deadline, Needs)
    after left(Deadline) ->
        late(Missing ++ [Index || {Index, _, _} <- maps:values(Coming)], Needs)
    end.

%% In a time that does not tell where they differ.
equal(<<A:256>>, <<B:256>>) -> A bxor B =:= 0.

left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

in_order(Sockets) -> [Socket || {_, Socket} <- lists:keysort(1, maps:to_list(Sockets))].

-spec late([atoll_dist_lanes:lane()], needs()) -> no_return().
late(Missing, #{lanes := N, peer := Peer}) ->
    Why = "Gave up a connection with ~ts: of its ~b lanes, ~b have not come in the time for it.",
    ok = atoll_dist_keeper:say_once(carrier_lanes_missing, Peer, io_lib:format(Why, [Peer, N, length(Missing)])),
    atoll_dist_process:over({lanes_missing, lists:sort(Missing)}).

%% @doc A lane has knocked: gives its socket to the process that waits for it. Called by
%% the socket's owner.
-spec knock(atoll_dist_hello:lane(), atoll_dist_transport:socket()) -> ok | refused.
knock(#{id := Id} = Lane, Socket) ->
    case atoll_dist_keeper:awaiting(Id) of
        {ok, Joining} ->
            Ref = monitor(process, Joining),
            Joining ! {knock, self(), Lane},
            receive
                {Joining, come_in} ->
                    true = demonitor(Ref, [flush]),
                    _ = atoll_dist_transport:controlling_process(Socket, Joining),
                    Joining ! {lane, self(), Socket},
                    ok;
                {Joining, refused} ->
                    refused;
                {'DOWN', Ref, process, Joining, _} ->
                    refused
            after net_kernel:connecttime() ->
                refused
            end;
        unknown ->
            refused
    end.
