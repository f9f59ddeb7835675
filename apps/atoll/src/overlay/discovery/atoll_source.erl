%% SPDX-License-Identifier: Apache-2.0
%% @doc The behaviour of a discovery source, and how one is checked, read and spoken of.
%%
%% A source gives contacts, names of nodes through which this one can join. Some also
%% say how a node is reached ({@link atoll_epmd:way()}). It is written `{Kind, Term}':
%% the kind is one of ours (`nodes', `file', `dns'), or any module with this behaviour;
%% what the term means is its affair.
%%
%% Each read has a process of its own, so it may wait and may crash: that is a trouble of
%% the source, and nothing that was found before is lost. The other functions are called
%% where nobody may wait.
%%
%% ```
%% -module(my_registry).
%% -behaviour(atoll_source).
%% -export([check/1, read/1, label/1, format_error/1]).
%%
%% check(Url) when is_list(Url) -> ok;
%% check(_) -> {error, no_url}.
%%
%% read(Url) ->
%%     case my_http:get(Url) of
%%         {ok, Names} -> {ok, [{Name, #{}} || Name <- Names], []};
%%         {error, _} = Error -> Error
%%     end.
%%
%% label(Url) -> ["the registry ", Url].
%%
%% format_error(no_url) -> "the URL must be a text";
%% format_error(Reason) -> io_lib:format("the registry answered ~tp", [Reason]).
%% '''
-module(atoll_source).

-export([check/1, is_path/1, is_text/1, read/1, deadline/1, label/1, format_error/1, format_trouble/2]).

-export_type([source/0, kind/0, contact/0, reading/0, reason/0, complaint/0, trouble/0, deadline/0, error/0]).

-type source() :: {kind(), Term :: term()}.

-type kind() :: nodes | file | dns | module().

-type contact() :: {Node :: binary(), atoll_epmd:way()}.

-type reading() ::
    %% What it holds, and what is wrong with the rest of it.
    {ok, [contact()], [complaint()]}
    %% Nothing was read.
    | {error, reason()}.

-type reason() ::
    %% No answer within so many milliseconds.
    {late, pos_integer()}
    %% The reader itself failed, or what it gave is no reading.
    | {crashed, term()}
    | {no_reading, term()}
    %% What the source says itself.
    | term().

-type complaint() ::
    %% So many things that it gave are no contacts.
    {bad_contacts, pos_integer()}
    %% Names beyond so many, which were refused.
    | {names_beyond, pos_integer()}
    %% What the source says itself.
    | term().

-type trouble() :: {failing, reason()} | {incomplete, [complaint(), ...]}.

-type deadline() :: {kill | leave, Ms :: pos_integer()}.

-type error() :: {bad_source, Source :: term(), why()}.

-type why() ::
    not_a_pair
    | atoll_plug:error()
    | {check_crashed, module(), term()}
    | {no_verdict, module(), term()}
    %% What its module found wrong.
    | {wrong, module(), term()}.

%% Whether the term is right, key by key. Nothing is read.
-callback check(Term :: term()) -> ok | {error, Why :: term()}.
%% Reads it now, and takes the time that it takes.
-callback read(Term :: term()) -> reading().
%% After how many milliseconds a read is late, and whether its process is to be killed
%% then, or left to end by itself: no other read begins before. Default: `{kill, 6000}'.
-callback deadline(Term :: term()) -> deadline().
%% What to call it in a sentence: `the file contacts'.
-callback label(Term :: term()) -> unicode:chardata().
%% Half a sentence for a reason or a complaint of its own.
-callback format_error(Why :: term()) -> unicode:chardata().
-optional_callbacks([deadline/1]).

-define(OWN, #{nodes => atoll_source_nodes, file => atoll_source_file, dns => atoll_source_dns}).

-define(DEADLINE, {kill, 6000}).
%% What a timer takes.
-define(MAX_MS, 16#FFFFFFFF).

%% @doc Checks how a source is written. Nothing is read.
-spec check(term()) -> ok | {error, error()}.
check(Source) ->
    case why(Source) of
        ok -> ok;
        Why -> {error, {bad_source, Source, Why}}
    end.

why({Kind, Term}) ->
    case atoll_plug:module(source, Kind, {?MODULE, ?OWN}) of
        {ok, Module} ->
            case atoll_plug:call(Module, check, [Term]) of
                {ok, ok} -> ok;
                {ok, {error, Why}} -> {wrong, Module, Why};
                {ok, Other} -> {no_verdict, Module, Other};
                {error, Crash} -> {check_crashed, Module, Crash}
            end;
        {error, Error} ->
            Error
    end;
why(_) ->
    not_a_pair.

%% @doc Whether a term can be the path of a file or a folder: a text that is not empty and
%% has no zero in it.
-spec is_path(term()) -> boolean().
is_path(Path) when is_binary(Path) -> Path =/= <<>> andalso binary:match(Path, <<0>>) =:= nomatch;
is_path(Path) -> is_text(Path).

%% @doc Whether a term is a list of characters, not empty and without a zero.
-spec is_text(term()) -> boolean().
is_text([_ | _] = Text) when length(Text) > 0 ->
    lists:all(fun(C) -> is_integer(C) andalso C > 0 andalso C =< 16#10FFFF end, Text);
is_text(_) ->
    false.

%% @doc Reads a source that {@link check/1} found right, now, and takes the time that it
%% takes: {@link deadline/1} says when to give up.
-spec read(source()) -> reading().
read({Kind, Term}) ->
    case atoll_plug:call(module(Kind), read, [Term]) of
        {ok, {ok, Contacts, Complaints}} when length(Contacts) >= 0, length(Complaints) >= 0 ->
            {Good, Bad} = lists:partition(fun is_contact/1, Contacts),
            {ok, Good, [{bad_contacts, length(Bad)} || Bad =/= []] ++ Complaints};
        {ok, {error, _} = Error} ->
            Error;
        {ok, Other} ->
            {error, {no_reading, Other}};
        {error, Crash} ->
            {error, {crashed, Crash}}
    end.

is_contact({Name, Way}) -> is_binary(Name) andalso atoll_source_names:is_name(Name) andalso is_way(Way);
is_contact(_) -> false.

is_way(#{} = Way) -> lists:all(fun is_way/1, maps:to_list(Way));
is_way({address, Address}) -> inet:is_ip_address(Address);
is_way({port, Port}) -> is_integer(Port) andalso Port > 0 andalso Port < 65536;
is_way(_) -> false.

%% @doc After how many milliseconds a read is late, and whether its process is to be
%% killed then.
-spec deadline(source()) -> deadline().
deadline({Kind, Term}) ->
    case atoll_plug:call(module(Kind), deadline, [Term]) of
        {ok, {Do, Ms} = Deadline} when Do =:= kill orelse Do =:= leave, is_integer(Ms), Ms > 0, Ms =< ?MAX_MS -> Deadline;
        %% It has none, or one that is of no use.
        _ -> ?DEADLINE
    end.

module(Kind) ->
    maps:get(Kind, ?OWN, Kind).

%% @doc What to call a source in a sentence.
-spec label(source()) -> unicode:chardata().
label({Kind, Term} = Source) ->
    atoll_plug:text(module(Kind), label, [Term], io_lib:format("the source ~0tP", [Source, 20])).

%% @doc One sentence for an error of {@link check/1}.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_source, Source, Why}) ->
    io_lib:format("the discovery source ~0tp is wrong: ~ts", [Source, sentence(Why)]).

sentence(not_a_pair) ->
    "it must be {nodes, Nodes}, {file, Path}, {dns, Map} or {Module, Term}";
sentence({wrong, Module, Why}) ->
    own(Module, Why);
sentence({check_crashed, Module, Crash}) ->
    io_lib:format("~tw:check/1 ended with ~0tP", [Module, Crash, 20]);
sentence({no_verdict, Module, Term}) ->
    io_lib:format("~tw:check/1 must give ok or {error, Why}, and gave ~0tP", [Module, Term, 20]);
sentence(Error) ->
    atoll_plug:format_error(Error).

%% @doc Half a sentence for a trouble of a source, whose beginning is {@link label/1}.
-spec format_trouble(source(), trouble()) -> unicode:chardata().
format_trouble({Kind, _}, {failing, Reason}) ->
    ["cannot be read: ", trouble(Reason, module(Kind))];
format_trouble({Kind, _}, {incomplete, Complaints}) ->
    ["is not all of use: ", lists:join("; ", [trouble(Complaint, module(Kind)) || Complaint <- Complaints])].

trouble({late, Ms}, _Module) when is_integer(Ms) ->
    io_lib:format("there was no answer within ~b ms", [Ms]);
trouble({crashed, Crash}, _Module) ->
    io_lib:format("the reader ended with ~0tP", [Crash, 20]);
trouble({no_reading, Term}, Module) ->
    io_lib:format("~tw:read/1 gave ~0tP", [Module, Term, 20]);
trouble({bad_contacts, Count}, _Module) when is_integer(Count) ->
    io_lib:format("~b of what it gave are no contacts", [Count]);
trouble({names_beyond, Max}, _Module) when is_integer(Max) ->
    io_lib:format("this node takes ~b names from all sources, and the others are refused", [Max]);
trouble(Why, Module) ->
    own(Module, Why).

own(Module, Why) ->
    atoll_plug:text(Module, format_error, [Why], io_lib:format("~0tP", [Why, 20])).
