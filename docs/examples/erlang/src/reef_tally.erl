-module(reef_tally).
-behaviour(gen_server).
-export([start_link/0, increment/0, value/0]).
-export([init/1, handle_call/3, handle_cast/2]).

%% Once in the group fish: its nodes know it by this name.
-define(NAME, {via, atoll_name, {fish, "tally"}}).

start_link() -> gen_server:start_link(?NAME, ?MODULE, [], []).

increment() -> gen_server:call(?NAME, increment).

value() -> gen_server:call(?NAME, value).

init([]) -> {ok, 0}.

handle_call(increment, _From, Count) -> {reply, Count + 1, Count + 1};
handle_call(value, _From, Count) -> {reply, Count, Count}.

handle_cast(_, Count) -> {noreply, Count}.
