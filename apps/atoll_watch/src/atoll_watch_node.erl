%% SPDX-License-Identifier: Apache-2.0
%% @doc One node that is watched: asks its agent, and puts the agent there where there is none.
%% The agent stays until the watcher, a process of this VM, leaves or is lost.
-module(atoll_watch_node).

-export([sample/4, leave/3]).

-export_type([failure/0]).

-type failure() ::
    %% There is no connection, and none could be made; or it is cut.
    down
    %% There is a connection, and no answer within the time.
    | silent
    %% It answers, and cannot be watched: why, in a sentence.
    | {refused, unicode:chardata()}.

-define(AGENT, atoll_watch_agent).
%% Another agent may go while this one is put there.
-define(TRIES, 5).
-define(IPPROTO_TCP, 6).
-define(TCP_INFO, 11).
%% That takes more than a second.
-define(SENT_AGAIN, 3).

%% @doc What a node says, and how many milliseconds that took. Of its modules it says nothing if they are those that the watcher knows.
-spec sample(node(), Watcher :: pid(), Has :: atoll_watch_agent:code(), timeout()) -> {ok, atoll_watch_agent:sample(), number()} | {error, failure()}.
sample(Node, Watcher, Has, Ms) ->
    Begun = erlang:monotonic_time(microsecond),
    case ask(Node, Watcher, {sample, Watcher, ?AGENT:version(), Has}, ?TRIES, Begun div 1000 + Ms) of
        {ok, #{readings := Readings, clock := Clock} = Sample, Sent, Got} ->
            Took = (erlang:monotonic_time(microsecond) - Begun) / 1000,
            {ok, Sample#{readings := [{answer_time, Took} | clock(Sent, Clock, Got)] ++ Readings}, Took};
        {error, _} = Error ->
            Error
    end.

%% How far its clock is before that of this machine, as NTP has it: as if the way there took as long as the way back.
clock(Sent, {Came, Said}, Got) ->
    [{clock_offset, ((Came - Sent) + (Said - Got)) / 2000}, {clock_uncertainty, max(0, (Got - Sent) - (Said - Came)) / 2000}].

ask(Node, Watcher, Request, Tries, Deadline) ->
    Sent = os:system_time(microsecond),
    case call(Node, Request, left(Deadline)) of
        {ok, Answer} -> {ok, Answer, Sent, os:system_time(microsecond)};
        noconnection -> {error, down};
        timeout -> {error, late(Node)};
        %% One that nobody needs goes by itself; to load another one under it would change its code.
        {error, other_version} when Tries > 0 -> ask(Node, Watcher, Request, Tries - 1, Deadline);
        {error, other_version} -> {error, refused(Node)};
        %% It is not there yet, or about to go.
        gone -> again(Node, Watcher, Request, Tries, Deadline)
    end.

call(Node, Request, Ms) ->
    case atoll_view_put:ask(Node, ?AGENT, Request, Ms) of
        {ok, Answer} -> Answer;
        Not -> Not
    end.

again(Node, _Watcher, _Request, 0, _Deadline) ->
    {error, refused(Node)};
again(Node, Watcher, Request, Tries, Deadline) ->
    case put_there(Node, Watcher, left(Deadline)) of
        ok -> ask(Node, Watcher, Request, Tries - 1, Deadline);
        {error, _} = Error -> Error
    end.

refused(Node) ->
    {refused, [atom_to_list(Node), " cannot be watched: another version of this program watches it, or its agent does not stay there."]}.

put_there(Node, Watcher, Ms) ->
    case atoll_view_put:put(Node, atoll_view_put:code(?AGENT:modules()), ?AGENT, Watcher, Ms) of
        ok -> ok;
        {error, noconnection} -> {error, down};
        {error, timeout} -> {error, late(Node)};
        {error, {not_loaded, Reason}} -> {error, not_loaded(Node, Reason)}
    end.

not_loaded(Node, Reason) ->
    {refused, io_lib:format("~ts cannot be watched: it does not take the agent: ~0tP.", [Node, Reason, 10])}.

late(Node) ->
    case lists:keyfind(Node, 1, erlang:system_info(dist_ctrl)) of
        {_, Controller} ->
            case is_cut(Controller) of
                %% TCP waits twice as long each time: a new connection is there sooner once packets come through again.
                true -> _ = erlang:disconnect_node(Node), down;
                false -> silent
            end;
        false -> down
    end.

%% Whether even the other machine does not acknowledge what it was sent, and sent again: `tcpi_retransmits' of Linux. Other
%% systems do not say.
is_cut(Port) when is_port(Port) ->
    case inet:getopts(Port, [{raw, ?IPPROTO_TCP, ?TCP_INFO, 3}]) of
        {ok, [{raw, _, _, <<_State, _Congestion, Again>>}]} -> Again >= ?SENT_AGAIN;
        _ -> false
    end;
is_cut(_) ->
    false.

left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

%% @doc The watcher asks no more. A node that does not say so in time will see it.
-spec leave(node(), Watcher :: pid(), timeout()) -> ok.
leave(Node, Watcher, Ms) ->
    _ = call(Node, {leave, Watcher}, Ms),
    ok.
