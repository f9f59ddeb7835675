%% SPDX-License-Identifier: Apache-2.0
%% @doc What a scenario may look like: Tsung's own document type, and that with the requests of `ts_rpc'.
%%
%% It is derived from the one that is installed, by three edits: `ts_rpc' among the types of a session
%% and of a change of type, `rpc' among the requests, and the element `rpc'. An edit whose place is not
%% found is an error, and so nothing half done.
-module(atoll_tsung_dtd).

-export([with_rpc/1, attributes/1]).

-export_type([attributes/0]).

-type attributes() :: #{Element :: string() => [{Name :: string(), Values :: any | [string(), ...], Must :: boolean()}]}.
%% Of each element those that it may have, with their values if these are listed, and whether one must be given.

-define(TYPE, "(<!ATTLIST\\s+session\\b[^>]*?\\stype\\s*\\(\\s*)(?=ts_)").
-define(NEW_TYPE, "(<!ATTLIST\\s+change_type\\b[^>]*?\\snew_type\\s*\\(\\s*)(?=ts_)").
-define(REQUEST, "(<!ELEMENT\\s+request\\b[^>]*?\\(\\s*)(?=http\\s*\\|)").

%% @doc The document type with `ts_rpc', from Tsung's.
-spec with_rpc(binary()) -> {ok, binary()} | {error, Sentence :: string()}.
with_rpc(Dtd) ->
    Edits = [
        {?TYPE, "\\1ts_rpc | ", "the types of a session"},
        {?NEW_TYPE, "\\1ts_rpc | ", "the types that a session can change to"},
        {?REQUEST, "\\1rpc | ", "the kinds of requests"}
    ],
    case re:run(Dtd, "<!ELEMENT\\s+rpc\\b", [{capture, none}]) of
        nomatch -> edited(Edits, Dtd);
        match -> {error, "Tsung's DTD has an element rpc of its own."}
    end.

edited([], Dtd) ->
    {ok, <<Dtd/binary, (rpc())/binary>>};
edited([{Place, By, What} | Edits], Dtd) ->
    case re:replace(Dtd, Place, By, [dotall, {return, binary}]) of
        Dtd -> {error, "Tsung's DTD does not list " ++ What ++ " as version 1.7 does."};
        Edited -> edited(Edits, Edited)
    end.

rpc() ->
    <<"\n<!ELEMENT rpc (#PCDATA)>\n"
      "<!ATTLIST rpc\n"
      "    type      (call | cast) #REQUIRED\n"
      "    module    CDATA #IMPLIED\n"
      "    function  CDATA #IMPLIED\n"
      "    arguments CDATA #IMPLIED\n"
      "    node      CDATA #IMPLIED\n"
      "    timeout   CDATA #IMPLIED>\n">>.

%% @doc Which attributes the elements have.
-spec attributes(Dtd :: binary()) -> attributes().
attributes(Dtd) ->
    Plain = re:replace(Dtd, "<!--.*?-->", "", [dotall, global, {return, list}]),
    Elements = matches(Plain, "<!ELEMENT\\s+(\\S+)\\s"),
    Lists = matches(Plain, "<!ATTLIST\\s+(\\S+)\\s+([^>]*)>"),
    maps:from_list([{Element, [attribute(A) || [E, Text] <- Lists, E =:= Element, A <- declared(Text)]} || [Element] <- Elements]).

declared(Text) -> matches(Text, "([\\w:.-]+)\\s+(\\([^)]*\\)|[A-Z]+)\\s*(#REQUIRED|#IMPLIED|(?:#FIXED\\s*)?\"[^\"]*\")").

attribute([Name, [$( | _] = Words, How]) -> {Name, string:lexemes(Words, "()| \t\n"), How =:= "#REQUIRED"};
attribute([Name, _, How]) -> {Name, any, How =:= "#REQUIRED"}.

matches(Text, What) ->
    case re:run(Text, What, [dotall, global, {capture, all_but_first, list}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.
