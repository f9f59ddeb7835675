%% SPDX-License-Identifier: Apache-2.0
%% @doc The way between the two nodes of the benchmark {@link atoll_bench_dist} where it goes over
%% a third one: the carrier asks for it here, and no directory has to be made.
-module(atoll_bench_dist_way).
-behaviour(gen_server).

-export([over/2, relayed/1]).
-export([init/1, handle_call/3, handle_cast/2]).

%% @doc Connects this node with the gateway; from now on it reaches the other node over that,
%% and every further one by a connection of its own.
-spec over(Gateway :: node(), To :: node()) -> ok | {error, not_connected}.
over(Gateway, To) ->
    case net_kernel:connect_node(Gateway) of
        true ->
            {ok, _} = gen_server:start({local, ?MODULE}, ?MODULE, {Gateway, To}, []),
            atoll_dist:router(?MODULE);
        _ ->
            {error, not_connected}
    end.

%% @doc Whether the connection with the other node is a circuit, and whether that is sealed.
-spec relayed(node()) -> no | {relayed, Sealed :: boolean()}.
relayed(To) ->
    case [Link || #{node := Node} = Link <- atoll_dist:links(), Node =:= To] of
        [#{kind := relay, sealed := Sealed}] -> {relayed, Sealed};
        _ -> no
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
