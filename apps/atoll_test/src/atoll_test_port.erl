%% SPDX-License-Identifier: Apache-2.0
%% @doc Ports for what a test starts in a moment.
-module(atoll_test_port).

-export([free/0, free/1]).

%% @doc One of loopback that nobody has.
-spec free() -> inet:port_number().
free() -> free({127, 0, 0, 1}).

%% @doc One of an address that nobody has, outside of where the system takes its own from: who
%% connects or listens meanwhile, on any port, does not get this one.
-spec free(inet:ip4_address()) -> inet:port_number().
free(Address) ->
    Number = 10000 + rand:uniform(20000),
    case gen_tcp:listen(Number, [{ip, Address}, {reuseaddr, true}]) of
        {ok, Socket} ->
            ok = gen_tcp:close(Socket),
            Number;
        {error, eaddrinuse} ->
            free(Address)
    end.
