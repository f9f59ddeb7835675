%% SPDX-License-Identifier: Apache-2.0
%% @doc Who may ask a watch over HTTP, and how answers are written. Pure but for static files: the request comes in as a
%% map, an answer goes out; what is asked is for {@link atoll_watch_api}.
%%
%% Promised: nothing but the page's files and the interface's description is answered without the
%% token, which is compared in a time that does not hang on where it differs. It is in a header, or in
%% a cookie that a page gets for it; one who comes with a cookie alone is to come from the page itself if
%% he changes something. Where the watch listens on loopback the name that was asked for is to be one of loopback. Paths are taken
%% as they are written: of files those alone are served that lie in the directory of the page. Every answer says of what type
%% it is, that it is to be taken for nothing else, and that no script runs which is not the page's.
-module(atoll_watch_http).

-export([answer/2, cookie_value/1, status_line/1, headers/1, takes/2]).

-export_type([request/0, answer/0, config/0]).

-type request() :: #{
    method := binary(),
    %% Without the query, as it was written.
    path := binary(),
    query := binary(),
    %% In lower case; of several of one name all.
    headers := [{binary(), binary()}],
    %% Or a file that has it.
    body => binary() | {file, file:filename()},
    peer := binary()
}.

-type answer() :: {Status :: 200..599, [{Name :: binary(), iodata()}], iodata()} | {events, After :: binary()} | {traffic, atoll_watch_traffic:wants()}.

-type config() :: #{
    token := binary(),
    port := inet:port_number(),
    %% Whether it listens on loopback alone.
    loopback := boolean(),
    tls := boolean(),
    %% Where the page is.
    page := file:filename_all(),
    openapi := binary()
}.

-define(MAX_BODY, 65536).
-define(HOSTS, [<<"localhost">>, <<"127.0.0.1">>, <<"[::1]">>]).

