%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What the carrier knows of itself: its configuration, the connections that are up,
%% and what it has said in the log already.
%%
%% The process owns the tables and watches over the connections; who reads asks no
%% process. It is started inside kernel, before the node listens, and ends with
%% distribution (`net_kernel:stop/0'), so a later start reads the configuration anew.
%%
%% Promised: a connection is listed from a moment after it is up until one after its process
%% is gone. What is said once is said again only after that peer has been connected in
%% between. What peers can make it remember is bounded, for each kind of thing by itself: a
%% stranger with a thousand names hides nothing else.
%%
%% Unlike other processes here it does not crash on a message that it does not know: its
%% supervisor would take distribution down with it.
-module(atoll_dist_keeper).
-behaviour(gen_server).

-export([child_spec/0, start_link/0, config/0, up/2, links/0, received/1, channel/1, prefer/1, preferred/0, say_once/3, forget/2]).
-export([awaits/2, expects/2, joined/1, awaiting/1, expected/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([up/0, link/0]).

-type up() :: #{
    node := node(),
    kind := relay,
    started := here | there,
    circuit := atoll_dist_circuits:circuit(),
    channel := none
} | #{
    node := node(),
    kind := atoll_dist_kind:kind() | stock,
    %% The round trip as it was measured when the nodes connected.
    rtt_us := non_neg_integer(),
    %% Which end connected.
    started := here | there,
    %% One, or that of each lane, the first one first.
    sockets := [atoll_dist_transport:socket(), ...],
    %% The process to talk to, if it has lanes; and whether they are divided among channels.
    channel := pid() | none,
    named := boolean()
}.

-type shown() :: atoll_dist_kind:kind() | stock | relay.

-type link() :: #{
    node := node(),
    kind := shown(),
    %% The round trip as the operating system sees it now; where that does not tell, as
    %% it was measured when the nodes connected.
    rtt_us := non_neg_integer(),
    started := here | there,
    %% For how many milliseconds it has been up.
    age_ms := non_neg_integer(),
    %% What its sockets have carried, or its circuit.
    bytes_in := non_neg_integer(),
    bytes_out := non_neg_integer(),
    %% What this end has written in each channel, where there are any.
    channels => #{atoll_dist_named:name() => atoll_dist_sorter:channel()},
    %% Of a circuit: all nodes, that which opened it first (one whose name is no atom here
    %% stands as text), whether it is sealed, and how often it took another path.
    path => [node() | binary()],
    sealed => boolean(),
    moves => non_neg_integer()
}.

-define(LINKS, atoll_dist_links).
-define(SAID, atoll_dist_said).

%% What is over when a peer is connected.
-define(MENDED, [
    carrier_stock_refused, carrier_refused, carrier_bad_name, carrier_lane_failed, carrier_lanes_missing, carrier_lane_lost,
    carrier_no_circuit, carrier_circuit_ended, carrier_no_own
]).

%% Of how many peers the same is remembered as said. Then that is said, and no more.
-define(MAX_SAID, 200).

%% The length of a node's name; a stranger may give a longer one.
-define(MAX_NAME, 255).

%% @doc For the supervisor of distribution.
-spec child_spec() -> supervisor:child_spec().
child_spec() ->
    #{id => ?MODULE, start => {?MODULE, start_link, []}, shutdown => 2000}.

%% @doc Starts the process.
-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc The checked configuration, or a sentence on what is wrong with it.
-spec config() -> {ok, atoll_dist_config:config()} | {error, string()}.
config() ->
    ets:lookup_element(?LINKS, config, 2).

%% @doc Lists a connection of this process, now that it is up.
-spec up(pid(), up()) -> ok.
up(Pid, Up) ->
    gen_server:cast(?MODULE, {up, Pid, erlang:monotonic_time(millisecond), Up}).

%% @doc From now on, and until that process is gone, it waits for further lanes of a
%% connection. Nobody else can wait for lanes of that id.
-spec awaits(Id :: binary(), pid()) -> ok | taken.
awaits(Id, Pid) ->
    gen_server:call(?MODULE, {awaits, Id, Pid}, infinity).

%% @doc Its peer has proved to have the cookie: so many lanes will knock.
-spec expects(Id :: binary(), Lanes :: pos_integer()) -> ok.
expects(Id, Lanes) ->
    gen_server:call(?MODULE, {expects, Id, Lanes}, infinity).

%% @doc It waits no more.
-spec joined(Id :: binary()) -> ok.
joined(Id) ->
    gen_server:call(?MODULE, {joined, Id}, infinity).

%% @doc Who waits for the lanes of that connection.
-spec awaiting(Id :: binary()) -> {ok, pid()} | unknown.
awaiting(Id) ->
    case ets:lookup(?LINKS, {lanes, Id}) of
        [{_, {Pid, _}}] -> {ok, Pid};
        [] -> unknown
    end.

%% @doc How many lanes may knock, of all connections that wait for them.
-spec expected() -> non_neg_integer().
expected() ->
    sum(ets:match(?LINKS, {{lanes, '_'}, {'_', '$1'}}), 0).

sum([[Lanes] | Rest], Sum) when is_integer(Lanes) -> sum(Rest, Sum + Lanes);
sum([], Sum) -> Sum.

%% @doc The connections that are up, by the names of their nodes. Those with channels are asked
%% for what these have carried.
-spec links() -> [link()].
links() ->
    Now = erlang:monotonic_time(millisecond),
    lists:append([shown(Up, Now - Since) || {_Node, #{since := Since} = Up} <- lists:sort([{N, Up} || #{node := N} = Up <- ups()])]).

ups() ->
    try
        [Up#{since => Since} || [Since, Up] <- ets:match(?LINKS, {'_', '$1', '$2'})]
    catch
        %% A node without the carrier.
        error:badarg -> []
    end.

shown(#{circuit := Circuit} = Up, AgeMs) ->
    case atoll_dist_circuits:shown(Circuit) of
        {ok, Shown} -> [maps:merge((maps:without([circuit, channel, since], Up))#{age_ms => AgeMs}, Shown)];
        ended -> []
    end;
shown(#{sockets := [Socket | _] = Sockets, rtt_us := First, channel := Channel, named := Named} = Up, AgeMs) ->
    RttUs =
        case atoll_dist_socket:rtt_us(Socket) of
            {ok, Us} -> Us;
            unknown -> First
        end,
    {In, Out} = atoll_dist_socket:bytes(Sockets),
    Link = (maps:without([sockets, channel, named, since], Up))#{rtt_us := RttUs, age_ms => AgeMs, bytes_in => In, bytes_out => Out},
    case Named andalso atoll_dist_input:figures(Channel) of
        {ok, #{channels := Channels}} when map_size(Channels) > 0 -> [Link#{channels => Channels}];
        _ -> [Link]
    end.

%% @doc How many bytes have come from a node in all lanes; unknown without any.
-spec received(node()) -> {ok, non_neg_integer()} | unknown.
received(Node) ->
    case lists:append([Sockets || #{node := Of, sockets := Sockets} <- ups(), Of =:= Node]) of
        [] ->
            unknown;
        Sockets ->
            {In, _Out} = atoll_dist_socket:bytes(Sockets),
            {ok, In}
    end.

%% @doc The process of a connection to talk to.
-spec channel(node()) -> {ok, pid() | none} | not_connected.
channel(Node) ->
    %% The last one: of one before it the end may not have been noticed yet.
    case lists:reverse(lists:sort([{Since, Channel} || #{node := Of, channel := Channel, since := Since} <- ups(), Of =:= Node])) of
        [{_, Channel} | _] -> {ok, Channel};
        [] -> not_connected
    end.

%% @doc From now on these kinds are wanted of these peers, where the configuration does
%% not say otherwise; what was preferred before is forgotten. Connections that are up
%% stay as they are.
-spec prefer(#{node() => atoll_dist_kind:asked()}) -> ok.
prefer(Kinds) ->
    %% Read by every connection attempt, and hardly ever changed.
    persistent_term:put(?MODULE, maps:from_list([{atom_to_binary(Node), Kind} || {Node, Kind} <- maps:to_list(Kinds)])).

%% @doc What was preferred last, by the names of the nodes.
-spec preferred() -> #{Node :: binary() => atoll_dist_kind:asked()}.
preferred() ->
    persistent_term:get(?MODULE, #{}).

%% @doc Writes a warning on a peer, unless the same was said of it before.
-spec say_once(What :: atom(), Peer :: binary(), Why :: unicode:chardata()) -> ok.
say_once(What, Peer, Why) ->
    case ets:insert_new(?SAID, {{What, Peer}}) of
        false ->
            ok;
        true ->
            case ets:update_counter(?SAID, What, 1, {What, 0}) =< ?MAX_SAID of
                true -> say(What, Peer, Why);
                false -> no_more(What, Peer)
            end
    end.

no_more(What, Peer) ->
    ok = forget(What, Peer),
    Last = ["The carrier has told that (", atom_to_list(What), ") of so many peers that it tells it of no more of them."],
    _ = [say(carrier_says_no_more, <<>>, Last) || ets:insert_new(?SAID, {{What, no_more}})],
    ok.

%% @doc What was said of a peer is over: it may be said again.
-spec forget(What :: atom(), Peer :: binary()) -> ok.
forget(What, Peer) ->
    _ = [ets:update_counter(?SAID, What, -1) || _ <- ets:take(?SAID, {What, Peer})],
    ok.

say(What, Peer, Why) ->
    Name = binary:part(Peer, 0, min(byte_size(Peer), ?MAX_NAME)),
    logger:warning(#{what => What, peer => Name, why => printable(unicode:characters_to_list(Why))}).

%% A stranger's name may be in it, which may be any bytes.
printable(Text) when is_list(Text) -> [C || C <- Text, C >= $\s, C < 127 orelse C > 159];
printable({_, Text, _}) -> printable(Text) ++ "...".

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    ?LINKS = ets:new(?LINKS, [named_table, {read_concurrency, true}]),
    ?SAID = ets:new(?SAID, [named_table, public]),
    Config =
        case atoll_dist_config:new(application:get_env(kernel, atoll_dist, [])) of
            {ok, Checked} = Good ->
                case atoll_dist_tls_options:check(Checked) of
                    ok -> Good;
                    {error, _} = Bad -> Bad
                end;
            {error, Error} -> {error, atoll_dist_config:format_error(Error)}
        end,
    true = ets:insert(?LINKS, {config, Config}),
    {ok, []}.

%% @private
-spec handle_call(term(), gen_server:from(), []) -> {reply, ok | taken, []} | {noreply, []}.
handle_call({awaits, Id, Pid}, _From, State) ->
    case ets:insert_new(?LINKS, {{lanes, Id}, {Pid, 0}}) of
        true ->
            _ = monitor(process, Pid),
            {reply, ok, State};
        false ->
            {reply, taken, State}
    end;
handle_call({expects, Id, Lanes}, {Pid, _}, State) ->
    true = ets:insert(?LINKS, {{lanes, Id}, {Pid, Lanes}}),
    {reply, ok, State};
handle_call({joined, Id}, _From, State) ->
    true = ets:delete(?LINKS, {lanes, Id}),
    {reply, ok, State};
handle_call(_, _From, State) ->
    {noreply, State}.

%% @private
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast({up, Pid, Since, #{node := Node} = Up}, State) ->
    _ = monitor(process, Pid),
    true = ets:insert(?LINKS, {Pid, Since, Up}),
    lists:foreach(fun(What) -> ok = forget(What, atom_to_binary(Node)) end, ?MENDED),
    {noreply, State};
handle_cast(_, State) ->
    {noreply, State}.

%% @private
-spec handle_info(term(), []) -> {noreply, []}.
handle_info({'DOWN', _, process, Pid, _}, State) ->
    true = ets:delete(?LINKS, Pid),
    true = ets:match_delete(?LINKS, {{lanes, '_'}, {Pid, '_'}}),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.
