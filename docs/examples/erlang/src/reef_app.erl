-module(reef_app).
-behaviour(application).
-behaviour(supervisor).
-export([start/2, stop/1, init/1]).

start(_Type, _Args) -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

stop(_State) -> ok.

init([]) -> {ok, {#{}, [#{id => counter, start => {reef_counter, start_link, []}}]}}.
