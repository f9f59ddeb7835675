%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps a node of a mesh connected with all others of the plan.
%%
%% OTP connects nodes when they hear of each other, and not again: two that lost their connection stay
%% apart, and a name that one of them has is gone for the other. In groups Atoll sees to it.
-module(im_mesh).
-behaviour(gen_server).

-export([start_link/0, init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(LOOK_MS, 1000).

%% @doc Starts it, for a supervisor.
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @private
-spec init([]) -> {ok, [node()], timeout()}.
init([]) ->
    [{_, Members}] = im_plan:groups(im_plan:this()),
    {ok, Members -- [node()], 0}.

%% @private
-spec handle_call(term(), gen_server:from(), [node()]) -> no_return().
handle_call(Unknown, _, _) -> error({unknown_call, Unknown}).

%% @private
-spec handle_cast(term(), [node()]) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(timeout, [node()]) -> {noreply, [node()], pos_integer()}.
handle_info(timeout, Members) ->
    %% Who is down does not answer, and is asked again.
    _ = [net_kernel:connect_node(Node) || Node <- Members -- nodes()],
    {noreply, Members, ?LOOK_MS}.
