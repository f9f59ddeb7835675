%% SPDX-License-Identifier: Apache-2.0
%% @doc The clusters that a user has given names to, so that commands find them: contexts.
%%
%% They stand in the folder `atoll' of `$XDG_CONFIG_HOME', or of `~/.config' where that is not set:
%% in `contexts' a file for each, by its name, and in `context' the name of the one in use. They hold
%% no cookie, but say in which files cookies are. At most one context is in use: the one that is
%% meant where nothing else is said.
%%
%% Several programs may change them at once. Each file is written under another name first: a reader
%% sees all of it or nothing, and of two that give the same name one is refused.
-module(atoll_view_context).

-export([all/0, add/2, use/1, remove/1, find/1, not_running/1, file/1]).

-export_type([context/0, contexts/0]).

-type context() :: #{
    %% As typed, with commas between several.
    node := string(),
    cookie_file => file:filename(),
    tls_options_file => file:filename()
}.

-type contexts() :: #{in_use := string() | none, contexts := [{Name :: string(), context()}]}.
%% Sorted by name.

-define(NONE, #{in_use => none, contexts => []}).

%% The folder of the user, if there is one.
folder() ->
    case {os:getenv("XDG_CONFIG_HOME", ""), os:getenv("HOME", "")} of
        {"", ""} -> none;
        {"", Home} -> {ok, filename:join([Home, ".config", "atoll"])};
        {Dir, _} -> {ok, filename:join(Dir, "atoll")}
    end.

%% @doc The file of a context.
-spec file(Name :: string()) -> {ok, file:filename_all()} | none.
file(Name) ->
    case folder() of
        {ok, Folder} -> {ok, of_context(Folder, Name)};
        none -> none
    end.

of_context(Folder, Name) -> filename:join([Folder, "contexts", Name]).

of_use(Folder) -> filename:join(Folder, "context").

%% @doc All contexts, and which is in use.
-spec all() -> {ok, contexts()} | {error, unicode:chardata()}.
all() ->
    case folder() of
        {ok, Folder} -> all(Folder);
        none -> {ok, ?NONE}
    end.

all(Folder) ->
    case file:list_dir(filename:join(Folder, "contexts")) of
        %% With a dot begins what is just written.
        {ok, Names} -> all(Folder, lists:sort([Name || [C | _] = Name <- Names, C =/= $.]));
        {error, enoent} -> {ok, ?NONE};
        {error, Reason} -> cannot("read", filename:join(Folder, "contexts"), Reason)
    end.

all(Folder, Names) ->
    %% One may have been removed by another program meanwhile.
    Read = [{Name, Context} || Name <- Names, Context <- [read(of_context(Folder, Name))], Context =/= gone],
    case {[Error || {_, {error, _} = Error} <- Read], in_use(Folder)} of
        {[], {ok, Name}} ->
            InUse = case lists:keymember(Name, 1, Read) of true -> Name; false -> none end,
            {ok, #{in_use => InUse, contexts => Read}};
        {[], {error, Sentence}} ->
            {error, Sentence};
        {[Error | _], _} ->
            Error
    end.

in_use(Folder) ->
    case file:read_file(of_use(Folder)) of
        {ok, Text} ->
            case unicode:characters_to_list(Text) of
                Name when is_list(Name) -> {ok, string:trim(Name)};
                _ -> {ok, none}
            end;
        {error, enoent} -> {ok, none};
        {error, Reason} -> cannot("read", of_use(Folder), Reason)
    end.

%% Written by hand, it may say anything.
read(File) ->
    case terms(File) of
        {ok, [#{node := Node} = Context]} ->
            case lists:all(fun io_lib:char_list/1, maps:values(Context)) andalso atoll_view_join:node_names(Node) of
                {ok, _} -> Context;
                _ -> no_context(File)
            end;
        {ok, _} ->
            no_context(File);
        {error, enoent} ->
            gone;
        {error, Reason} ->
            cannot("read", File, Reason)
    end.

%% OTP raises an exception where it meets bytes that are no text.
terms(File) ->
    try
        file:consult(File)
    catch
        error:_ -> {ok, []}
    end.

no_context(File) -> {error, ["The file ", File, " does not hold a context."]}.

cannot(Verb, File, Reason) ->
    {error, ["The file ", File, " cannot be ", Verb, ": ", file:format_error(Reason), $.]}.

%% @doc Gives a cluster a name. The first one is in use at once.
%% A name is one of a file.
-spec add(Name :: string(), context()) -> {ok, Used :: boolean()} | {error, unicode:chardata()}.
add(Name, Context) ->
    case {folder(), all()} of
        {none, _} -> {error, "There is no folder to keep contexts in: neither HOME nor XDG_CONFIG_HOME is set."};
        {_, {error, _} = Error} -> Error;
        {{ok, Folder}, {ok, Before}} -> add(Name, Context, Folder, Before)
    end.

add(Name, Context, Folder, #{contexts := Contexts}) ->
    _ = [error(badarg) || hd(Name) =:= $. orelse filename:basename(Name) =/= Name],
    Text = io_lib:format("%% -*- coding: utf-8 -*-\n~tp.~n", [Context]),
    case written(Text, of_context(Folder, Name), fun file:make_link/2) of
        ok when Contexts =:= [] -> is_first(Name, Folder);
        ok -> {ok, false};
        {error, {_, eexist}} -> {error, ["There is a context named ", Name, " already."]};
        {error, {File, Reason}} -> cannot("written", File, Reason)
    end.

%% Of two that are the first at once, one is.
is_first(Name, Folder) ->
    case written(Name, of_use(Folder), fun file:make_link/2) of
        ok -> {ok, true};
        {error, {_, eexist}} -> {ok, false};
        {error, {File, Reason}} -> cannot("written", File, Reason)
    end.

%% @doc From now on this one is in use, or none.
-spec use(Name :: string() | none) -> ok | {error, unicode:chardata()}.
use(none) ->
    case folder() of
        {ok, Folder} -> deleted(of_use(Folder));
        none -> ok
    end;
use(Name) ->
    known(Name, fun(Folder, _) ->
        case written(Name, of_use(Folder), fun file:rename/2) of
            ok -> ok;
            {error, {File, Reason}} -> cannot("written", File, Reason)
        end
    end).

%% @doc Forgets a context.
-spec remove(Name :: string()) -> ok | {error, unicode:chardata()}.
remove(Name) ->
    known(Name, fun(Folder, InUse) ->
        case InUse =/= Name orelse deleted(of_use(Folder)) of
            {error, _} = Error -> Error;
            _ -> deleted(of_context(Folder, Name))
        end
    end).

%% Calls Fun if there is one of that name.
known(Name, Fun) ->
    case all() of
        {ok, #{in_use := InUse, contexts := Contexts}} ->
            case lists:keymember(Name, 1, Contexts) of
                true ->
                    {ok, Folder} = folder(),
                    Fun(Folder, InUse);
                false ->
                    {error, unknown(Name, Contexts)}
            end;
        {error, _} = Error ->
            Error
    end.

unknown(Name, []) -> ["There is no context named ", Name, ", nor any other."];
unknown(Name, Contexts) -> ["There is no context named ", Name, ", only ", lists:join(", ", [N || {N, _} <- Contexts]), $.].

deleted(File) ->
    case file:delete(File) of
        {error, Reason} when Reason =/= enoent -> cannot("deleted", File, Reason);
        _ -> ok
    end.

%% Written beside the file first, and then given its name: by file:rename/2, or by file:make_link/2,
%% which takes none that is there.
written(Text, File, Name) ->
    New = filename:join(filename:dirname(File), lists:concat([".", filename:basename(File), ".", os:getpid(), ".", erlang:unique_integer([positive])])),
    Steps = [
        fun() -> filelib:ensure_dir(File) end,
        fun() -> file:write_file(New, unicode:characters_to_binary(Text)) end,
        fun() -> Name(New, File) end
    ],
    Failed = first_error(Steps),
    _ = file:delete(New),
    case Failed of
        ok -> ok;
        {error, Reason} -> {error, {File, Reason}}
    end.

first_error([]) ->
    ok;
first_error([Step | Steps]) ->
    case Step() of
        ok -> first_error(Steps);
        {error, _} = Error -> Error
    end.

%% @doc What a name stands for: a cluster that is held on this machine, or a context.
-spec find(Name :: string()) -> {ok, atoll_view:target()} | {error, unicode:chardata()}.
find(Name) ->
    case all() of
        {ok, #{contexts := Contexts}} ->
            case {lists:keyfind(Name, 1, Contexts), lists:member(Name, running())} of
                {{_, _}, true} ->
                    {error, ["A context is named ", Name, ", and a cluster that runs here too; remove the context, or stop the cluster."]};
                {{_, Context}, false} ->
                    {ok, joined(Name, Context)};
                {false, _} ->
                    {ok, {held, Name}}
            end;
        {error, _} = Error ->
            Error
    end.

joined(Name, #{node := Typed} = Context) ->
    {ok, Nodes} = atoll_view_join:node_names(Typed),
    {joined, Name, (maps:with([cookie_file, tls_options_file], Context))#{nodes => Nodes}}.

%% @doc The sentence for one who names a cluster that does not run: which ones do, if any, and
%% which contexts there are.
-spec not_running(Name :: string()) -> unicode:chardata().
not_running(Name) ->
    Contexts =
        case all() of
            {ok, #{contexts := Known}} -> [N || {N, _} <- Known];
            {error, _} -> []
        end,
    ["No cluster named ", Name, " is running",
     [[", only ", lists:join(", ", Running)] || [_ | _] = Running <- [running()]],
     [["; contexts: ", lists:join(", ", Contexts)] || Contexts =/= []], $.].

running() ->
    lists:sort([Name || #{name := Name} <- atoll_cluster:running()]).
