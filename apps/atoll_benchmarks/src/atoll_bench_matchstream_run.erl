%% SPDX-License-Identifier: Apache-2.0
%% @doc Loads of MatchStream, over its two interfaces alone: clients that follow a match, and clients that connect all at once. The
%% benchmark and the driver of `atoll scale' both make them. A service of its own for them is started here too.
%%
%% A load has a match of its own, which it starts and ends, so one may come after another on the same service. A client has got all of
%% it if it got a status and then as many events, and the same ones, as most others.
-module(atoll_bench_matchstream_run).

-export([start/2, ready/1, webs/1, stop/1, follow/1, connect/1]).

-export_type([shape/0, ready/0, following/0, followed/0, connecting/0, connected/0]).

%% What was started with a load ends by the exit of its process.
-dialyzer({nowarn_function, apart/1}).

-type shape() :: #{switches := [matchstream_switches:name()], store := mnesia | redis}.

-type ready() :: #{
    cluster := atoll_cluster:cluster(),
    %% where the web interface of each node is
    webs := [string(), ...],
    redis := {pid(), atoll_cluster_daemon:daemon()} | none
}.

-type following() :: #{
    %% of those that do not answer nothing is taken; the first one must
    webs := [string(), ...],
    clients := pos_integer(),
    %% that connect at a time, each until it was greeted
    at_once := pos_integer(),
    %% between the start of the match and its end, so many in a second; with 0 each when the one before was acknowledged
    events := pos_integer(),
    rate := number(),
    %% called when all of them follow
    held => fun(() -> term())
}.

-type followed() :: #{
    clients := pos_integer(),
    %% got all of it
    complete := non_neg_integer(),
    unconnected := non_neg_integer(),
    refused := non_neg_integer(),
    %% were connected, and did not get all
    lost := non_neg_integer(),
    %% from when the watcher has sent an event to when a client had it, nanoseconds
    latency := atoll_histogram:export(),
    delivered_per_s := float(),
    %% from the first connection until all that connected did follow
    following_ms := non_neg_integer(),
    held := term()
}.

-type connecting() :: #{webs := [string(), ...], clients := pos_integer(), ms := pos_integer()}.

-type connected() :: #{
    %% of all bursts
    requests := pos_integer(),
    failures := non_neg_integer(),
    %% from the first packet to the status, nanoseconds
    times := atoll_histogram:export(),
    reasons := #{binary() => pos_integer()}
}.

-define(NODES, 3).
-define(FLAGS, ["+sbwt", "none"]).
-define(READY_MS, 60_000).
-define(LOOK_MS, 20).
-define(ANSWER_MS, 5000).
%% Asked so often, one of eight ports is hardly left out.
-define(ASK_PORTS, 40).
%% For all to connect: so long, and so long for each. One that waits for a queue which is full tries again after a second.
-define(CONNECT_MS, 3000).
-define(CONNECT_EACH_MS, 3).
%% If not one more follows in that time, no more will.
-define(STALL_MS, 2000).
-define(END_MS, 5000).
-define(GONE_MS, 1000).
-define(PATIENCE_MS, 5000).
%% Of one address of the machine.
-define(PER_ADDRESS, 20_000).

%% @doc Starts a service, whose owner is the caller. After an error nothing is left.
-spec start(shape(), Further :: #{atom() => term()}) -> {ok, ready()} | {error, unicode:chardata()}.
start(#{switches := Switches, store := Store}, Further) ->
    {ok, _} = application:ensure_all_started(inets),
    case stored(Store) of
        {ok, Keeper, Redis} ->
            Nodes = case lists:member(nodes, Switches) of true -> ?NODES; false -> 1 end,
            #{args := Args} = Options = matchstream_cluster:options(#{nodes => Nodes, store => Keeper, switches => Switches}),
            Started = atoll_bench_nodes:start(maps:merge(Options#{args := fun(Names) -> ?FLAGS ++ Args(Names) end}, Further), fun(Cluster) ->
                case ready(Cluster) of
                    ok -> {ok, #{cluster => Cluster, webs => [Base || {_, _, Base} <- webs(Cluster)], redis => Redis}};
                    {error, _} = Error -> Error
                end
            end),
            _ = [gone(Redis) || element(1, Started) =:= error],
            Started;
        {error, _} = Error ->
            Error
    end.

stored(mnesia) ->
    {ok, #{module => matchstream_store_mnesia}, none};
stored(redis) ->
    %% Its folder goes whatever becomes of this VM.
    case atoll_cluster_daemon:open("matchstream") of
        {ok, Daemon} ->
            case matchstream_redis:start_link(filename:join(atoll_cluster_daemon:dir(Daemon), "redis")) of
                {ok, Redis} -> {ok, #{module => matchstream_store_redis, socket => matchstream_redis:socket(Redis)}, {Redis, Daemon}};
                {error, _} = Error ->
                    ok = atoll_cluster_daemon:stop(Daemon),
                    Error
            end;
        {error, _} = Error -> Error
    end.

gone(none) -> ok;
gone({Redis, Daemon}) ->
    ok = matchstream_redis:stop(Redis),
    atoll_cluster_daemon:stop(Daemon).

%% @doc Waits until the stores of all nodes are ready: nobody tells when.
-spec ready(atoll_cluster:cluster()) -> ok | {error, Sentence :: string()}.
ready(Cluster) -> ready(Cluster, now_ms() + ?READY_MS).

ready(Cluster, Deadline) ->
    case {lists:all(fun({_, Said}) -> Said =:= {ok, true} end, atoll_cluster:multicall(Cluster, matchstream_store, is_ready, [])), now_ms() < Deadline} of
        {true, _} -> ok;
        {false, true} ->
            receive after ?LOOK_MS -> ok end,
            ready(Cluster, Deadline);
        {false, false} -> {error, "The store does not come to be ready."}
    end.

%% @doc Of each node its ports for clients, and where its web interface is.
-spec webs(atoll_cluster:cluster()) -> [{node(), [inet:port_number()], Base :: string()}].
webs(Cluster) ->
    [
        begin
            #{ports := Ports, web := Web} = atoll_cluster:call(Cluster, Node, matchstream, status, []),
            {Node, Ports, "http://127.0.0.1:" ++ integer_to_list(Web)}
        end
     || Node <- atoll_cluster:nodes(Cluster)
    ].

%% @doc Takes it down.
-spec stop(ready()) -> ok.
stop(#{cluster := Cluster, redis := Redis}) ->
    ok = atoll_bench_nodes:stop(Cluster),
    gone(Redis).

now_ms() -> erlang:monotonic_time(millisecond).

looked(Next) ->
    receive after ?LOOK_MS -> ok end,
    Next().

%% What a function says, in a process of its own: whatever that has started is linked with it, and ends with it, or with the caller.
apart(Fun) ->
    Caller = self(),
    Ref = make_ref(),
    _ = spawn_link(fun() ->
        Said = Fun(),
        true = unlink(Caller),
        Caller ! {Ref, Said},
        exit(shutdown)
    end),
    receive {Ref, Said} -> Said end.

%% Clients that follow

%% @doc Plays a match before so many clients. An error is that of the service before or after them.
-spec follow(following()) -> {ok, followed()} | {error, unicode:chardata()}.
follow(#{webs := Webs} = Options) ->
    apart(fun() ->
        case begun(Webs) of
            {ok, Begun} -> watched(Begun, Options);
            {error, _} = Error -> Error
        end
    end).

%% A match that has started, and where clients connect.
begun([Base | Others]) ->
    {ok, _} = application:ensure_all_started(inets),
    Home = <<"h", (integer_to_binary(erlang:system_time(microsecond), 36))/binary>>,
    About = #{home => Home, visit => <<"v">>, start_date => {2026, 3, 14}},
    case played(Base, About, []) of
        {ok, #{id := Id}} ->
            case ports(Base) of
                [] ->
                    {error, [Base, " does not name a port for clients."]};
                Ports ->
                    There = [{Other, More} || Other <- Others, [_ | _] = More <- [ports(Other)]],
                    {ok, #{base => Base, webs => [Base | [Other || {Other, _} <- There]], about => About, id => Id, ports => Ports ++ lists:append([More || {_, More} <- There])}}
            end;
        {error, _} = Error ->
            Error
    end.

%% The match from its start. An event that was sent before is taken for that one.
played(Base, About, Steps) ->
    case matchstream_watcher:play(Base, #{about => About, steps => [{start, []} | Steps]}, #{patience_ms => ?PATIENCE_MS}) of
        {ok, _} = Ok -> Ok;
        {error, Error} -> {error, matchstream_watcher:format_error(Error)}
    end.

ports(Base) ->
    case asked(Base ++ "/1/port") of
        {ok, First} -> lists:usort([Port || Text <- [First | [More || _ <- lists:seq(2, ?ASK_PORTS), {ok, More} <- [asked(Base ++ "/1/port")]]], {ok, #{<<"port">> := Port}} <- [atoll_bench_json:decode(Text)]]);
        error -> []
    end.

asked(Url) ->
    case httpc:request(get, {Url, []}, [{timeout, ?ANSWER_MS}], [{body_format, binary}]) of
        {ok, {{_, 200, _}, _, Text}} -> {ok, Text};
        _ -> error
    end.

watched(#{webs := Webs, id := Id, ports := Ports} = Begun, #{clients := Count, at_once := AtOnce} = Options) ->
    Before = before(Webs, now_ms() + ?GONE_MS),
    Since = now_ms(),
    Viewers = matchstream_viewers:start(#{
        host => {127, 0, 0, 1}, ports => Ports, match => Id, count => Count, at_once => AtOnce, greeted => true, from => matchstream_viewers:addresses(1 + Count div ?PER_ADDRESS)
    }),
    Ms = ?CONNECT_MS + ?CONNECT_EACH_MS * Count,
    case matchstream_viewers:connected(Viewers, Ms) of
        {ok, {Connected, _}} ->
            ok = following(Webs, Before + Connected, Before, now_ms()),
            FollowingMs = now_ms() - Since,
            Held = (maps:get(held, Options, fun() -> none end))(),
            ended(Viewers, Begun, Options, #{following_ms => FollowingMs, held => Held});
        timeout ->
            {error, io_lib:format("Some of ~b clients have not connected within ~b ms.", [Count, Ms])}
    end.

%% Those of the match before may still be on their way.
before(Webs, Deadline) ->
    case {clients(Webs), now_ms() < Deadline} of
        {N, true} when N > 0 -> looked(fun() -> before(Webs, Deadline) end);
        {N, _} -> N
    end.

%% How many follow a match, of all that there are.
clients(Webs) ->
    lists:sum([
        binary_to_integer(N)
     || Web <- Webs, {ok, Text} <- [asked(Web ++ "/metrics")],
        {match, [N]} <- [re:run(Text, "^matchstream_clients (\\d+)$", [multiline, {capture, [1], binary}])]
    ]).

%% Those that are connected are not yet served, and some may never be.
following(Webs, Wanted, Last, Since) ->
    case clients(Webs) of
        N when N >= Wanted -> ok;
        N when N > Last -> looked(fun() -> following(Webs, Wanted, N, now_ms()) end);
        _ ->
            case now_ms() - Since < ?STALL_MS of
                true -> looked(fun() -> following(Webs, Wanted, Last, Since) end);
                false -> ok
            end
    end.

ended(Viewers, #{base := Base, about := #{home := Home} = About}, #{clients := Count, events := Events, rate := Rate}, Beside) ->
    Pauses = [{sleep, round(1000 / Rate)} || Rate > 0],
    Steps = lists:append([Pauses ++ [{shot, [{team, Home}]}] || _ <- lists:seq(1, Events)]) ++ Pauses ++ [{stop, []}],
    case played(Base, About, Steps) of
        {ok, #{sent := Sent}} ->
            Seens = case matchstream_viewers:ended(Viewers, ?END_MS) of {ok, Seen} -> Seen; timeout -> [] end,
            {ok, maps:merge(Beside, judged(Seens, Count, Events + 2, Sent))};
        {error, _} = Error ->
            Error
    end.

%% The first of so many events was the start.
judged(Seens, Count, Total, Sent) ->
    Whole = [Seen || #{failed := none, status := <<_/binary>>, last := <<"stop">>, at := At} = Seen <- Seens, length(At) =:= Total - 1],
    Hashes = maps:groups_from_list(fun(#{hash := Hash}) -> Hash end, Whole),
    Complete = lists:foldl(fun(Same, Most) -> case length(Same) > length(Most) of true -> Same; false -> Most end end, [], maps:values(Hashes)),
    Unconnected = length([1 || #{failed := {connect, _}} <- Seens]),
    Refused = length([1 || #{failed := {told, _}} <- Seens]),
    Latency = atoll_histogram:new(few),
    _ = [
        atoll_histogram:record(1000 * max(0, Came - map_get(Total - Back, Sent)), Latency)
     || #{at := At} <- Complete, {Back, Came} <- lists:zip(lists:seq(0, Total - 2), At)
    ],
    Us = lists:max([1 | [Last - map_get(2, Sent) || #{at := [Last | _]} <- Complete]]),
    #{
        clients => Count, complete => length(Complete), unconnected => Unconnected, refused => Refused, lost => Count - length(Complete) - Unconnected - Refused,
        latency => atoll_histogram:export(Latency), delivered_per_s => length(Complete) * (Total - 1) * 1.0e6 / Us
    }.

%% Clients that connect at once

%% @doc Has so many clients connect at the same time, wait for a status, and go when all have one or have failed; again and again for
%% so long. An error is that of the service before or after them.
-spec connect(connecting()) -> {ok, connected()} | {error, unicode:chardata()}.
connect(#{webs := Webs, clients := Count, ms := Ms}) ->
    apart(fun() ->
        case begun(Webs) of
            {ok, #{base := Base, about := About} = Begun} ->
                Times = atoll_histogram:new(few),
                Words = bursts(Begun, Count, now_ms() + Ms, Times, []),
                case played(Base, About, [{stop, []}]) of
                    {ok, _} ->
                        Reasons = maps:map(fun(_, Same) -> length(Same) end, maps:groups_from_list(fun(Word) -> Word end, [Word || Word <- Words, Word =/= ok])),
                        {ok, #{requests => length(Words), failures => lists:sum(maps:values(Reasons)), times => atoll_histogram:export(Times), reasons => Reasons}};
                    {error, _} = Error ->
                        Error
                end;
            {error, _} = Error ->
                Error
        end
    end).

bursts(Begun, Count, Until, Times, Words) ->
    More = burst(Begun, Count, Times) ++ Words,
    case now_ms() < Until of
        true -> bursts(Begun, Count, Until, Times, More);
        false -> More
    end.

burst(#{id := Id, ports := Ports}, Count, Times) ->
    Own = self(),
    Request = matchstream_protocol:encode_request({match, <<"viewer">>, Id}),
    Pids = [
        spawn_link(fun() ->
            receive go -> ok end,
            Begun = erlang:monotonic_time(nanosecond),
            {Word, Socket} = client(lists:nth(1 + N rem length(Ports), Ports), Request),
            ok = atoll_histogram:record(erlang:monotonic_time(nanosecond) - Begun, Times),
            Own ! {self(), Word},
            receive close -> ok end,
            _ = [gen_tcp:close(Socket) || Socket =/= none],
            Own ! {self(), closed}
        end)
     || N <- lists:seq(1, Count)
    ],
    _ = [Pid ! go || Pid <- Pids],
    Words = [receive {Pid, Word} -> Word end || Pid <- Pids],
    _ = [Pid ! close || Pid <- Pids],
    _ = [receive {Pid, closed} -> ok end || Pid <- Pids],
    Words.

client(Port, Request) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {recbuf, 8192}, {buffer, 2048}], ?ANSWER_MS) of
        {ok, Socket} ->
            case gen_tcp:send(Socket, Request) of
                ok -> {status(Socket, matchstream_protocol:new(), now_ms() + ?ANSWER_MS), Socket};
                {error, Why} -> {word(Why), Socket}
            end;
        {error, Why} ->
            {word(Why), none}
    end.

status(Socket, Decoder, Deadline) ->
    case gen_tcp:recv(Socket, 0, max(0, Deadline - now_ms())) of
        {ok, Bytes} ->
            case matchstream_protocol:decode(Bytes, Decoder) of
                {[{event, #{kind := <<"status">>}, _} | _], _} -> ok;
                {[], Next} when Next =/= bad -> status(Socket, Next, Deadline);
                {[{error, _} | _], _} -> <<"told">>;
                _ -> <<"other">>
            end;
        {error, Why} ->
            word(Why)
    end.

word(Why) when is_atom(Why) -> atom_to_binary(Why);
word(_) -> <<"other">>.
