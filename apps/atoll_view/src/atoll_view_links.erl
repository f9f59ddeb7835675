%% SPDX-License-Identifier: Apache-2.0
%% @doc The connections of a cluster, each once, whatever its two ends say of it; and what the ends
%% would say where Atoll does not run: that is asked by functions of OTP which every node of a
%% cluster has loaded.
-module(atoll_view_links).

-export([paired/1, stock/1]).

-export_type([told/0, link/0, channel/0]).

-type told() :: [{node(), [atoll_connections:connection()]}].
%% What each node says.

-type link() :: #{
    %% The end that connected; where nobody knows, the first by name.
    from := node(),
    to := node(),
    %% As the first of the two says it.
    kind := atoll_dist_kind:kind() | stock | relay,
    rtt_us := non_neg_integer() | unknown,
    connected_by := node() | unknown,
    age_ms := non_neg_integer() | unknown,
    %% From the one to the other, and back.
    bytes_there := non_neg_integer() | unknown,
    bytes_back := non_neg_integer() | unknown,
    %% What each end has written in each channel.
    channels => [channel(), ...],
    %% Of a circuit over other nodes: all of them, from the one end to the other, and whether
    %% it is sealed.
    path => [node() | binary()],
    sealed => boolean()
}.

-type channel() :: #{
    from := node(), to := node(), channel := atom(), lanes := pos_integer(), bytes := non_neg_integer(), packets := non_neg_integer(),
    waiting := non_neg_integer(), dropped := non_neg_integer()
}.

%% @doc Each connection once, by the names of its ends.
-spec paired(told()) -> [link()].
paired(Told) ->
    Ends = [{lists:sort([Node, Peer]), Node, Link} || {Node, Links} <- Told, #{node := Peer} = Link <- Links],
    Pairs = maps:groups_from_list(fun({Pair, _, _}) -> Pair end, fun({_, Node, Link}) -> {Node, Link} end, Ends),
    [Link || {_, Link} <- lists:sort([{{From, To}, L} || Said <- maps:values(Pairs), #{from := From, to := To} = L <- [one(Said)]])].

%% Of two ends that of the one that connected; the other end's may be all that is said.
one(Said) ->
    case lists:append([channels(End) || End <- lists:sort(Said)]) of
        [] -> first(Said);
        Channels -> (first(Said))#{channels => Channels}
    end.

channels({Node, #{node := Peer, channels := Channels}}) ->
    [Figures#{from => Node, to => Peer, channel => Name} || {Name, Figures} <- lists:sort(maps:to_list(Channels))];
channels(_) ->
    [].

first(Said) ->
    case [End || {_, #{started := here}} = End <- Said] of
        [End | _] -> seen(End);
        [] -> seen(hd(lists:sort(Said)))
    end.

seen({Node, #{node := Peer, started := there, bytes_in := In, bytes_out := Out} = Link}) ->
    seen(Peer, Node, Peer, In, Out, Link);
seen({Node, #{node := Peer, started := here, bytes_in := In, bytes_out := Out} = Link}) ->
    seen(Node, Peer, Node, Out, In, Link);
seen({Node, #{node := Peer, started := unknown, bytes_in := In, bytes_out := Out} = Link}) when Node < Peer ->
    seen(Node, Peer, unknown, Out, In, Link);
seen({Node, #{node := Peer, started := unknown, bytes_in := In, bytes_out := Out} = Link}) ->
    seen(Peer, Node, unknown, In, Out, Link).

seen(From, To, By, There, Back, Link) ->
    (maps:with([kind, rtt_us, age_ms, path, sealed], Link))#{
        from => From, to => To, connected_by => By, bytes_there => There, bytes_back => Back
    }.

%% @doc What nodes without Atoll have to say, and who is silent.
-spec stock([node()]) -> {[{node(), [atoll_connections:connection()]}], Silent :: [node()]}.
stock(Nodes) ->
    {Controllers, _} = atoll_view:ask_all(Nodes, erlang, system_info, [dist_ctrl]),
    Told = [
        {Node, lists:sort([connection(Peer, Stat) || {Peer, Stat} <- counted(Node, Links)])}
     || {Node, Links} <- Controllers
    ],
    {Told, Nodes -- [Node || {Node, _} <- Told]}.

%% All of a node in one call. One that has just gone has no bytes.
counted(Node, Links) ->
    Ports = [Port || {_, Port} <- Links, is_port(Port)],
    Known =
        case atoll_view:ask(Node, lists, map, [fun inet:getstat/1, Ports]) of
            {ok, Stats} -> maps:from_list([{Port, Stat} || {Port, {ok, Stat}} <- lists:zip(Ports, Stats)]);
            {error, _} -> #{}
        end,
    [{Peer, maps:get(Controller, Known, [])} || {Peer, Controller} <- Links].

%% Under TLS a process drives it, which counts nothing.
connection(Peer, Stat) ->
    #{
        node => Peer,
        kind => stock,
        rtt_us => unknown,
        started => unknown,
        age_ms => unknown,
        bytes_in => proplists:get_value(recv_oct, Stat, unknown),
        bytes_out => proplists:get_value(send_oct, Stat, unknown)
    }.
