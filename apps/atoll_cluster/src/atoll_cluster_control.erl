%% SPDX-License-Identifier: Apache-2.0
%% @doc How other VMs of the same user reach a cluster: a socket in its run
%% directory, which is open to that user alone, and two requests.
%%
%% A request is the external form of `status' or `stop', framed by four bytes
%% of length, and so is the answer. Nothing else is understood, and no atom is
%% made from what comes in. A connection carries one request, and one is served
%% at a time; the others wait in the socket's backlog, or are turned away.
-module(atoll_cluster_control).

-export([listen/2, ask/2]).

-type request() :: status | stop.

-define(REQUEST_BYTES, 64).
-define(REQUEST_MS, 1000).
%% A status waits for silent nodes, twice two seconds at most.
-define(STATUS_MS, 10000).
%% The server gives up after 20 seconds.
-define(STOP_MS, 25000).

%% @doc Answers on a socket, in a process of its own, until the caller ends:
%% the listening socket is the caller's.
-spec listen(file:filename(), fun((request()) -> Answer :: term())) ->
    ok | {error, {control, file:filename(), term()}}.
listen(Path, Serve) ->
    Options = [{ifaddr, {local, Path}}, binary, {packet, 4}, {packet_size, ?REQUEST_BYTES},
        {active, false}],
    case gen_tcp:listen(0, Options) of
        {ok, Listen} ->
            %% Not linked: it outlives the cluster for as long as it takes to
            %% tell the one who asked that the cluster has stopped.
            _ = proc_lib:spawn(fun() -> accept(Listen, Serve) end),
            ok;
        {error, Reason} ->
            {error, {control, Path, Reason}}
    end.

accept(Listen, Serve) ->
    case gen_tcp:accept(Listen) of
        {ok, Socket} ->
            %% One who goes away before the answer is no concern of ours.
            _ = answer(Socket, Serve),
            ok = gen_tcp:close(Socket),
            accept(Listen, Serve);
        {error, closed} ->
            ok
    end.

answer(Socket, Serve) ->
    case gen_tcp:recv(Socket, 0, ?REQUEST_MS) of
        {ok, Bin} ->
            case request(Bin) of
                {ok, Request} -> send(Socket, {ok, Serve(Request)});
                unknown -> send(Socket, {error, unknown_request})
            end;
        {error, _} = Error ->
            Error
    end.

request(Bin) ->
    try binary_to_term(Bin, [safe]) of
        Request when Request =:= status; Request =:= stop -> {ok, Request};
        _ -> unknown
    catch
        error:badarg -> unknown
    end.

%% @doc Asks who answers on a socket.
-spec ask(file:filename(), request()) -> {ok, Answer :: term()} | {error, no_answer}.
ask(Path, Request) ->
    Options = [binary, {packet, 4}, {active, false}],
    case gen_tcp:connect({local, Path}, 0, Options, ?REQUEST_MS) of
        {ok, Socket} ->
            Answer = exchange(Socket, Request),
            ok = gen_tcp:close(Socket),
            Answer;
        {error, _} ->
            {error, no_answer}
    end.

exchange(Socket, Request) ->
    case send(Socket, Request) of
        ok ->
            case gen_tcp:recv(Socket, 0, deadline(Request)) of
                {ok, Bin} ->
                    %% Which knows the states that a node may have: only known atoms are read.
                    {module, _} = code:ensure_loaded(atoll_cluster_local),
                    binary_to_term(Bin, [safe]);
                {error, _} -> {error, no_answer}
            end;
        {error, _} ->
            {error, no_answer}
    end.

send(Socket, Term) ->
    gen_tcp:send(Socket, term_to_binary(Term)).

deadline(status) -> ?STATUS_MS;
deadline(stop) -> ?STOP_MS.
