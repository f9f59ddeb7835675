%% SPDX-License-Identifier: Apache-2.0
%% @doc What the application is started with, read once and checked key by key. `read/1' is pure; a node is told of it once.
-module(matchstream_settings).

-export([read/1, install/1, get/1]).

-export_type([error/0]).

-type error() :: {bad_option, atom(), Must :: string()}.

%% Each with what it has where nothing is said, and what it must be.
-define(KEYS, [
    {nodes, fun() -> [node()] end, fun(Is) -> is_list(Is) andalso lists:member(node(), Is) end, "nodes with this one among them"},
    {store, fun() -> #{module => matchstream_store_mnesia} end, fun(Is) -> case Is of #{module := Module} -> is_atom(Module); _ -> false end end, "a map with a module"},
    {switches, fun() -> matchstream_switches:of_stage(5) end, fun(Is) -> is_list(Is) andalso Is -- [Name || {Name, _, _} <- matchstream_switches:names()] =:= [] end, "switches"},
    {listen, fun() -> {127, 0, 0, 1} end, fun(Is) -> inet:is_ip_address(Is) end, "an address"},
    {port, fun() -> 0 end, fun(Is) -> is_integer(Is) andalso Is >= 0 andalso Is =< 65535 end, "a port, or 0"},
    {web, fun() -> 0 end, fun(Is) -> is_integer(Is) andalso Is >= 0 andalso Is =< 65535 end, "a port, or 0"},
    {connections, fun() -> 1000000 end, fun(Is) -> is_integer(Is) andalso Is > 0 end, "a whole number above 0"},
    {matches, fun() -> 10000 end, fun(Is) -> is_integer(Is) andalso Is > 0 end, "a whole number above 0"},
    {playing, fun() -> 1000 end, fun(Is) -> is_integer(Is) andalso Is > 0 end, "a whole number above 0"},
    {request_ms, fun() -> 10000 end, fun(Is) -> is_integer(Is) andalso Is > 0 end, "milliseconds above 0"},
    {waiting, fun() -> 256 end, fun(Is) -> is_integer(Is) andalso Is > 0 end, "a whole number above 0"},
    {send_ms, fun() -> 5000 end, fun(Is) -> is_integer(Is) andalso Is > 0 end, "milliseconds above 0"},
    {record, none, fun(Is) -> is_list(Is) andalso Is =/= [] end, "the name of a file"}
]).

%% @doc Those that are given, and the others as they are by themselves.
-spec read([{atom(), term()}]) -> {ok, matchstream:settings()} | {error, error()}.
read(Given) ->
    %% OTP puts it there.
    Known = [included_applications | [Key || {Key, _, _, _} <- ?KEYS]],
    Wrong = [{bad_option, Key, "known"} || {Key, _} <- Given, not lists:member(Key, Known)] ++
        [{bad_option, Key, Must} || {Key, _, Check, Must} <- ?KEYS, {Is, Value} <- Given, Is =:= Key, not Check(Value)],
    case Wrong of
        [] ->
            #{nodes := Nodes, store := Store} = Settings =
                maps:from_list([{Key, proplists:get_value(Key, Given, Default())} || {Key, Default, _, _} <- ?KEYS, Default =/= none] ++ [{record, File} || {record, File} <- Given]),
            {ok, Settings#{store := Store#{nodes => Nodes}}};
        [Error | _] -> {error, Error}
    end.

%% @doc These are the node's from now on.
-spec install(matchstream:settings()) -> ok.
install(Settings) -> persistent_term:put(?MODULE, Settings).

%% @doc One of the node's.
-spec get(atom()) -> term().
get(Key) -> map_get(Key, persistent_term:get(?MODULE)).
