%% SPDX-License-Identifier: Apache-2.0
%% @doc A request of Tsung's users that calls a function of a node: what the element `rpc' of a
%% scenario says, and what is done for it. The plugin `ts_rpc' (priv/ts_rpc.erl) only passes on to here.
%%
%% It runs on the nodes of Tsung, and calls nothing but OTP there: a client on another machine has
%% this module and the plugin alone.
%%
%% Promised: a cast waits for nobody, once its node is connected. A call that failed is counted as
%% `error_rpc', and by why as `error_rpc_nodedown' and so on; one whose function returned `{error, Reason}' as
%% `error_answer'. Tsung's nodes connect to others as hidden ones: `global' of these does not hear of Tsung's
%% names, and nobody comes to know another node by it. Names that variables make fill neither Tsung's atom
%% table nor that of a node that is called: a VM that has 100,000 atoms takes no new ones.
%%
%% Not promised: that a cast arrived. That is Erlang's.
-module(atoll_tsung_rpc).
-compile({no_auto_import, [put/2]}).

-export([attributes/0, read/3, subst/2, message/1, run/1, outcome/1, text/1]).
-export([let_in/1, cookie/0]).

-export_type([request/0, answer/0]).

-type request() :: #{
    type := call | cast,
    %% As they stand in the scenario; dynamic variables may be in all of these.
    module := string(),
    function := string(),
    arguments := string(),
    node := string(),
    %% Without, the user waits as long as Tsung lets it.
    timeout := timeout(),
    %% Whether Tsung wants the result as text, to look for something in it.
    keep := boolean(),
    %% What the texts mean; `dynamic' if that hangs on variables.
    what := what() | dynamic
}.

-type what() :: {node(), module(), Function :: atom(), Args :: [term()]}.

-type kind() :: ok | answer | nodedown | timeout | undef | exit | other | arguments | names.
%% Why a request failed: the function returned an error, the node is not there, has no such function, or
%% the function ended with an exception; or the variables made no arguments, or no names.

-type answer() :: {kind(), Bytes :: non_neg_integer()} | [byte() | binary(), ...].
%% With the text of the result if that is wanted: Tsung takes it out of a list.

-define(VARIABLE, "%%[^%\\s]+%%").
-define(KINDS, [ok, answer, nodedown, timeout, undef, exit, other, arguments, names]).
-define(COOKIE, {?MODULE, cookie}).
-define(COOKIE_MS, 5000).
%% Of an atom, by Erlang.
-define(MAX_NAME, 255).
%% Tsung has some 20,000 of its own, and ten of its VMs may call one node, which has room for 1,048,576.
-define(MAX_ATOMS, 100000).
%% What is no name in a text of terms, and what may be one.
-define(NO_NAME, "\"(?:[^\"\\\\]++|\\\\.)*+\"|\\$(?:\\\\.|.)|%[^\\n]*|[0-9]+(?:_[0-9]+)*(?:#[0-9A-Za-z]+|\\.[0-9]+(?:[eE][-+]?[0-9]+)?)?|[A-Z_][\\w@]*").
-define(NAME, "'((?:[^'\\\\]++|\\\\.)*+)'|([a-z\\x{df}-\\x{ff}][\\w@\\x{c0}-\\x{ff}]*)").

%% @doc The attributes that a request may have.
-spec attributes() -> [string(), ...].
attributes() -> ["type", "module", "function", "arguments", "node", "timeout"].

%% @doc A request from its attributes, or the sentence on the first that is wrong, and which. Subst
%% is whether the scenario has variables put in here, and Keep whether something is looked for in the
%% result.
-spec read([{Name :: string(), Value :: string()}], Subst :: boolean(), Keep :: boolean()) ->
    {ok, request()} | {error, {Attribute :: string() | none, unicode:chardata()}}.
