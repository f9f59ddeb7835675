%% SPDX-License-Identifier: Apache-2.0
%% @doc The way between the two nodes of the benchmark {@link atoll_bench_dist} where it is no
%% plain connection: over a third node, for which the carrier asks here, so that no directory has
%% to be made; or over a small program that forwards between two sockets.
-module(atoll_bench_dist_way).
-behaviour(gen_server).

-export([over/2, relayed/1, own/1, forward/1, stop/1, port/1, through/2, connect/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-export_type([forward/0]).

%% The program, and the port on which it listens.
-type forward() :: {port(), inet:port_number()}.

-type answer() :: ok | {error, unicode:chardata()}.

-define(READY_MS, 10000).
-define(LOOPBACK, "127.0.0.1").

%% @doc Connects this node with the gateway; from now on it reaches the other node over that,
%% and every further one by a connection of its own.
-spec over(Gateway :: node(), To :: node()) -> answer().
over(Gateway, To) ->
    case net_kernel:connect_node(Gateway) of
        true ->
            {ok, _} = gen_server:start({local, ?MODULE}, ?MODULE, {Gateway, To}, []),
            atoll_dist:router(?MODULE);
        _ ->
            {error, io_lib:format("~ts cannot be connected with ~ts", [node(), Gateway])}
    end.

%% @doc Whether the connection with the other node is a circuit, and whether that is sealed.
-spec relayed(node()) -> no | {relayed, Sealed :: boolean()}.
relayed(To) ->
    case connection(To) of
        #{kind := relay, sealed := Sealed} -> {relayed, Sealed};
        _ -> no
    end.

connection(To) ->
    case [Link || #{node := Node} = Link <- atoll_dist:links(), Node =:= To] of
        [Link] -> Link;
        [] -> none
    end.

%% @doc Has the circuit with that node go over a connection of its own, and returns when it does.
-spec own(node()) -> answer().
own(To) ->
    ok = atoll_dist:own(To, true),
    own(To, erlang:monotonic_time(millisecond) + ?READY_MS).

own(To, Until) ->
    case connection(To) of
        #{path := [_, _]} ->
            ok;
        _ ->
            case erlang:monotonic_time(millisecond) < Until of
                true ->
                    receive after 10 -> own(To, Until) end;
                false ->
                    {error, io_lib:format("~ts gets no connection of its own with ~ts", [node(), To])}
            end
    end.

%% @doc Starts the program, which forwards to that port; it ends with the calling process.
-spec forward(inet:port_number()) -> {ok, forward()} | {error, unicode:chardata()}.
forward(To) ->
    case atoll_wire_program:find(forward) of
        {ok, Program} ->
            Options = [{args, [?LOOPBACK, integer_to_list(To)]}, {line, 256}, exit_status, stderr_to_stdout, binary, hide],
            Port = open_port({spawn_executable, Program}, Options),
            receive
                {Port, {data, {eol, <<"ready ", Listens/binary>>}}} -> {ok, {Port, binary_to_integer(Listens)}};
                {Port, {data, {_, Said}}} -> {error, Said};
                {Port, {exit_status, Status}} -> {error, io_lib:format("the program that forwards ends with ~b", [Status])}
            after ?READY_MS ->
                {error, "the program that forwards does not get ready"}
            end;
        {error, {not_built, Said}} ->
            {error, ["the program that forwards cannot be compiled: ", Said]};
        {error, {no_program, File}} ->
            {error, ["there is no program that forwards at ", File]}
    end.

%% @doc Ends it.
-spec stop(forward()) -> ok.
stop({Port, _}) ->
    %% It may have ended.
    _ = catch port_close(Port),
    ok.

%% @doc Where that node listens.
-spec port(node()) -> {ok, inet:port_number()} | {error, unicode:chardata()}.
port(Node) ->
    [Name, Host] = string:split(atom_to_list(Node), "@"),
    case erl_epmd:port_please(Name, Host) of
        {port, Port, _} -> {ok, Port};
        _ -> {error, io_lib:format("it is not known where ~ts listens", [Node])}
    end.

%% @doc From now on this node connects with that one over the program.
-spec through(node(), forward()) -> ok.
through(Node, {_, Listens}) ->
    atoll_epmd:learn(#{atom_to_binary(Node) => #{address => {127, 0, 0, 1}, port => Listens}}, 1).

%% @doc Connects with that node.
-spec connect(node()) -> answer().
connect(Node) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> {error, io_lib:format("~ts cannot be connected with ~ts", [node(), Node])}
    end.

%% @private
-spec init({node(), node()}) -> {ok, {node(), node()}}.
init(Way) ->
    {ok, Way}.

%% @private
-spec handle_call({protocol, {route, node(), map()}}, gen_server:from(), {node(), node()}) ->
    {reply, atoll_dist_router:answer(), {node(), node()}}.
handle_call({protocol, {route, To, #{avoid := Avoid}}}, _From, {Gateway, Other} = Way) ->
    Answer =
        case To of
            Other when Avoid =:= [] -> {ok, [node(), Gateway, Other]};
            Other -> {error, {no_route, "the only gateway is to be avoided"}};
            _ -> {ok, [node(), To]}
        end,
    {reply, Answer, Way}.

%% @private
-spec handle_cast(term(), {node(), node()}) -> no_return().
handle_cast(Unknown, _Way) ->
    error({unknown, Unknown}).
