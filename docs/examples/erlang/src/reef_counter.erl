-module(reef_counter).
-behaviour(gen_server).
-export([start_link/0, increment/1]).
-export([init/1, handle_call/3, handle_cast/2]).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% On whichever node: a plain call.
increment(Node) -> gen_server:call({?MODULE, Node}, increment).

init([]) -> {ok, 0}.

handle_call(increment, _From, Count) -> {reply, Count + 1, Count + 1}.

handle_cast(_, Count) -> {noreply, Count}.
