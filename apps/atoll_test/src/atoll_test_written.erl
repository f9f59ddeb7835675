%% SPDX-License-Identifier: Apache-2.0
%% @doc A hook of Common Test that says when all results are written, where it is the last hook: if it
%% comes before that, it says nothing. Common Test itself goes on for more than a second then: it waits
%% for whatever could still write to its logs, and makes pages of all runs.
-module(atoll_test_written).

-export([init/2, terminate/1]).

-type options() :: {To :: atom(), Surefire :: file:filename()}.

%% @doc The name of the process that is sent `{written, Counts}' at the end (see {@link
%% atoll_test_running}), and the file with the results.
-spec init(term(), options()) -> {ok, options()}.
init(_Id, Options) -> {ok, Options}.

%% @private
-spec terminate(options()) -> ok.
terminate({To, Surefire}) ->
    case is_whole(file:read_file(Surefire)) of
        true ->
            To ! {written, gen_event:call(ct_event, atoll_test_running, counts)},
            ok;
        false ->
            ok
    end.

is_whole({ok, Text}) -> binary:match(Text, <<"</testsuites>">>) =/= nomatch;
is_whole({error, enoent}) -> false.
