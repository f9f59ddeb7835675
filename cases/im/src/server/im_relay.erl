%% SPDX-License-Identifier: Apache-2.0
%% @doc The paper's relays: processes of a router node, with the names `relay_1' and so on in its group, over
%% which the databases of other groups are reached where `reach' is `relays'. What they do stands in
%% {@link im_names}.
-module(im_relay).
-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% @doc Starts it, for a supervisor.
-spec start_link(pos_integer()) -> gen_server:start_ret().
start_link(K) ->
    {router, I} = im_plan:role(node(), im_plan:this()),
    gen_server:start_link({via, atoll_name, {im_plan:router_name(I), im_plan:relay_name(K)}}, ?MODULE, [], []).

%% @private
-spec init([]) -> {ok, none}.
init([]) -> {ok, none}.

%% @private
-spec handle_call(term(), gen_server:from(), none) -> no_return().
handle_call(Unknown, _, _) -> error({unknown_call, Unknown}).

%% @private
-spec handle_cast(term(), none) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(tuple(), none) -> {noreply, none}.
handle_info(Message, none) ->
    ok = im_names:relay(Message),
    {noreply, none}.
