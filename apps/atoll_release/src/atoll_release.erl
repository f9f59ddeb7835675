%% SPDX-License-Identifier: Apache-2.0
%% @doc What `make package' and `make docs' run, in the root of the tree: the package of the
%% library, and the site of its documents.
-module(atoll_release).

-export([main/1]).

%% @doc What is to be made, and the folder for it. It ends the VM, with status 1 and a sentence
%% where it could not be made.
-spec main([atom()]) -> no_return().
main([What, Folder]) ->
    {ok, Root} = file:get_cwd(),
    case made(What, Root, filename:absname(atom_to_list(Folder))) of
        {ok, File} ->
            io:format("~ts~n", [File]),
            halt(0);
        {error, Why} ->
            io:format(standard_error, "make ~ts: ~ts~n", [What, Why]),
            halt(1)
    end.

made(package, Root, Folder) -> {ok, atoll_release_package:write(Root, Folder)};
made(docs, Root, Folder) -> atoll_release_site:write(Root, Folder).