%% @doc Where the body of a request is taken to, and how many bytes it has at most: an archive is a file, if who sends it is allowed to.
-spec takes(request(), config()) -> {memory | file, pos_integer()}.
takes(#{method := <<"PUT">>, path := <<"/api/v1/deploy/archive/", _/binary>>} = Request, Config) ->
    case {host(Request, Config), allowed(Request, Config)} of
        {ok, ok} -> {file, atoll_deploy_release:most()};
        _ -> {memory, ?MAX_BODY}
    end;
takes(_, _) ->
    {memory, ?MAX_BODY}.

%% @doc The answer to a request.
-spec answer(request(), config()) -> answer().
answer(Request, Config) ->
    case host(Request, Config) of
        ok -> routed(Request, Config);
        {error, Sentence} -> error_answer(403, Sentence)
    end.

%% A page of elsewhere may have its name lead to this machine.
host(#{headers := Headers}, #{loopback := Loopback}) ->
    case {[Host || {<<"host">>, Host} <- Headers], Loopback} of
        {[Host], true} ->
            case lists:member(string:lowercase(re:replace(Host, "(?<=.):[0-9]*$", "", [{return, binary}])), ?HOSTS) of
                true -> ok;
                false -> {error, "This watch listens on loopback, and answers to no other name than localhost."}
            end;
        {[_], false} -> ok;
        {_, _} -> {error, "The request does not say which host is asked."}
    end.

routed(#{method := Method, path := <<"/openapi.json">>}, #{openapi := OpenApi}) ->
    only_read(Method, fun() -> {200, [json()], OpenApi} end);
routed(#{method := <<"POST">>, path := <<"/api/v1/session">>} = Request, #{token := Token} = Config) ->
    case {from_page(Request), atoll_watch_api:body(Request, [{<<"token">>, text, 1, 200}])} of
        {false, _} -> error_answer(403, "This is for the page of the watch.");
        {true, {ok, #{<<"token">> := Given}}} ->
            case equal(Given, Token) of
                true -> {204, [set_cookie(cookie_value(Token), "", Config)], <<>>};
                false -> wrong_token()
            end;
        {true, {error, Sentence}} -> error_answer(400, Sentence)
    end;
routed(#{method := Method, path := Path, query := Query} = Request, #{token := Token} = Config) ->
    case is_guarded(Path) of
        true ->
            case allowed(Request, Config) of
                ok -> guarded(Request, Config);
                {error, Status, Sentence} -> unauthorized(Status, Sentence)
            end;
        false ->
            only_read(Method, fun() ->
                case [Given || {<<"token">>, Given} <- uri_string:dissect_query(Query), is_binary(Given)] of
                    [] -> static(Path, Config);
                    [Given | _] ->
                        case equal(Given, Token) of
                            %% Out of sight, and out of the history.
                            true -> {303, [{<<"Location">>, "/"}, set_cookie(cookie_value(Token), "", Config)], <<>>};
                            false -> wrong_token()
                        end
                end
            end)
    end.

is_guarded(<<"/api">>) -> true;
is_guarded(<<"/api/", _/binary>>) -> true;
is_guarded(<<"/metrics">>) -> true;
is_guarded(_) -> false.

only_read(Method, Fun) when Method =:= <<"GET">>; Method =:= <<"HEAD">> -> Fun();
only_read(_, _) -> {405, [json(), {<<"Allow">>, "GET, HEAD"}], sentence("This is read only.")}.

guarded(#{method := <<"DELETE">>, path := <<"/api/v1/session">>}, Config) ->
    {204, [set_cookie("", "; Max-Age=0", Config)], <<>>};
guarded(Request, _Config) ->
    case atoll_watch_api:answer(Request) of
        {events, _} = Events -> Events;
        {traffic, _} = Traffic -> Traffic;
        {text, Text} -> {200, [{<<"Content-Type">>, "text/plain; version=0.0.4; charset=utf-8"}], Text};
        {ok, Status, none} -> {Status, [], <<>>};
        {ok, Status, Object} -> {Status, [json()], atoll_cli_json:encode(Object)};
        {not_allowed, Methods} -> {405, [json(), {<<"Allow">>, lists:join(", ", Methods)}], sentence(["Here one can ", lists:join(" or ", Methods), $.])};
        {error, Status, Sentence} -> error_answer(Status, Sentence)
    end.

%% The token

allowed(#{method := Method, headers := Headers} = Request, #{token := Token} = Config) ->
    Bearer = [Given || {<<"authorization">>, <<Scheme:7/binary, Given/binary>>} <- Headers, string:lowercase(Scheme) =:= <<"bearer ">>],
    Cookies = [Given || {<<"cookie">>, Text} <- Headers, One <- binary:split(Text, <<";">>, [global]), [Name, Given] <- [binary:split(string:trim(One), <<"=">>)], Name =:= cookie_name(Config)],
    case {Bearer, Cookies} of
        {[Given], _} ->
            case equal(Given, Token) of true -> ok; false -> {error, 401, "The token is wrong."} end;
        {[], [Given]} ->
            case {equal(Given, cookie_value(Token)), is_read(Method, Request) orelse from_page(Request)} of
                {true, true} -> ok;
                {true, false} -> {error, 403, "This is for the page of the watch, or for who has the token."};
                {false, _} -> {error, 401, "The token is wrong."}
            end;
        {_, _} -> {error, 401, "There is no token: the link that \"atoll watch\" printed has it."}
    end.

%% Whoever looks at what flows has the nodes do something for it.
is_read(_, #{path := <<"/api/v1/traffic">>}) -> false;
is_read(Method, _) -> Method =:= <<"GET">> orelse Method =:= <<"HEAD">>.

%% What a browser says of where a script is from, if it says so.
from_page(#{headers := Headers}) ->
    case {[Origin || {<<"origin">>, Origin} <- Headers], [Host || {<<"host">>, Host} <- Headers]} of
        {[], _} -> [] =:= [Site || {<<"sec-fetch-site">>, Site} <- Headers, Site =/= <<"same-origin">>, Site =/= <<"none">>];
        {[Origin], [Host]} -> Origin =:= <<"http://", Host/binary>> orelse Origin =:= <<"https://", Host/binary>>;
        {_, _} -> false
    end.

%% Of sums of the same length.
equal(Given, Token) -> crypto:hash_equals(crypto:hash(sha256, Given), crypto:hash(sha256, Token)).

%% @doc What a page has in place of the token: the token does not follow from it.
-spec cookie_value(Token :: binary()) -> binary().
cookie_value(Token) -> binary:encode_hex(crypto:mac(hmac, sha256, Token, <<"cookie">>)).

%% Cookies of all ports of a machine are together.
cookie_name(#{port := Port}) -> <<"atoll_watch_", (integer_to_binary(Port))/binary>>.

set_cookie(Value, More, #{tls := Tls} = Config) ->
    {<<"Set-Cookie">>, [cookie_name(Config), $=, Value, "; Path=/; HttpOnly; SameSite=Strict", [case Tls of true -> "; Secure"; false -> "" end], More]}.

wrong_token() -> unauthorized(401, "The token is wrong.").

unauthorized(401, Sentence) -> {401, [json(), {<<"WWW-Authenticate">>, "Bearer realm=\"atoll watch\""}], sentence(Sentence)};
unauthorized(Status, Sentence) -> error_answer(Status, Sentence).

error_answer(Status, Sentence) -> {Status, [json()], sentence(Sentence)}.

sentence(Text) -> atoll_cli_json:encode({[{error, unicode:characters_to_binary(Text)}]}).

json() -> {<<"Content-Type">>, "application/json; charset=utf-8"}.

%% The page: a name is letters, digits and a few signs, so it leads nowhere else.

static(<<"/">>, Config) ->
    static(<<"/index.html">>, Config);
static(Path, #{page := Page}) ->
    case re:run(Path, "^(/[A-Za-z0-9_-][A-Za-z0-9._-]*){1,4}$", [dollar_endonly, {capture, none}]) of
        match ->
            case read(filename:join(Page, binary:part(Path, 1, byte_size(Path) - 1))) of
                {ok, File} -> {200, [{<<"Content-Type">>, type(filename:extension(Path))} | kept(Path)], File};
                {error, _} when Path =:= <<"/index.html">> ->
                    {200, [{<<"Content-Type">>, "text/plain; charset=utf-8"}], "The page is not built: \"make watch-page\" builds it. All that it shows is at /api/v1, which /openapi.json describes.\n"};
                {error, _} -> error_answer(404, "There is no such page.")
            end;
        nomatch ->
            error_answer(404, "There is no such page.")
    end.

%% No link leads out of it.
read(File) ->
    case file:read_link_all(File) of
        {error, einval} -> file:read_file(File);
        _ -> {error, enoent}
    end.

type(<<".html">>) -> "text/html; charset=utf-8";
type(<<".js">>) -> "text/javascript; charset=utf-8";
type(<<".css">>) -> "text/css; charset=utf-8";
type(<<".svg">>) -> "image/svg+xml";
type(<<".png">>) -> "image/png";
type(<<".ico">>) -> "image/x-icon";
type(<<".woff2">>) -> "font/woff2";
type(<<".json">>) -> "application/json; charset=utf-8";
type(<<".txt">>) -> "text/plain; charset=utf-8";
type(_) -> "application/octet-stream".

%% Their names have a sum of what is in them.
kept(<<"/assets/", _/binary>>) -> [{<<"Cache-Control">>, "public, max-age=31536000, immutable"}];
kept(_) -> [].

%% How it is written

%% @doc The first line of an answer.
-spec status_line(200..599) -> iolist().
status_line(Status) -> ["HTTP/1.1 ", integer_to_list(Status), $\s, reason(Status), "\r\n"].

%% @doc The lines of headers, those that every answer has among them.
-spec headers([{binary(), iodata()}]) -> iolist().
headers(Headers) ->
    Always = [
        {<<"X-Content-Type-Options">>, "nosniff"},
        {<<"X-Frame-Options">>, "DENY"},
        {<<"Referrer-Policy">>, "no-referrer"},
        {<<"Cross-Origin-Resource-Policy">>, "same-origin"},
        {<<"Content-Security-Policy">>, "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}
    ] ++ [{<<"Cache-Control">>, "no-store"} || not lists:keymember(<<"Cache-Control">>, 1, Headers)],
    [[Name, ": ", Value, "\r\n"] || {Name, Value} <- Always ++ Headers].

reason(200) -> "OK";
reason(201) -> "Created";
reason(202) -> "Accepted";
reason(204) -> "No Content";
reason(303) -> "See Other";
reason(400) -> "Bad Request";
reason(401) -> "Unauthorized";
reason(403) -> "Forbidden";
reason(404) -> "Not Found";
reason(405) -> "Method Not Allowed";
reason(408) -> "Request Timeout";
reason(409) -> "Conflict";
reason(411) -> "Length Required";
reason(413) -> "Content Too Large";
reason(500) -> "Internal Server Error";
reason(503) -> "Service Unavailable";
reason(504) -> "Gateway Timeout";
reason(507) -> "Insufficient Storage".
