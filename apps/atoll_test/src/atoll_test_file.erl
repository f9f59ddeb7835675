%% SPDX-License-Identifier: Apache-2.0
%% @doc Files that a test does not keep.
-module(atoll_test_file).

-export([temporary/1]).

%% @doc A path that nobody else has, in the directory for temporary files: a job's own one is
%% removed with all that is in it.
-spec temporary(string()) -> file:filename_all().
temporary(Name) ->
    Unique = lists:concat([Name, "-", os:getpid(), "-", erlang:unique_integer([positive])]),
    filename:join(os:getenv("TMPDIR", "/tmp"), Unique).
