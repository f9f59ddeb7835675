%% SPDX-License-Identifier: Apache-2.0
%% @doc A process that holds some clients: it knows the protocol and nothing else of the service, and understands no event.
%%
%% What clients do is one of four things. `follow': a status first, then each event, to the end. `go_on': all events
%% from the first; one whose connection ends before the match does connects again, to the next port, and asks for what comes after
%% the last event that it has. `read_nothing': it asks, and then reads nothing. `say_nothing': it connects, and waits.
-module(matchstream_viewer).

-export([group/3, new/0, hashed/2]).

-export_type([options/0, does/0, seen/0]).

-type does() :: follow | go_on | read_nothing | say_nothing.

-type options() :: #{
    host := inet:ip_address(),
    ports := [inet:port_number(), ...],
    %% who goes on needs to say which one
    match := matchstream_match:id() | first,
    %% from which addresses, by turns
    from => [inet:ip_address(), ...],
    does => does(),
    %% whether a client connects until the service has greeted it, and not until the system has a connection, which may
    %% wait to be accepted
    greeted => boolean(),
    _ => _
}.

-type seen() :: #{
    status := binary() | none,
    %% their hash, and when each came, microseconds of the system's clock, the last first
    hash := non_neg_integer(), at := [integer()],
    last := binary() | none,
    failed := none | {connect | read, term()} | {told, binary()} | bad,
    %% how often it has connected again
    again := non_neg_integer(),
    %% whether it has asked for all events, and so for no status
    wants_all := boolean()
}.

-record(state, {
    owner :: pid(),
    options :: options(),
    %% each client by its socket
    open = #{} :: #{gen_tcp:socket() => {N :: pos_integer(), matchstream_protocol:decoder(), seen()}},
    %% those that connect again
    connecting = 0 :: non_neg_integer(),
    done = [] :: [seen()]
}).

-define(CONNECT_MS, 20000).
-define(GREETING_MS, 5000).
%% Clients whose node is gone try so often, with pauses.
-define(TRIES, 300).
-define(AGAIN_MS, 100).

%% @doc Clients with these numbers. Each asks the gate before it connects. The owner, which is the caller, gets
%% `{Pid, connected, N, Failed}', and when all have ended, or it has told the process to `give_up', `{Pid, ended, [seen()]}'.
-spec group(Gate :: pid(), Numbers :: [pos_integer()], options()) -> pid().
group(Gate, Numbers, Options) ->
    Owner = self(),
    proc_lib:spawn_link(fun() -> begun(Owner, Gate, Numbers, Options) end).

%% @doc A client that has got nothing.
-spec new() -> seen().
new() -> #{status => none, hash => 0, at => [], last => none, failed => none, again => 0, wants_all => false}.

%% @doc The hash of some events with one more.
-spec hashed(Event :: binary(), non_neg_integer()) -> non_neg_integer().
hashed(Bytes, Hash) -> erlang:phash2({Hash, Bytes}, 1 bsl 32).

