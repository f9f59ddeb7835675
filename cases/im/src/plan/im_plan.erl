%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is where: the settings of the messenger, and what follows from them. A node's part, the
%% shard of a client or of a session, the nodes of a shard, the groups, the names of the databases.
%% Pure, but for {@link this/0} and {@link install/1}, by which a node has its plan at hand.
%%
%% Each server stands for a shard of the clients and of the sessions, with the number of the server.
%% The nodes that may hold a shard are those servers that share its group, in an order of
%% preference: its own server first, then the previous one, which has the second copy as in the
%% paper, and so on downwards, round.
%%
%% In mode rd all nodes are one group, whose names are in `global'. In mode rsd each router has a group
%% with an equal share of the servers, in order (some have one more if the numbers do not fit), and
%% `routers_group' joins the routers. With routers r1 and r2, and servers 1 to 6:
%% ```
%% routers_group  r1 r2
%% router_1       r1 server_1 server_2 server_3
%% router_2       r2 server_4 server_5 server_6
%% '''
%%
%% All nodes must be given the same settings. A client keeps its server as long as the number of
%% servers stays. The mapping is `erlang:phash2/2', which is even. With `compat' that of clients is
%% the original program's: it hangs on the last letters of a name, and so is uneven.
-module(im_plan).

-export([new/1, format_error/1, install/1, this/0]).
-export([setting/2, settings/1, role/2, servers/1, routers/1, node_of/2]).
-export([is_client/1, session/2, session_name/1, server_of_client/2, server_of_session/2]).
-export([group_of/2, router_of/2, peers/2, members/2, groups/1, connections/1, router_name/1, relay_name/1, db_name/4, local_name/3]).

-export_type([plan/0, settings/0, key/0, server/0, kind/0, client/0, session/0, reason/0]).

%% What an operator gives: `routers' and `servers' at least.
-type settings() :: #{key() => term()}.

-type key() ::
    %% rd: one mesh; rsd: groups
    mode
    %% the nodes, in the order of their numbers
    | routers
    | servers
    %% how databases of other groups are reached in rsd: by the names of Atoll, or by relay processes
    | reach
    %% whether the second copy has a change before it is answered, or as in the paper, some time later
    | replication
    %% of clients to servers
    | mapping
    %% router processes on a router node
    | routers_per_node
    %% relay processes in each group
    | relays
    %% how long a client that went away has its login, and what is for it kept
    | away_ms
    %% messages that are kept for one direction of a session
    | away_messages
    %% after so long without a message a session ends
    | idle_ms
    %% of a client at a time
    | max_sessions
    %% bytes of the text of a message
    | max_body
    %% operations that one database lets wait
    | max_waiting.

-type server() :: pos_integer().
-type kind() :: client_db | chat_db.
%% A name: 1 to 64 bytes of UTF-8.
-type client() :: binary().
%% Its two clients, sorted.
-type session() :: {client(), client()}.

-type reason() ::
    {unknown_setting, term()}
    | {missing, routers | servers}
    | {wrong_setting, key(), allowed(), term()}
    %% it has two parts to play
    | {twice, node()}
    %% a group would have none
    | {too_few_servers, Servers :: pos_integer(), Routers :: pos_integer()}.

-type allowed() :: {one_of, [atom(), ...]} | nodes | {whole, Least :: integer(), Most :: integer()}.

-record(plan, {
    settings :: settings(),
    routers :: tuple(),
    servers :: tuple(),
    roles :: #{node() => {router | server, pos_integer()}},
    %% of each server: {{client main, client replica, client local}, the same of chat}
    names :: tuple(),
    %% of each server
    peers :: tuple(),
    groups :: [{atom(), [node()]}]
}).

-opaque plan() :: #plan{}.

%% The group of all in mode rd.
-define(ALL, all).
%% Divisor and summand of the original mapping; the first is the largest prime below 2^32.
-define(PRIME, 4294967291).
-define(SUMMAND, 429496).

-spec keys() -> [{key(), Default :: term(), allowed()}].
keys() ->
    Day = 86_400_000,
    [
        {mode, rd, {one_of, [rd, rsd]}},
        {routers, none, nodes},
        {servers, none, nodes},
        {reach, atoll, {one_of, [atoll, relays]}},
        {replication, acknowledged, {one_of, [acknowledged, paper]}},
        {mapping, even, {one_of, [even, compat]}},
        {routers_per_node, 4, {whole, 1, 1000}},
        {relays, 50, {whole, 1, 1000}},
        {away_ms, 300_000, {whole, 0, 7 * Day}},
        {away_messages, 1000, {whole, 1, 100_000}},
        {idle_ms, 300_000, {whole, 1, 7 * Day}},
        {max_sessions, 1000, {whole, 1, 100_000}},
        {max_body, 4096, {whole, 1, 1_048_576}},
        {max_waiting, 20_000, {whole, 1, 10_000_000}}
    ].

