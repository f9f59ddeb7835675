%% SPDX-License-Identifier: Apache-2.0
%% @doc Hears what EUnit's surefire file does not say: which test is running, and how many were
%% cancelled with a generator or a fixture that failed, and why.
-module(atoll_test_listener).
-behaviour(eunit_listener).

-export([start/1]).
-export([init/1, handle_begin/3, handle_end/3, handle_cancel/3, terminate/2]).

-record(heard, {to :: pid(), module :: module(), dir :: file:filename(), cancelled = [] :: [term()]}).

-type option() :: {to, pid()} | {module, module()} | {dir, file:filename()}.

%% @doc For EUnit. Options are `{to, Pid}', `{module, Module}' and `{dir, Dir}': that process
%% is sent `{heard, Module, Passed, Cancelled}' at the end, with the reasons, and what runs
%% stands in that directory ({@link atoll_test_running}).
-spec start([option()]) -> pid() | {pid(), reference()}.
start(Options) -> eunit_listener:start(?MODULE, Options).

%% @private
-spec init([option()]) -> #heard{}.
init(Options) ->
    receive
        {start, _Reference} -> ok
    end,
    {to, To} = lists:keyfind(to, 1, Options),
    {module, Module} = lists:keyfind(module, 1, Options),
    {dir, Dir} = lists:keyfind(dir, 1, Options),
    #heard{to = To, module = Module, dir = Dir}.

%% @private
-spec handle_begin(group | test, [term()], #heard{}) -> #heard{}.
handle_begin(test, Data, #heard{module = Module, dir = Dir} = Heard) ->
    ok = atoll_test_running:begun(Dir, Module, name(Data)),
    Heard;
handle_begin(group, _Data, Heard) ->
    Heard.

%% @private
-spec handle_end(group | test, [term()], #heard{}) -> #heard{}.
handle_end(test, Data, #heard{module = Module, dir = Dir} = Heard) ->
    ok = atoll_test_running:ended(Dir, Module, name(Data)),
    Heard;
handle_end(group, _Data, Heard) ->
    Heard.

%% @private What is in a group that is cancelled is cancelled with it, and says so itself.
-spec handle_cancel(group | test, [term()], #heard{}) -> #heard{}.
handle_cancel(group, Data, #heard{cancelled = Cancelled} = Heard) ->
    case proplists:get_value(reason, Data) of
        undefined -> Heard;
        {blame, _} -> Heard;
        Reason -> Heard#heard{cancelled = [Reason | Cancelled]}
    end;
handle_cancel(test, Data, Heard) ->
    handle_end(test, Data, Heard).

%% As in the surefire file.
name(Data) ->
    {Module, Function, _} = proplists:get_value(source, Data),
    lists:flatten(io_lib:format("~p:~p ~ts", [Module, proplists:get_value(line, Data), Function])).

%% @private
-spec terminate({ok, [{pass | fail | skip | cancel, non_neg_integer()}]} | {error, term()}, #heard{}) -> ok.
terminate(End, #heard{to = To, module = Module, cancelled = Cancelled}) ->
    To !
        case End of
            {ok, Counts} -> {heard, Module, proplists:get_value(pass, Counts), lists:reverse(Cancelled)};
            {error, Reason} -> {heard, Module, 0, [Reason]}
        end,
    ok.
