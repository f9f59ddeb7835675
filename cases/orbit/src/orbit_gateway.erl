%% @doc A relay between groups, several of them on each gateway node.
%%
%% It hands a vertex on: to the worker that owns it if that is in its own
%% group, and otherwise to a gateway of the next group. It keeps nothing; the
%% credit travels inside the message.
-module(orbit_gateway).

-export([start_link/0]).
-export([init/0]).

-export_type([message/0]).

-type message() ::
    %% once, before anything else is read
    {start, orbit_route:route()}
    | {relay, orbit_generators:vertex(), orbit_credit:unit()}.

%% @doc Starts a gateway process on this node, linked to the caller, its host.
-spec start_link() -> pid().
start_link() ->
    spawn_link(?MODULE, init, []).

%% @private
-spec init() -> no_return().
init() ->
    receive
        {start, Route} -> loop(Route)
    end.

loop(Route) ->
    receive
        {relay, X, Unit} ->
            ok = orbit_route:send(X, Unit, Route),
            loop(Route);
        Other ->
            error({unexpected_message, Other})
    end.
