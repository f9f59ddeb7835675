%% SPDX-License-Identifier: Apache-2.0
%% @doc A scenario of Tsung as text: one that is made for a cluster, and what one says that somebody has
%% written.
%%
%% Tsung's own reader says what is wrong with a scenario without saying where. So elements, attributes
%% and what they must be are looked at here before, and the first that is wrong is told with its line; how
%% elements may stand in each other is left to Tsung.
-module(atoll_tsung_scenario).

-export([new/1, read/2, with_dtd/2, format_error/1]).

-export_type([plan/0, facts/0, error/0]).

-type plan() :: #{
    %% Each user calls one of these nodes; as many call one as another.
    nodes := [node(), ...],
    module := string(),
    function := string(),
    %% As they stand in Erlang, with commas between.
    arguments := string(),
    type := call | cast,
    %% Users that come in a second, and for how long; at most so many.
    rate := number(),
    seconds := pos_integer(),
    users => pos_integer(),
    %% Of a user, and the seconds between two.
    requests := pos_integer(),
    think := number(),
    %% Milliseconds of a call.
    timeout => pos_integer(),
    %% The hosts of Tsung's users; none: Tsung's controller has them.
    clients := [string()]
}.

-type facts() :: #{
    %% The nodes that are called, but for those that variables stand for.
    nodes := [node()],
    %% The hosts of Tsung's users that are not with its controller.
    clients := [string()]
}.

-type error() :: {Line :: pos_integer() | none, Sentence :: unicode:chardata()}.

%% A VM with all of them has no need for others.
-define(MAX_USERS, 100000).