read(Given, Subst, Keep) ->
    case [Name || {Name, _} <- Given, not lists:member(Name, attributes())] of
        [] ->
            Texts = maps:from_list(Given),
            case [Name || Name <- ["type", "module", "function", "node"], maps:get(Name, Texts, "") =:= ""] of
                [] -> read(maps:merge(#{"arguments" => "", "timeout" => "infinity"}, Texts), maps:keys(Texts), Subst, Keep);
                [Name | _] -> {error, {none, ["rpc needs the attribute ", Name]}}
            end;
        [Name | _] ->
            {error, {Name, ["rpc has no attribute ", Name, "; it has ", lists:join(", ", attributes())]}}
    end.

read(Texts, Given, Subst, Keep) ->
    Variables = [Name || Name <- lists:sort(Given), has_variable(map_get(Name, Texts))],
    case {type(Texts), timeout(Texts), Variables} of
        {{error, _} = Error, _, _} -> Error;
        {_, {error, _} = Error, _} -> Error;
        {_, _, [Name | _]} when not Subst ->
            {error, {Name, ["there is a variable in ", Name, ", and the request does not say subst=\"true\""]}};
        {{ok, Type}, {ok, Timeout}, _} ->
            Request = #{
                type => Type, timeout => Timeout, keep => Keep, what => dynamic, module => map_get("module", Texts),
                function => map_get("function", Texts), arguments => map_get("arguments", Texts), node => map_get("node", Texts)
            },
            case meant(without_variables(Request)) of
                {ok, What} when Variables =:= [] -> {ok, Request#{what := What}};
                {ok, _} -> {ok, Request};
                {error, _} = Error -> Error
            end
    end.

type(#{"type" := "call"}) -> {ok, call};
type(#{"type" := "cast"}) -> {ok, cast};
type(#{"type" := Text}) -> {error, {"type", ["type must be call or cast, not \"", Text, $"]}}.

timeout(#{"timeout" := "infinity"}) ->
    {ok, infinity};
timeout(#{"timeout" := Text}) ->
    case string:to_integer(Text) of
        {Ms, ""} when is_integer(Ms), Ms > 0, Ms =< 16#ffffffff -> {ok, Ms};
        _ -> {error, {"timeout", ["timeout must be a whole number of milliseconds above 0, not \"", Text, $"]}}
    end.

has_variable(Text) -> re:run(Text, ?VARIABLE, [unicode, {capture, none}]) =:= match.

%% A variable may stand for a number, if for nothing else; or for the name of a node.
without_variables(#{node := Node, arguments := Text} = Request) ->
    Named = case lists:member($@, Node) of true -> "0"; false -> "0@0" end,
    Request#{node := put(Node, Named), arguments := put(Text, "0")}.

put(Text, By) -> re:replace(Text, ?VARIABLE, By, [unicode, global, {return, list}]).

%% @doc Puts something in the place of the variables.
-spec subst(request(), fun((string()) -> unicode:chardata())) -> request().
subst(#{what := dynamic} = Request, Put) ->
    maps:map(
        fun
            (Key, Text) when Key =:= module; Key =:= function; Key =:= arguments; Key =:= node -> unicode:characters_to_list(Put(Text));
            (_Key, Value) -> Value
        end,
        Request
    );
subst(Request, _Put) ->
    Request.

meant(#{module := Module, function := Function, node := Node} = Request) ->
    case [{Name, length(Text)} || {Name, Text} <- [{"node", Node}, {"module", Module}, {"function", Function}], length(Text) > ?MAX_NAME] of
        [] -> named(Request);
        [{Name, Length} | _] -> {error, {Name, io_lib:format("~ts must have ~b characters at most, not ~b", [Name, ?MAX_NAME, Length])}}
    end.

named(#{module := Module, function := Function, arguments := Text, node := Node}) ->
    case {re:run(Node, "^[^@\\s]+@[^@\\s]+$", [unicode, dollar_endonly, {capture, none}]), arguments(Text)} of
        {nomatch, _} -> {error, {"node", ["node must be the name of a node, as in a@host, not \"", Node, $"]}};
        {match, {ok, Args}} -> {ok, {list_to_atom(Node), list_to_atom(Module), list_to_atom(Function), Args}};
        {match, error} -> {error, {"arguments", ["arguments must be Erlang terms with commas between, not \"", Text, $"]}}
    end.

arguments(Text) ->
    case erl_scan:string("[" ++ Text ++ "].") of
        {ok, Tokens, _} ->
            case erl_parse:parse_term(Tokens) of
                {ok, Args} when is_list(Args) -> {ok, Args};
                _ -> error
            end;
        {error, _, _} ->
            error
    end.

%% @doc What Tsung's transport `erlang' is given: a function to apply, and how many bytes are sent.
-spec message(request()) -> {module(), run, [request(), ...], Bytes :: non_neg_integer()}.
message(#{what := dynamic, arguments := Text} = Request) -> {?MODULE, run, [Request], length(Text)};
message(#{what := {_, _, _, Args}} = Request) -> {?MODULE, run, [Request], erlang:external_size(Args)}.

%% @doc Does it, in a process of the user's.
-spec run(request()) -> answer().
run(#{keep := Keep} = Request) ->
    {Kind, Result} = done(Request),
    case Keep of
        true -> [number(Kind, ?KINDS, 1), result(Kind, Result)];
        false -> {Kind, erlang:external_size(Result)}
    end.

done(#{what := dynamic} = Request) ->
    case has_room(Request) andalso meant(Request) of
        {ok, What} -> done(Request#{what := What});
        {error, {"arguments", _}} -> {arguments, none};
        _ -> {names, none}
    end;
done(#{type := Type, timeout := Timeout, what := {Node, M, F, Args}}) ->
    case {reached(Node), Type} of
        {false, _} -> {nodedown, none};
        {true, cast} -> {ok, rpc:cast(Node, M, F, Args)};
        {true, call} -> called(rpc:call(Node, M, F, Args, Timeout))
    end.

%% No atom is ever freed, neither here nor where it is sent.
has_room(#{module := Module, function := Function, node := Node, arguments := Text}) ->
    erlang:system_info(atom_count) < ?MAX_ATOMS orelse lists:all(fun is_known/1, [Node, Module, Function | names(Text)]).

%% As they are written: one that is quoted with a backslash is taken for a new one.
names(Text) ->
    case re:run(Text, ?NO_NAME "|(?|" ?NAME ")", [unicode, dotall, global, {capture, all_but_first, list}]) of
        {match, Found} -> lists:append(Found);
        nomatch -> []
    end.

is_known(Name) ->
    try is_atom(list_to_existing_atom(Name))
    catch error:Reason when Reason =:= badarg; Reason =:= system_limit -> false
    end.

called({badrpc, nodedown}) -> {nodedown, none};
called({badrpc, timeout}) -> {timeout, none};
called({badrpc, {'EXIT', {undef, _}}}) -> {undef, none};
called({badrpc, {'EXIT', _}}) -> {exit, none};
called({badrpc, _}) -> {other, none};
called({error, _} = Error) -> {answer, Error};
called(Result) -> {ok, Result}.

%% A binary as it is, all else as Erlang writes it.
result(ok, Binary) when is_binary(Binary) -> Binary;
result(Kind, Result) when Kind =:= ok; Kind =:= answer -> unicode:characters_to_binary(io_lib:format("~0tp", [Result]));
result(_Kind, none) -> <<>>.

number(Kind, [Kind | _], N) -> N;
number(Kind, [_ | Kinds], N) -> number(Kind, Kinds, N + 1).

%% @doc How many bytes were received, and what is counted.
-spec outcome(answer()) -> {Bytes :: non_neg_integer(), Counters :: [atom()]}.
outcome([Number, Text]) -> {byte_size(Text), counters(lists:nth(Number, ?KINDS))};
outcome({Kind, Bytes}) -> {Bytes, counters(Kind)}.

counters(ok) -> [];
counters(answer) -> [error_answer];
counters(Kind) -> [error_rpc, list_to_atom("error_rpc_" ++ atom_to_list(Kind))].

%% @doc The text of the result, from what Tsung has made of an answer.
-spec text(binary()) -> binary().
text(<<_, Text/binary>>) -> Text;
text(<<>>) -> <<>>.

%% Hidden, or `global' there would take Tsung's names, and nodes of a mesh disconnect each other over it.
reached(Node) when Node =:= node() -> true;
reached(Node) ->
    lists:member(Node, nodes(hidden)) orelse is_alive() andalso
        begin
            true = erlang:set_cookie(Node, known()),
            net_kernel:hidden_connect_node(Node) =:= true
        end.

%% @doc Says, on the controller, by which cookie the others are reached. Its clients ask it: the
%% command line on which Tsung starts them does not have it.
-spec let_in(Cookie :: atom()) -> ok.
let_in(Cookie) -> persistent_term:put(?COOKIE, Cookie).

%% @doc That cookie, for the clients.
-spec cookie() -> atom().
cookie() -> persistent_term:get(?COOKIE, erlang:get_cookie()).

known() ->
    case {persistent_term:get(?COOKIE, none), global:whereis_name(ts_mon)} of
        {none, Pid} when is_pid(Pid), node(Pid) =/= node() ->
            case rpc:call(node(Pid), ?MODULE, cookie, [], ?COOKIE_MS) of
                Cookie when is_atom(Cookie) ->
                    ok = let_in(Cookie),
                    Cookie;
                {badrpc, _} ->
                    erlang:get_cookie()
            end;
        {none, _} ->
            erlang:get_cookie();
        {Cookie, _} ->
            Cookie
    end.