%% @doc Checks the settings, completes them, and lays out who is where.
-spec new(settings()) -> {ok, plan()} | {error, reason()}.
new(Given) ->
    case maps:keys(Given) -- [Key || {Key, _, _} <- keys()] of
        [] -> complete(keys(), Given, #{});
        [Unknown | _] -> {error, {unknown_setting, Unknown}}
    end.

complete([{Key, none, _} | _], Given, _) when not is_map_key(Key, Given) ->
    {error, {missing, Key}};
complete([{Key, Default, Allowed} | Keys], Given, Done) ->
    Value = maps:get(Key, Given, Default),
    case fits(Allowed, Value) of
        true -> complete(Keys, Given, Done#{Key => Value});
        false -> {error, {wrong_setting, Key, Allowed, Value}}
    end;
complete([], _, #{mode := Mode, routers := Routers, servers := Servers} = Settings) ->
    All = Routers ++ Servers,
    case {All -- lists:usort(All), length(Servers) < length(Routers)} of
        {[Node | _], _} -> {error, {twice, Node}};
        {[], true} when Mode =:= rsd -> {error, {too_few_servers, length(Servers), length(Routers)}};
        {[], _} -> {ok, laid_out(Settings)}
    end.

fits({one_of, Values}, Value) -> lists:member(Value, Values);
fits({whole, Least, Most}, Value) -> is_integer(Value) andalso Value >= Least andalso Value =< Most;
%% The guard fails for a list that is none to the end.
fits(nodes, [_ | _] = Value) when length(Value) > 0 -> lists:all(fun is_node/1, Value);
fits(nodes, _) -> false.

is_node(Node) when is_atom(Node) ->
    case string:split(atom_to_list(Node), "@", all) of
        [[_ | _], [_ | _]] -> true;
        _ -> false
    end;
is_node(_) ->
    false.

laid_out(#{mode := Mode, routers := Routers, servers := Servers} = Settings) ->
    Numbers = lists:seq(1, length(Servers)),
    Blocks = blocks(Mode, Routers, Servers),
    #plan{
        settings = Settings,
        routers = list_to_tuple(Routers),
        servers = list_to_tuple(Servers),
        roles = maps:from_list([{Node, {router, I}} || {I, Node} <- numbered(Routers)] ++ [{Node, {server, J}} || {J, Node} <- numbered(Servers)]),
        names = list_to_tuple([{names(J, "Client_DB"), names(J, "Chat_DB")} || J <- Numbers]),
        peers = list_to_tuple([downwards(Node, Block) || Block <- Blocks, Node <- Block]),
        groups = groups(Mode, Routers, Blocks)
    }.

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

%% The servers of each group.
blocks(rd, _, Servers) -> [Servers];
blocks(rsd, Routers, Servers) ->
    {NR, NS} = {length(Routers), length(Servers)},
    [[Node || {J, Node} <- numbered(Servers), (J - 1) * NR div NS =:= I - 1] || I <- lists:seq(1, NR)].

%% Shard by shard the order begins one further up.
downwards(Node, Block) ->
    {Below, [Node | Above]} = lists:splitwith(fun(Other) -> Other =/= Node end, Block),
    [Node | lists:reverse(Below)] ++ lists:reverse(Above).

groups(rd, Routers, [Servers]) -> [{?ALL, Routers ++ Servers}];
groups(rsd, Routers, Blocks) ->
    [{routers_group, Routers}
     | [{router_name(I), [Router | Block]} || {I, {Router, Block}} <- numbered(lists:zip(Routers, Blocks))]].

names(J, Kind) ->
    Server = "server_" ++ integer_to_list(J) ++ "_",
    {list_to_atom(Server ++ "1_" ++ Kind), list_to_atom(Server ++ "2_" ++ Kind), list_to_atom(Server ++ Kind)}.

%% @doc One sentence that names the setting and what it may be.
-spec format_error(reason()) -> unicode:chardata().
format_error({unknown_setting, Key}) ->
    io_lib:format("There is no setting ~0tp.", [Key]);
format_error({missing, Key}) ->
    io_lib:format("The setting ~ts is missing: the nodes, in order.", [Key]);
format_error({wrong_setting, Key, Allowed, Value}) ->
    io_lib:format("The setting ~ts must be ~ts, not ~0tP.", [Key, words(Allowed), Value, 12]);
format_error({twice, Node}) ->
    io_lib:format("The node ~ts is named twice in the settings routers and servers.", [Node]);
format_error({too_few_servers, Servers, Routers}) ->
    io_lib:format("In mode rsd each router has a server at least; there are ~b routers and ~b servers.", [Routers, Servers]).

words({one_of, Values}) -> ["one of ", lists:join(", ", [atom_to_list(Value) || Value <- Values])];
words(nodes) -> "a list of nodes";
words({whole, Least, Most}) -> io_lib:format("a whole number from ~b to ~b", [Least, Most]).

%% @doc Makes it the plan of this node.
-spec install(plan()) -> ok.
install(Plan) -> persistent_term:put(?MODULE, Plan).

%% @doc The plan of this node.
-spec this() -> plan().
this() -> persistent_term:get(?MODULE).

%% @doc A setting as it was given, or its default.
-spec setting(key(), plan()) -> term().
setting(Key, #plan{settings = Settings}) -> map_get(Key, Settings).

%% @doc All settings, with which new/1 makes the same plan.
-spec settings(plan()) -> settings().
settings(#plan{settings = Settings}) -> Settings.

%% @doc What a node is, and which one of these.
-spec role(node(), plan()) -> {router | server, pos_integer()} | none.
role(Node, #plan{roles = Roles}) -> maps:get(Node, Roles, none).

%% @doc The numbers of the servers.
-spec servers(plan()) -> [server(), ...].
servers(#plan{servers = Servers}) -> lists:seq(1, tuple_size(Servers)).

%% @doc The nodes of the routers.
-spec routers(plan()) -> [node(), ...].
routers(#plan{routers = Routers}) -> tuple_to_list(Routers).

%% @doc The node of a server, where its shard is unless that node is lost.
-spec node_of(server(), plan()) -> node().
node_of(Server, #plan{servers = Servers}) -> element(Server, Servers).

%% @doc Whether that can be the name of a client.
-spec is_client(term()) -> boolean().
is_client(Name) when is_binary(Name), byte_size(Name) >= 1, byte_size(Name) =< 64 ->
    is_list(unicode:characters_to_list(Name));
is_client(_) ->
    false.

%% @doc The session of two different clients, whichever of them is named first.
-spec session(client(), client()) -> session().
session(A, B) when A < B -> {A, B};
session(A, B) when A > B -> {B, A}.

%% @doc As it is shown.
-spec session_name(session()) -> binary().
session_name({A, B}) -> <<"chat_session_", A/binary, $_, B/binary>>.

%% @doc The shard of a client.
-spec server_of_client(client(), plan()) -> server().
server_of_client(Client, #plan{settings = #{mapping := even}, servers = Servers}) ->
    erlang:phash2(Client, tuple_size(Servers)) + 1;
server_of_client(Client, #plan{settings = #{mapping := compat}, servers = Servers}) ->
    Hash = lists:foldl(fun(Char, H) -> (H bsl 5) + Char end, 0, unicode:characters_to_list(Client)),
    ((33 * Hash + ?SUMMAND) rem ?PRIME) rem tuple_size(Servers) + 1.

%% @doc The shard of a session.
-spec server_of_session(session(), plan()) -> server().
server_of_session(Session, #plan{servers = Servers}) -> erlang:phash2(Session, tuple_size(Servers)) + 1.

%% @doc The group in which the names of a shard are; `all' in mode rd.
-spec group_of(server(), plan()) -> atom().
group_of(Server, #plan{groups = Groups} = Plan) ->
    {Group, _} = group(Server, Groups, Plan),
    Group.

%% @doc The router of a shard's group, in mode rsd.
-spec router_of(server(), plan()) -> node().
router_of(Server, #plan{settings = #{mode := rsd}} = Plan) -> hd(members(Server, Plan)).

%% @doc The nodes that may hold a shard, the preferred one first.
-spec peers(server(), plan()) -> [node(), ...].
peers(Server, #plan{peers = Peers}) -> element(Server, Peers).

%% @doc All nodes of a shard's group, the router first: of these somebody must see a majority.
-spec members(server(), plan()) -> [node(), ...].
members(Server, #plan{groups = Groups} = Plan) ->
    {_, Members} = group(Server, Groups, Plan),
    Members.

group(Server, Groups, #plan{servers = Servers}) ->
    Node = element(Server, Servers),
    [Group] = [Group || {_, Members} = Group <- Groups, lists:member(Node, Members)],
    Group.

%% @doc The groups with their members; in mode rd one of all nodes.
-spec groups(plan()) -> [{atom(), [node()]}].
groups(#plan{groups = Groups}) -> Groups.

%% @doc How many connections these nodes have among each other, with N nodes and routers R that have
%% each s - 1 servers: N(N-1)/2 in mode rd, and R(R-1)/2 + R s(s-1)/2 in mode rsd.
-spec connections(plan()) -> non_neg_integer().
connections(#plan{groups = Groups}) ->
    lists:sum([N * (N - 1) || {_, Members} <- Groups, N <- [length(Members)]]) div 2.

%% @doc That of the K-th router process of each router node, and of the group of the K-th router.
-spec router_name(pos_integer()) -> atom().
router_name(K) -> list_to_atom("router_" ++ integer_to_list(K)).

%% @doc That of the K-th relay of a group.
-spec relay_name(pos_integer()) -> atom().
relay_name(K) -> list_to_atom("relay_" ++ integer_to_list(K)).

%% @doc The name of the first (main) and of the second copy (replica) in the group.
-spec db_name(server(), 1 | 2, kind(), plan()) -> atom().
db_name(Server, Copy, Kind, Plan) -> element(Copy, names_of(Server, Kind, Plan)).

%% @doc The local name of the process that may be either, on each of the peers.
-spec local_name(server(), kind(), plan()) -> atom().
local_name(Server, Kind, Plan) -> element(3, names_of(Server, Kind, Plan)).

names_of(Server, client_db, #plan{names = Names}) -> element(1, element(Server, Names));
names_of(Server, chat_db, #plan{names = Names}) -> element(2, element(Server, Names)).