begun(Owner, Gate, Numbers, Options) ->
    New = (new())#{wants_all := does(Options) =:= go_on},
    Tried = [{N, through(Gate, fun() -> connected(N, New, Options) end)} || N <- Numbers],
    Open = maps:from_list([{Socket, {N, decoder(Options), New}} || {N, {ok, Socket}} <- Tried]),
    Failed = [New#{failed := {connect, Why}} || {_, {error, Why}} <- Tried],
    Owner ! {self(), connected, map_size(Open), length(Failed)},
    _ = [read(Socket, Options) || Socket <- maps:keys(Open)],
    follow(#state{owner = Owner, options = Options, open = Open, done = Failed}).

does(Options) -> maps:get(does, Options, follow).

%% So many may connect at a time.
through(Gate, Fun) ->
    Gate ! {may, self()},
    receive {Gate, go} -> ok end,
    Answer = Fun(),
    Gate ! done,
    Answer.

%% It asks at once: the service does not wait for the others of the group.
connected(N, #{at := At, again := Again}, #{host := Host, ports := Ports, match := Match} = Options) ->
    From = maps:get(from, Options, [{127, 0, 0, 1}]),
    Socket = [binary, {active, false}, {recbuf, case does(Options) of read_nothing -> 1024; _ -> 8192 end}, {buffer, 2048}, {ip, turn(N, From)}],
    User = iolist_to_binary(["viewer.", integer_to_list(N)]),
    Request = case {does(Options), Match} of
        {say_nothing, _} -> [];
        {go_on, Id} -> matchstream_protocol:encode_request({rest, User, Id, length(At)});
        {_, first} -> matchstream_protocol:encode_request({first, User});
        {_, Id} -> matchstream_protocol:encode_request({match, User, Id})
    end,
    case gen_tcp:connect(Host, turn(N + Again, Ports), Socket, ?CONNECT_MS) of
        {ok, Is} ->
            %% Whether it could be sent is seen when it is read.
            _ = gen_tcp:send(Is, Request),
            greeted(Is, Options);
        {error, _} = Error -> Error
    end.

greeted(Socket, #{greeted := true}) ->
    case gen_tcp:recv(Socket, byte_size(matchstream_protocol:greeting()), ?GREETING_MS) of
        {ok, _} -> {ok, Socket};
        {error, _} = Error ->
            ok = gen_tcp:close(Socket),
            Error
    end;
greeted(Socket, #{}) -> {ok, Socket}.

%% What was read of it already, if anything.
decoder(#{greeted := true}) ->
    {[], Decoder} = matchstream_protocol:decode(matchstream_protocol:greeting(), matchstream_protocol:new()),
    Decoder;
decoder(#{}) -> matchstream_protocol:new().

turn(N, List) -> lists:nth(1 + N rem length(List), List).

read(Socket, Options) -> _ = [inet:setopts(Socket, [{active, true}]) || does(Options) =/= read_nothing], ok.

follow(#state{owner = Owner, open = Open, connecting = 0, done = Done}) when map_size(Open) =:= 0 ->
    Owner ! {self(), ended, Done},
    ok;
follow(#state{owner = Owner, options = Options, open = Open, connecting = Connecting, done = Done} = S) ->
    receive
        {tcp, Socket, Bytes} ->
            #{Socket := {N, Decoder, Seen}} = Open,
            Now = erlang:system_time(microsecond),
            case matchstream_protocol:decode(Bytes, Decoder) of
                {Frames, bad} ->
                    ok = gen_tcp:close(Socket),
                    follow(S#state{open = maps:remove(Socket, Open), done = [(got(Frames, Now, Seen))#{failed := bad} | Done]});
                {Frames, Next} ->
                    follow(S#state{open = Open#{Socket := {N, Next, got(Frames, Now, Seen)}}})
            end;
        {tcp_closed, Socket} ->
            {{N, _, Seen}, Others} = maps:take(Socket, Open),
            follow(closed(N, Seen, S#state{open = Others}));
        {tcp_error, Socket, Why} ->
            #{Socket := {N, Decoder, Seen}} = Open,
            follow(S#state{open = Open#{Socket := {N, Decoder, Seen#{failed := {read, Why}}}}});
        {again, N, Seen, {ok, Socket}} ->
            ok = read(Socket, Options),
            follow(S#state{open = Open#{Socket => {N, decoder(Options), Seen}}, connecting = Connecting - 1});
        {again, _, Seen, {error, Why}} ->
            follow(S#state{connecting = Connecting - 1, done = [Seen#{failed := {connect, Why}} | Done]});
        give_up ->
            _ = [gen_tcp:close(Socket) || Socket <- maps:keys(Open)],
            Owner ! {self(), ended, [Seen || {_, _, Seen} <- maps:values(Open)] ++ Done},
            ok
    end.

got(Frames, Now, Seen) -> lists:foldl(fun(Frame, Is) -> frame(Frame, Now, Is) end, Seen, Frames).

frame({error, Sentence}, _, Seen) -> Seen#{failed := {told, Sentence}};
frame({event, #{kind := <<"status">>}, Bytes}, _, #{status := none, wants_all := false} = Seen) -> Seen#{status := Bytes};
frame({event, #{kind := Kind}, Bytes}, Now, #{hash := Hash, at := At} = Seen) -> Seen#{hash := hashed(Bytes, Hash), at := [Now | At], last := Kind}.

%% Another process connects, so that the others of the group do not wait.
closed(N, #{wants_all := true, last := Last, again := Again} = Seen, #state{options = Options, connecting = Connecting} = S)
  when Again < ?TRIES, Last =/= <<"stop">>, Last =/= <<"cancel">> ->
    Own = self(),
    _ = erlang:spawn_link(fun() -> again(Own, N, Seen#{failed := none, again := Again + 1}, Options) end),
    S#state{connecting = Connecting + 1};
closed(_, Seen, #state{done = Done} = S) -> S#state{done = [Seen | Done]}.

again(Group, N, #{again := Again} = Seen, Options) ->
    receive after ?AGAIN_MS -> ok end,
    case connected(N, Seen, Options) of
        {ok, Socket} ->
            ok = gen_tcp:controlling_process(Socket, Group),
            Group ! {again, N, Seen, {ok, Socket}};
        {error, _} when Again < ?TRIES -> again(Group, N, Seen#{again := Again + 1}, Options);
        {error, _} = Error -> Group ! {again, N, Seen, Error}
    end.
