%% SPDX-License-Identifier: Apache-2.0
%% @doc Plays sessions against a service: each user asks for what the session says, when it says so, whether the service has answered by then or not.
-module(matchstream_replay).

-export([play/3]).

-export_type([service/0]).

-type service() :: #{
    base := string(),
    host := inet:ip_address(),
    ports := [inet:port_number(), ...],
    %% the match that is asked for and followed
    match := matchstream_match:id()
}.

-define(ANSWER_MS, 10000).
%% An answer that is late is waited for at the end.
-define(END_MS, 30000).

%% @doc Plays them so many times as fast, and returns when all have ended: how many requests were not answered as they should.
-spec play(service(), [matchstream_people:session(), ...], Speed :: number()) -> {ok, Failed :: non_neg_integer()}.
play(Service, [{First, _} | _] = Sessions, Speed) ->
    Begun = erlang:monotonic_time(millisecond),
    Own = self(),
    New = #{socket => none, asking => [], failed => 0},
    Users = [
        spawn_link(fun() -> Own ! {self(), user(Service, User, Requests, Begun, Start - First, Speed, New)} end)
     || {N, {Start, Requests}} <- lists:zip(lists:seq(1, length(Sessions)), Sessions), User <- [iolist_to_binary(["user.", integer_to_list(N)])]
    ],
    {ok, lists:sum([receive {User, Failed} -> Failed end || User <- Users])}.

user(_, _, [], _, _, _, #{socket := Socket, asking := Asking, failed := Failed}) ->
    _ = [gen_tcp:close(Socket) || Socket =/= none],
    Failed + length([late || {Pid, Ref} <- Asking, not answered(Pid, Ref)]);
user(Service, User, [{Gap, Kind} | Requests], Begun, At, Speed, State) ->
    Due = At + Gap,
    receive after max(0, Begun + round(Due / Speed) - erlang:monotonic_time(millisecond)) -> ok end,
    user(Service, User, Requests, Begun, Due, Speed, asked(Kind, Service, User, State)).

answered(Pid, Ref) ->
    receive
        {'DOWN', Ref, process, Pid, Why} -> Why =:= normal
    after ?END_MS -> false
    end.

%% A connection is the user's own, so that it can be left; whoever has one does not ask for another.
asked(watch, #{host := Host, ports := Ports, match := Match}, User, #{socket := none, failed := Failed} = State) ->
    case gen_tcp:connect(Host, lists:nth(rand:uniform(length(Ports)), Ports), [binary, {active, false}], ?ANSWER_MS) of
        {ok, Socket} ->
            _ = gen_tcp:send(Socket, matchstream_protocol:encode_request({match, User, Match})),
            State#{socket := Socket};
        {error, _} -> State#{failed := Failed + 1}
    end;
asked(leave, _, _, #{socket := Socket} = State) ->
    _ = [gen_tcp:close(Socket) || Socket =/= none],
    State#{socket := none};
asked(watch, _, _, State) -> State;
asked(Kind, #{base := Base, match := Match}, User, #{asking := Asking} = State) ->
    Url = Base ++ path(Kind, binary_to_list(Match)),
    Asked = spawn_monitor(fun() ->
        case httpc:request(get, {Url, [{"match-stream-user", binary_to_list(User)}]}, [{timeout, ?ANSWER_MS}], [{body_format, binary}]) of
            {ok, {{_, 200, _}, _, _}} -> ok;
            Other -> exit({shutdown, Other})
        end
    end),
    State#{asking := [Asked | Asking]}.

path(page, _) -> "/";
path(matches, _) -> "/1/matches";
path(match, Id) -> "/1/match/" ++ Id;
path(history, Id) -> "/1/match/" ++ Id ++ "/history";
path(port, _) -> "/1/port";
path(simulator, _) -> "/1/simulator".
