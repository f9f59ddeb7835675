%% SPDX-License-Identifier: Apache-2.0
%% @doc The file in which a shadow network is kept for a restart: as {@link atoll_flow_shadow:kept()}, in Erlang's text. It is
%% written anew and then takes the place of the one before, so it is whole at any time.
-module(atoll_flow_kept).

-export([read/1, write/2]).

%% @doc What was kept; all agents are to be started again.
-spec read(file:filename()) -> {ok, [atoll_flow_shadow:effect()], atoll_flow_shadow:shadow()} | none | {error, unicode:chardata()}.
read(File) ->
    case consulted(File) of
        {ok, [Term]} ->
            case atoll_flow_shadow:restored(Term) of
                {ok, _, _} = Restored -> Restored;
                {error, Error} -> {error, [File, ": ", atoll_flow_shadow:format_error(Error), $.]}
            end;
        {ok, _} -> {error, [File, " is to have one term."]};
        {error, enoent} -> none;
        {error, Reason} -> {error, [File, " cannot be read: ", file:format_error(Reason), $.]}
    end.

%% OTP 25 has an error of its own for some bytes that are no text, and says this of others.
consulted(File) ->
    try file:consult(File)
    catch error:{case_clause, _} -> {error, {1, file_io_server, invalid_unicode}}
    end.

%% @doc Keeps it.
-spec write(file:filename(), atoll_flow_shadow:shadow()) -> ok | {error, unicode:chardata()}.
write(File, Shadow) ->
    New = File ++ ".new",
    Written = case file:write_file(New, unicode:characters_to_binary(io_lib:format("%% coding: utf-8~n~tp.~n", [atoll_flow_shadow:kept(Shadow)]))) of
        ok -> file:rename(New, File);
        Error -> Error
    end,
    case Written of
        ok -> ok;
        {error, Reason} -> {error, [File, " cannot be written: ", file:format_error(Reason), $.]}
    end.
