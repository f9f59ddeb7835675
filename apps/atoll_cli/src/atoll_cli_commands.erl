%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands that there are. An application of the code path says its own in its `.app'
%% file, so nothing here knows a tool, and a tool is in the help as soon as it is in the path:
%%
%% ```
%% {env, [{atoll_commands, [
%%     {"semantics", atoll_semantics_cli},
%%     {"chaos", "do harm to real nodes, and see what recovers", [{"run", atoll_chaos_cli_run}]}
%% ]}]}
%% '''
%%
%% Each is a module of the behaviour {@link atoll_cli_command}; or a word that several begin with,
%% what they are about, and these. A command of two words may stand beside one that is its first word, of
%% another application: `{"watch traffic", atoll_flow_cli_traffic}'.
-module(atoll_cli_commands).

-export([all/0, sections/0, groups/0, members/1, find/1, said_in/1]).

-export_type([said/0]).

%% As an application says it.
-type said() :: command() | {Word :: string(), Summary :: string(), [command()]}.

-type command() :: {Word :: string(), module()}.

%% What the help shows where, by the first words. What is not in it stands below all others.
-define(CONTENTS, [
    {"try it", ["demo", "orbit", "aco", "im", "matchstream", "subscribers", "adcounter", "ring"]},
    {"a cluster of your own machine", ["up", "down"]},
    {"nodes on other machines", ["deploy"]},
    {"any cluster: one that up holds, or a context", ["status", "links", "top", "metrics", "alarms", "watch", "route", "group", "place", "distance", "chaos", "context"]},
    {"many nodes in virtual time", ["sim"]},
    {"measurements", ["bench", "scale", "debench", "tsung", "load", "experiments", "semantics"]},
    {"this program", ["help", "completion", "version"]}
]).
-define(OTHERS, "other tools").

%% @doc The commands, as the help lists them.
-spec all() -> [{Name :: string(), module()}].
all() ->
    lists:append([Commands || {_, Commands} <- sections()]).

%% @doc The commands by what they are for.
-spec sections() -> [{Title :: string(), [{Name :: string(), module()}]}].
sections() ->
    [{Title, named(Said)} || {Title, Said} <- contents()].

%% @doc The first words of the commands that have two, with what they are about.
-spec groups() -> [{Word :: string(), Summary :: string()}].
groups() ->
    [{Word, Summary} || {_, All} <- contents(), {Word, Summary, _} <- All].

%% @doc The second words of the commands that begin with that one.
-spec members(Group :: string()) -> [Word :: string()].
members(Group) ->
    [Member || {_, All} <- contents(), {Word, _, Members} <- All, Word =:= Group, {Member, _} <- Members].

%% @doc The command that a line begins with, and the rest of the line; or the
%% group, if the line names no more; or what to say if there is neither.
-spec find([string(), ...]) ->
    {ok, Name :: string(), module(), Rest :: [string()]}
    | {group, Word :: string()}
    | {error, unicode:chardata()}.
find(Words) ->
    Said = lists:append([All || {_, All} <- contents()]),
    case [{Name, Module, Rest} || [First, Second | Rest] <- [Words], {Name, Module} <- Said, Name =:= First ++ " " ++ Second] of
        [{Name, Module, Rest}] -> {ok, Name, Module, Rest};
        [] -> find(Words, Said)
    end.

find([Word | Rest], Said) ->
    Commands = named(Said),
    case {lists:keyfind(Word, 1, Commands), lists:keyfind(Word, 1, Said)} of
        {{_, Module}, _} -> {ok, Word, Module, Rest};
        {false, {_, _, Members}} -> find_in(Word, Members, Rest);
        %% Somebody may have mistyped a group, or left it out.
        {false, false} -> {error, unknown(Word, Word, "", [Known || {Known, _} <- Commands] ++ [Group || {Group, _, _} <- Said], "atoll help")}
    end.

find_in(Group, Members, [[C | _] = Word | Rest]) when C =/= $- ->
    Name = Group ++ " " ++ Word,
    case lists:keyfind(Word, 1, Members) of
        {_, Module} -> {ok, Name, Module, Rest};
        false -> {error, unknown(Name, Word, Group ++ " ", [Member || {Member, _} <- Members], "atoll help " ++ Group)}
    end;
find_in(Group, _, _) ->
    {group, Group}.

unknown(Name, Word, Before, Known, Help) ->
    case atoll_cli_nearest:of_words(Word, Known) of
        {ok, Near} -> ["there is no command \"", Name, "\"; did you mean ", Before, Near, "?"];
        none -> ["there is no command \"", Name, "\"; \"", Help, "\" lists them"]
    end.

named(Said) ->
    lists:append([
        case One of
            {Word, _, Members} -> [{Word ++ " " ++ Member, Module} || {Member, Module} <- Members];
            {_, _} -> [One]
        end
     || One <- Said
    ]).

contents() ->
    Said = said_in(code:get_path()),
    Shown = [{Title, [One || Word <- Words, One <- Said, hd(string:lexemes(element(1, One), " ")) =:= Word]} || {Title, Words} <- ?CONTENTS],
    Others = Said -- lists:append([All || {_, All} <- Shown]),
    [Section || {_, [_ | _]} = Section <- Shown ++ [{?OTHERS, Others}]].

%% @doc What the applications of these directories say, but for those of OTP. As of modules,
%% the first of a name counts.
-spec said_in([file:filename()]) -> [said()].
said_in(Path) ->
    Files = lists:append([filelib:wildcard(filename:join(Dir, "*.app")) || Dir <- Path, is_of_tool(Dir)]),
    lists:append([said(File) || File <- lists:uniq(fun filename:basename/1, Files)]).

is_of_tool(Dir) ->
    filename:basename(Dir) =:= "ebin" andalso not lists:prefix(code:lib_dir(), Dir).

%% What is no application says nothing.
said(File) ->
    case file:consult(File) of
        {ok, [{application, _, Keys}]} -> proplists:get_value(atoll_commands, proplists:get_value(env, Keys, []), []);
        _ -> []
    end.
