%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Whether what the carrier needs of crypto is there yet: it runs inside kernel, before
%% kernel has all that loading a library in C takes.
-module(atoll_dist_crypto).

-export([ready/0]).

%% How often it is looked whether kernel has started its process for files.
-define(FILES_MS, 10).

%% @doc Waits until crypto can be called. Who calls bounds the waiting, by a timer that ends
%% the calling process.
%%
%% In embedded mode kernel runs the on_load functions of the modules of the boot script only after
%% it has started the distribution, and after it has waited for the nodes of
%% `sync_nodes_mandatory'. A module has no functions until then.
-spec ready() -> ok | {error, Why :: term()}.
ready() ->
    case code:ensure_loaded(crypto) of
        {module, crypto} ->
            ok;
        {error, _} ->
            ok = await_files(),
            ok = init:run_on_load_handlers(),
            case code:ensure_loaded(crypto) of
                {module, crypto} -> ok;
                {error, Why} -> {error, Why}
            end
    end.

%% An on_load function may read files, and kernel's process for them starts after the
%% distribution. Nobody tells when.
await_files() ->
    case whereis(file_server_2) of
        undefined ->
            receive
            after ?FILES_MS -> await_files()
            end;
        _ ->
            ok
    end.