%% @doc The scenario for a plan.
-spec new(plan()) -> unicode:chardata().
new(#{nodes := Nodes, rate := Rate, seconds := Seconds, clients := Clients} = Plan) ->
    Limit = case Plan of #{users := Users} -> [{maxnumber, integer_to_list(Users)}]; #{} -> [] end,
    [
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n",
        "<!DOCTYPE tsung SYSTEM \"tsung-1.0.dtd\">\n",
        "<tsung loglevel=\"warning\" backend=\"fullstats\">\n",
        "  <clients>\n", [client(Client) || Client <- case Clients of [] -> [controller]; _ -> Clients end], "  </clients>\n",
        "  <servers>\n    ", tag(server, [{host, "localhost"}, {port, "1"}, {type, "erlang"}]), "  </servers>\n",
        "  <load>\n    <arrivalphase phase=\"1\" duration=\"", integer_to_list(Seconds), "\" unit=\"second\">\n      ",
        tag(users, Limit ++ [{arrivalrate, number(Rate)}, {unit, "second"}]), "    </arrivalphase>\n  </load>\n",
        "  <sessions>\n", [session(Node, Share, Plan) || {Node, Share} <- lists:zip(Nodes, shares(length(Nodes)))], "  </sessions>\n",
        "</tsung>\n"
    ].

client(controller) -> ["    ", tag(client, [{host, "localhost"}, {use_controller_vm, "true"}, {maxusers, integer_to_list(?MAX_USERS)}])];
client(Host) -> ["    ", tag(client, [{host, Host}, {maxusers, integer_to_list(?MAX_USERS)}])].

%% In percent, with two decimals; they are 100 together.
shares(Count) ->
    Each = 10000 div Count,
    [io_lib:format("~.2f", [Hundredths / 100]) || Hundredths <- [10000 - Each * (Count - 1) | lists:duplicate(Count - 1, Each)]].

session(Node, Share, #{module := Module, function := Function, arguments := Args, type := Type, requests := Count, think := Think} = Plan) ->
    Has = [{type, atom_to_list(Type)}, {node, atom_to_list(Node)}, {module, Module}, {function, Function}, {arguments, Args}] ++
        [{timeout, integer_to_list(Ms)} || #{timeout := Ms} <- [Plan]],
    Subst = case string:find(Args, "%%") of nomatch -> ""; _ -> " subst=\"true\"" end,
    Request = ["<request", Subst, ">", string:trim(tag(rpc, Has)), "</request>\n"],
    Pause = [["        ", tag(thinktime, [{value, number(Think)}])] || Think > 0],
    [
        "    <session", attributes([{name, atom_to_list(Node)}, {probability, Share}, {type, "ts_rpc"}]), ">\n",
        case Count of
            1 -> ["      ", Request];
            _ -> ["      <for", attributes([{var, "request"}, {from, "1"}, {to, integer_to_list(Count)}]), ">\n        ", Request, Pause, "      </for>\n"]
        end,
        "    </session>\n"
    ].

tag(Name, Attributes) -> ["<", atom_to_list(Name), attributes(Attributes), "/>\n"].

attributes(Attributes) -> [[$\s, atom_to_list(Name), "=\"", escaped(Value), $"] || {Name, Value} <- Attributes].

escaped(Text) ->
    [case C of $< -> "&lt;"; $> -> "&gt;"; $& -> "&amp;"; $" -> "&quot;"; _ -> C end || C <- unicode:characters_to_list(Text)].

number(N) when is_integer(N) -> integer_to_list(N);
number(N) -> float_to_list(N, [short]).

-record(state, {
    text :: binary(),
    known :: atoll_tsung_dtd:attributes(),
    %% of the request that is read
    subst = false :: boolean(),
    %% whether there is a request
    asks = false :: boolean(),
    nodes = [] :: [node()],
    clients = [] :: [string()],
    errors = [] :: [error()]
}).

%% @doc What a scenario says, or the first that is wrong with it. Which elements and attributes there
%% are is the document type's.
-spec read(Text :: binary(), atoll_tsung_dtd:attributes()) -> {ok, facts()} | {error, error()}.
read(Text, Known) ->
    Options = [skip_external_dtd, {event_fun, fun event/3}, {event_state, #state{text = Text, known = Known}}],
    case xmerl_sax_parser:stream(Text, Options) of
        {ok, #state{errors = [], asks = false}, _} ->
            {error, {none, "it has no request"}};
        {ok, #state{errors = [], nodes = Nodes, clients = Clients}, _} ->
            {ok, #{nodes => lists:usort(Nodes), clients => lists:usort(Clients)}};
        {ok, #state{errors = Errors}, _} ->
            {error, lists:last(Errors)};
        {_, _, _, _, #state{errors = [_ | _] = Errors}} ->
            {error, lists:last(Errors)};
        {_, {_, _, Line}, Reason, _, _} ->
            {error, {Line, ["it is no XML: ", said(Reason)]}}
    end.

said(Reason) ->
    case io_lib:char_list(Reason) of
        true -> Reason;
        false -> io_lib:format("~0tp", [Reason])
    end.

event({startElement, _, Name, _, Given}, {_, _, Line}, #state{known = Known} = State) ->
    Attributes = [{Attribute, Value} || {_, _, Attribute, Value} <- Given],
    case Known of
        #{Name := Has} -> element(Name, Attributes, Line, attributes_wrong(Name, Attributes, Has, Line, State));
        #{} -> wrong(Line, Name, ["there is no element ", Name, " in a scenario"], State)
    end;
event({endElement, _, "request", _}, _, State) ->
    State#state{subst = false};
event(_, _, State) ->
    State.

%% Those of a request have sentences of their own.
attributes_wrong("rpc", _, _, _, State) ->
    State;
attributes_wrong(Element, Given, Has, Line, State) ->
    lists:foldl(fun({Near, Sentence}, S) -> wrong(Line, Near, Sentence, S) end, State,
        [{Name, unknown(Element, Name, Has)} || {Name, _} <- Given, not lists:keymember(Name, 1, Has)] ++
        [{Name, [Name, " of ", Element, " must be one of ", lists:join(", ", Words), ", not \"", Value, $"]}
         || {Name, Value} <- Given, {_, [_ | _] = Words, _} <- [lists:keyfind(Name, 1, Has)], not lists:member(Value, Words)] ++
        [{Element, [Element, " needs the attribute ", Name]} || {Name, _, true} <- Has, not lists:keymember(Name, 1, Given)]).

unknown(Element, Name, []) -> [Element, " has no attribute ", Name, ", nor any other"];
unknown(Element, Name, Has) -> [Element, " has no attribute ", Name, "; it has ", lists:join(", ", [Known || {Known, _, _} <- Has])].

element("request", Given, _Line, State) ->
    State#state{subst = proplists:get_value("subst", Given) =:= "true", asks = true};
element("client", Given, _Line, #state{clients = Clients} = State) ->
    case {proplists:get_value("use_controller_vm", Given, "false"), proplists:get_value("host", Given)} of
        {"false", [_ | _] = Host} -> State#state{clients = [Host | Clients]};
        _ -> State
    end;
element("rpc", Given, Line, #state{subst = Subst, nodes = Nodes} = State) ->
    case atoll_tsung_rpc:read(Given, Subst, false) of
        {ok, #{what := {Node, _, _, _}}} -> State#state{nodes = [Node | Nodes]};
        {ok, #{node := Text}} -> State#state{nodes = [list_to_atom(Text) || string:find(Text, "%%") =:= nomatch] ++ Nodes};
        {error, {none, Sentence}} -> wrong(Line, "rpc", Sentence, State);
        {error, {Attribute, Sentence}} -> wrong(Line, Attribute, Sentence, State)
    end;
element(_, _, _, State) ->
    State.

wrong(Line, Near, Sentence, #state{text = Text, errors = Errors} = State) ->
    State#state{errors = [{line(Line, Near, Text), Sentence} | Errors]}.

%% The parser is at the end of the tag, which may have begun some lines before.
line(Last, Word, Text) ->
    Lines = lists:reverse(lists:sublist(binary:split(Text, <<"\n">>, [global]), Last)),
    Is = ["(^|[\\s<])", re:replace(Word, "[^\\w]", "\\\\&", [global, unicode]), "(\\s|=|/|>|$)"],
    case lists:splitwith(fun(Line) -> re:run(Line, Is, [{capture, none}]) =:= nomatch end, Lines) of
        {Later, [_ | _]} -> Last - length(Later);
        {_, []} -> Last
    end.

%% @doc The scenario with another document type, that in this file; no line is another one.
-spec with_dtd(Text :: binary(), file:filename()) -> {ok, binary()} | {error, error()}.
with_dtd(Text, File) ->
    Named = unicode:characters_to_binary(["\"", escaped(File), "\""]),
    case re:run(Text, "<!DOCTYPE\\s+tsung\\s+(?:SYSTEM\\s+(\"[^\"]*\"|'[^']*'))?", [{capture, all, index}]) of
        {match, [_, {At, Length}]} ->
            <<Before:At/binary, _:Length/binary, After/binary>> = Text,
            {ok, <<Before/binary, Named/binary, After/binary>>};
        {match, [{At, Length}]} ->
            <<Before:At/binary, Type:Length/binary, After/binary>> = Text,
            {ok, <<Before/binary, Type/binary, " SYSTEM ", Named/binary, " ", After/binary>>};
        nomatch ->
            case re:run(Text, "<tsung\\b", [{capture, first, index}]) of
                {match, [{At, _}]} ->
                    <<Before:At/binary, After/binary>> = Text,
                    {ok, <<Before/binary, "<!DOCTYPE tsung SYSTEM ", Named/binary, "> ", After/binary>>};
                nomatch ->
                    {error, {none, "it has no element tsung"}}
            end
    end.

%% @doc What is wrong, in a sentence.
-spec format_error(error()) -> unicode:chardata().
format_error({none, Sentence}) -> Sentence;
format_error({Line, Sentence}) -> ["line ", integer_to_list(Line), ": ", Sentence].
