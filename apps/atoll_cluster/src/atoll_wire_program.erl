%% SPDX-License-Identifier: Apache-2.0
%% @doc The programs for network paths: where they are, compiled if they have to be. That of
%% a wire, the smallest one that forwards between two sockets, and one that connects as
%% strangers do.
-module(atoll_wire_program).

-export([find/1]).

%% Should a compiler have to be installed first.
-define(BUILD_MS, 300000).

%% @doc The program, up to date where its source is here.
-spec find(wire | forward | strangers) -> {ok, file:filename()} | {error, {not_built, binary()} | {no_program, file:filename()}}.
find(Name) ->
    %% BUILD/default/lib/atoll_cluster
    Build = lists:foldl(fun(_, Dir) -> filename:dirname(Dir) end, code:lib_dir(atoll_cluster), [lib, profile, build]),
    Program = filename:join([Build, "wire", Name]),
    Script = filename:join([filename:dirname(Build), "scripts", "build-wire"]),
    case filelib:is_regular(Script) andalso atoll_cluster_program:run(Script, [atom_to_list(Name)], ?BUILD_MS) of
        {error, Said} ->
            {error, {not_built, Said}};
        _ ->
            case filelib:is_regular(Program) of
                true -> {ok, Program};
                false -> {error, {no_program, Program}}
            end
    end.
