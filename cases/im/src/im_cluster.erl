%% SPDX-License-Identifier: Apache-2.0
%% @doc How the nodes of a messenger are started, and whether they are connected as they should be.
%%
%% ```
%%                  router_i, server_j                         client_k
%% rd               a mesh on Erlang's distribution            hidden, on Erlang's distribution
%% rsd, over atoll  in s_groups, on the carrier, each with a   the same
%%                  way to all others over the routers
%% rsd, by relays   in s_groups, on Erlang's distribution      the same
%% '''
%% With the carrier no node makes a connection across groups: where there is no way over the routers
%% there is none (`unrouted'). It lets in nodes on Erlang's own distribution (`stock'), as the
%% client nodes are: these connect themselves with a router node and then with the server nodes that
%% their clients are told of. Being hidden they are told to nobody, and with the carrier nobody can
%% connect with them.
-module(im_cluster).

-export([options/1, settings/2, roles/2, client_options/1, missing/1, lacking/1, links/0, links/1]).

-export_type([shape/0, reach/0]).

-type reach() :: atoll | relays.

-type shape() :: #{
    mode := rd | rsd,
    routers := pos_integer(),
    servers := pos_integer(),
    %% client nodes, 0 unless told
    clients => non_neg_integer(),
    %% in mode rsd; atoll unless told
    reach => reach(),
    %% further settings, as im_plan has them
    settings => im_plan:settings()
}.

-type kind() :: #{
    kind := string(), count := pos_integer(), connect_all := boolean(), apps := [atom()],
    args := [string()] | fun(([node(), ...]) -> [string()])
}.

%% @doc For {@link atoll_cluster:start/1}: router nodes first, then server nodes, then client nodes.
-spec options(shape()) -> #{nodes := [kind(), ...]}.
options(#{mode := Mode, routers := Routers, servers := Servers} = Shape) ->
    Inner = (node_options(Mode, maps:get(reach, Shape, atoll)))#{args => fun(Nodes) -> args(Shape, Nodes) end},
    #{nodes => [Inner#{kind => "_router_", count => Routers}, Inner#{kind => "_server_", count => Servers}]
        ++ [client_options(Clients) || #{clients := Clients} <- [Shape], Clients > 0]}.

%% @doc So many client nodes. They need no application: a client is a process of whoever starts it.
-spec client_options(Count :: pos_integer()) -> kind().
client_options(Count) ->
    #{kind => "_client_", count => Count, connect_all => false, apps => [], args => ["-hidden" | together()]}.

%% What is sent to a node while its socket was not asked yet whether it has room goes in one packet: a
%% message of the messenger is small, and a packet for each costs more than the message.
together() ->
    Late = [{delay_send, true}],
    environment(kernel, [{inet_dist_connect_options, Late}, {inet_dist_listen_options, Late}]).

node_options(rd, _Reach) -> #{connect_all => true, apps => [im]};
node_options(rsd, _Reach) -> #{connect_all => false, apps => [atoll, im]}.

%% @doc The settings that these nodes are started with, in the order of options/1.
-spec settings(shape(), [node(), ...]) -> im_plan:settings().
settings(#{mode := Mode} = Shape, Nodes) ->
    {Routers, Servers, _} = roles(Shape, Nodes),
    maps:merge(
        maps:get(settings, Shape, #{}),
        #{mode => Mode, reach => maps:get(reach, Shape, atoll), routers => Routers, servers => Servers}
    ).

%% @doc Which of these nodes are routers, which are servers, and which are client nodes.
-spec roles(shape(), [node(), ...]) -> {[node()], [node()], [node()]}.
roles(#{routers := R, servers := S}, Nodes) ->
    {Routers, Rest} = lists:split(R, Nodes),
    {Servers, Clients} = lists:split(S, Rest),
    {Routers, Servers, Clients}.

args(#{mode := Mode} = Shape, Nodes) ->
    Settings = settings(Shape, Nodes),
    together() ++ environment(im, maps:to_list(Settings)) ++
        case Mode of
            %% With it OTP disconnects nodes that are well from one that was killed and is back, and from others too.
            rd -> environment(kernel, [{prevent_overlapping_partitions, false}]);
            rsd ->
                {ok, Plan} = im_plan:new(Settings),
                Groups = im_plan:groups(Plan),
                %% Of two main databases the one with the higher epoch keeps the name (im_names).
                Rules = maps:from_list([{Group, {keep, max}} || {Group, _} <- Groups]),
                carrier(maps:get(reach, Shape, atoll)) ++ environment(atoll, [{s_groups, Groups}, {name_rules, Rules}, {free_group, off}])
        end.

carrier(relays) ->
    [];
carrier(atoll) ->
    ["-proto_dist", "atoll"] ++ environment(kernel, [{atoll_dist, [{stock, accept}, {unrouted, refuse}]}]) ++
        environment(atoll, [{directory, on}]).

environment(App, Values) ->
    lists:append([
        [[$- | atom_to_list(App)], atom_to_list(Key), lists:flatten(io_lib:format("~0tp", [Value]))]
     || {Key, Value} <- Values
    ]).

%% @doc Called on a router or server node: the nodes that it is not connected with as it should be, or has
%% no way to.
-spec missing(im_plan:plan()) -> [node()].
missing(Plan) ->
    Groups = im_plan:groups(Plan),
    All = lists:usort(lists:append([Members || {_, Members} <- Groups])) -- [node()],
    Wanted = lists:usort(lists:append([Members || {_, Members} <- Groups, lists:member(node(), Members)])) -- [node()],
    case {im_plan:setting(mode, Plan), im_plan:setting(reach, Plan)} of
        {rsd, atoll} -> lists:usort((Wanted -- links()) ++ (All -- reachable()));
        _ -> Wanted -- links()
    end.

%% @doc Called on a router or server node: the copies that its group lacks. A group of one server
%% has no second ones.
-spec lacking(im_plan:plan()) -> [atom()].
lacking(Plan) ->
    [
        im_plan:db_name(Server, Copy, Kind, Plan)
     || Server <- im_plan:servers(Plan),
        lists:member(node(), im_plan:members(Server, Plan)),
        Copy <- [1, 2],
        Copy =< length(im_plan:peers(Server, Plan)),
        Kind <- [client_db, chat_db],
        im_names:whereis(Server, Copy, Kind) =:= undefined
    ].

reachable() ->
    case atoll:reachable() of
        {ok, Nodes} -> Nodes;
        {error, _} -> []
    end.

%% @doc The visible nodes that this one has a connection of its own with. What goes over others is
%% none, though it is in `nodes()' as they are, and that before Atoll lists it.
-spec links() -> [node()].
links() ->
    Visible = nodes(),
    case code:ensure_loaded(atoll) of
        {module, atoll} -> lists:usort([Node || #{node := Node} = Connection <- atoll:links(), lists:member(Node, Visible), is_own(Connection)]);
        {error, _} -> lists:sort(Visible)
    end.

%% One whose path is its two ends has a connection of its own.
is_own(#{kind := relay, path := Path}) -> length(Path) =:= 2;
is_own(#{}) -> true.

%% @doc How many connections there are, by what links/0 says on each of the nodes.
-spec links([{node(), [node()]}]) -> non_neg_integer().
links(Said) ->
    length(lists:usort([lists:sort([Node, Other]) || {Node, Others} <- Said, Other <- Others])).
