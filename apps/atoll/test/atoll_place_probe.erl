%% What the suites of placing have their nodes do, a supervisor among it.
-module(atoll_place_probe).

-behaviour(supervisor).

-export([start_supervisor/0, children/1, timed/3, stop_worker/2]).
-export([init/1]).

%% @doc A supervisor with nobody, that nobody is linked with.
start_supervisor() ->
    {ok, Pid} = supervisor:start_link(?MODULE, []),
    true = unlink(Pid),
    Pid.

%% @doc The true processes of a supervisor, by their names.
children(Supervisor) ->
    maps:from_list([
        {Id, Pid}
     || {Id, Child, _, _} <- supervisor:which_children(Supervisor), is_pid(Child), {ok, Pid} <- [atoll_place:child(Child)]
    ]).

%% @doc Has a worker end.
stop_worker(Pid, Reason) ->
    gen_server:cast(Pid, {stop, Reason}).

%% @doc What a function returns, and in how many milliseconds.
timed(M, F, Args) ->
    Start = erlang:monotonic_time(millisecond),
    Result = apply(M, F, Args),
    {erlang:monotonic_time(millisecond) - Start, Result}.

%% @private
init([]) ->
    {ok, {#{intensity => 10}, []}}.
