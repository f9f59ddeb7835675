%% Nodes for the suite: OTP's peers, driven over their standard input and
%% output, so that no connection is made but those of the run.
-module(orbit_peers).

-export([start/1, nodes/1, call/6, kill/2, stop/1]).

start(#{nodes := Count, connect_all := ConnectAll}) ->
    Args = ["-pa" | code:get_path()] ++ ["-setcookie", "orbit", "+S", "1:1", "+sbwt", "none",
            "-connect_all", atom_to_list(ConnectAll), "-kernel", "logger_level", "critical"],
    Peers = [begin
                 Name = peer:random_name("o" ++ integer_to_list(N)),
                 {ok, Peer, Node} = peer:start_link(#{
                     name => Name, connection => standard_io, args => Args,
                     shutdown => close, wait_boot => 30_000}),
                 {Node, Peer}
             end || N <- lists:seq(1, Count)],
    [true = peer:call(Peer, net_kernel, connect_node, [Node])
     || ConnectAll, {_, Peer} <- Peers, {Node, _} <- Peers],
    [{ok, _} = peer:call(Peer, application, ensure_all_started, [atoll])
     || not ConnectAll, {_, Peer} <- Peers],
    {ok, Peers}.

nodes(Peers) ->
    [Node || {Node, _} <- Peers].

call(Peers, Node, M, F, A, Timeout) ->
    {Node, Peer} = lists:keyfind(Node, 1, Peers),
    peer:call(Peer, M, F, A, Timeout).

kill(Peers, Node) ->
    {Node, Peer} = lists:keyfind(Node, 1, Peers),
    unlink(Peer),
    OsPid = peer:call(Peer, os, getpid, []),
    [] = os:cmd("kill -9 " ++ OsPid),
    ok.

stop(Peers) ->
    lists:foreach(fun({_, Peer}) -> unlink(Peer), catch peer:stop(Peer) end, Peers).
