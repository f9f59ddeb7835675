%% @doc The public face of the library: what a user of a running node calls.
-module(atoll).

-export([version/0]).

%% @doc The version of the running library, as `atoll.app' states it.
-spec version() -> string().
version() ->
    case application:load(atoll) of
        ok -> ok;
        {error, {already_loaded, atoll}} -> ok
    end,
    {ok, Vsn} = application:get_key(atoll, vsn),
    Vsn.
