%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The discovery source `dns': contacts from DNS, as headless services publish them.
%%
%% A and AAAA records give addresses, and the contact of each is `node@address'
%% (nodes of AAAA records have names such as `app@2001:db8::7', which Erlang takes as
%% long names where the distribution runs over IPv6). SRV records give hosts and
%% ports: the contact is `node@host', and the port is the node's distribution port.
%% Priority and weight say nothing here, since every node is a contact.
%%
%% A name is asked as it stands: no search domain is added. OTP's resolver asks again
%% over TCP where an answer does not fit; some releases do not understand the hint that
%% it does not (issue 11114 of erlang/otp: 27.3.4 and those around it), so what cannot be
%% understood is asked for over TCP from here. A name that does not exist is an empty
%% answer, and that is said.
-module(atoll_source_dns).

-behaviour(atoll_source).

-export([check/1, read/1, deadline/1, label/1, format_error/1, contacts/3]).

-type dns() :: #{
    %% The whole name; a dot at its end is as good as none.
    name := string(),
    %% Default a.
    type => a | aaaa | srv,
    %% What stands before the @ in the names of the nodes. Default: as in this
    %% node's own.
    node => string(),
    %% Who is asked. Default: those that the system is set up with.
    nameservers => [{inet:ip_address(), inet:port_number()}, ...],
    %% How many milliseconds the answer may take, 100 at least. Default 5000.
    timeout => pos_integer()
}.

-type why() :: not_a_map | no_name | {unknown_key, term()} | {bad_value, atom(), term()}.

%% What the resolver said.
-type reason() :: {dns, term()}.

%% The name is not there, or has no records of that type.
-type complaint() :: {no_records, a | aaaa | srv}.

-define(TIMEOUT_MS, 5000).
%% How long a reader has after the resolver's time is over.
-define(GRACE_MS, 1000).

-define(RETRIES, 3).
%% The resolver of OTP 27 and later gives up a wait of less than 50 ms at once, and the
%% first wait is this divided by the retries.
-define(MIN_WAIT_MS, 150).

%% @private
-spec check(term()) -> ok | {error, why()}.
check(#{name := _} = Dns) -> keys(lists:sort(maps:to_list(Dns)));
check(Dns) when is_map(Dns) -> {error, no_name};
check(_) -> {error, not_a_map}.

keys([]) ->
    ok;
keys([{Key, Value} | Rest]) ->
    case value(Key, Value) of
        true -> keys(Rest);
        false -> {error, {bad_value, Key, Value}};
        unknown -> {error, {unknown_key, Key}}
    end.

value(name, Name) -> atoll_source:is_text(Name) andalso is_domain(Name);
value(type, Type) -> lists:member(Type, [a, aaaa, srv]);
value(node, Node) -> atoll_source:is_text(Node) andalso matches(Node, "^[0-9A-Za-z_-]+$");
value(nameservers, [_ | _] = Servers) when length(Servers) > 0 -> lists:all(fun is_server/1, Servers);
value(nameservers, _) -> false;
value(timeout, Ms) -> is_integer(Ms) andalso Ms >= 100 andalso Ms =< 16#FFFFFFF;
value(_Key, _) -> unknown.

%% Labels of 63 bytes at most, 253 in all. A service's begin with `_'. An address is
%% none, though it looks like one.
is_domain(Name) ->
    inet:parse_address(without_dot(Name)) =:= {error, einval} andalso
        length(without_dot(Name)) =< 253 andalso
        matches(without_dot(Name), "^[0-9A-Za-z_-]{1,63}(\\.[0-9A-Za-z_-]{1,63})*$").

without_dot(Name) ->
    case lists:suffix(".", Name) of
        true -> lists:droplast(Name);
        false -> Name
    end.

matches(Text, Pattern) ->
    re:run(Text, Pattern, [unicode, dollar_endonly, {capture, none}]) =:= match.

is_server({Address, Port}) -> inet:is_ip_address(Address) andalso is_integer(Port) andalso Port > 0 andalso Port < 65536;
is_server(_) -> false.

%% @doc The contacts that the name has now. It takes the source's `timeout' at most.
-spec read(dns()) -> atoll_source:reading().
read(#{name := Dotted} = Source) ->
    Name = without_dot(Dotted),
    Type = type(Source),
    Timeout = timeout(Source),
    Options = [{retry, ?RETRIES}, {timeout, max(?MIN_WAIT_MS, Timeout div 2)} | nameservers(Source)],
    case ask(Name, Type, Options, Timeout) of
        {ok, Message} ->
            Answers = inet_dns:msg(Message, anlist),
            Data = [inet_dns:rr(Answer, data) || Answer <- Answers, inet_dns:rr(Answer, type) =:= Type],
            {ok, contacts(Type, node_part(Source), Data), [{no_records, Type} || Data =:= []]};
        {error, nxdomain} ->
            {ok, [], [{no_records, Type}]};
        {error, {nxdomain, _Message}} ->
            {ok, [], [{no_records, Type}]};
        {error, {Reason, _Message}} ->
            {error, {dns, Reason}};
        {error, Reason} ->
            {error, {dns, Reason}}
    end.

type(Source) -> maps:get(type, Source, a).

timeout(Source) -> maps:get(timeout, Source, ?TIMEOUT_MS).

ask(Name, Type, Options, Timeout) ->
    Begin = erlang:monotonic_time(millisecond),
    case inet_res:resolve(Name, in, Type, Options, Timeout) of
        {error, formerr} ->
            Left = max(1, Timeout - (erlang:monotonic_time(millisecond) - Begin)),
            inet_res:resolve(Name, in, Type, [usevc | Options], Left);
        Answer ->
            Answer
    end.

nameservers(#{nameservers := Servers}) -> [{nameservers, Servers}];
nameservers(#{}) -> [].

node_part(#{node := Node}) -> Node;
node_part(#{}) -> hd(string:split(atom_to_list(node()), "@")).

%% @doc The contacts of these records of one type, in an order that does not hang on
%% theirs, whether they can be names of nodes or not.
-spec contacts(a | aaaa | srv, Node :: string(), Data :: [term()]) -> [atoll_source:contact()].
contacts(Type, Node, Data) ->
    lists:usort([{iolist_to_binary([Node, $@, Host]), Way} || {Host, Way} <- lists:map(fun(D) -> host(Type, D) end, Data)]).

host(srv, {_Priority, _Weight, 0, Target}) -> {Target, #{}};
host(srv, {_Priority, _Weight, Port, Target}) -> {Target, #{port => Port}};
host(_Type, Address) -> {inet:ntoa(Address), #{}}.

%% @private
-spec deadline(dns()) -> atoll_source:deadline().
deadline(Source) ->
    {kill, timeout(Source) + ?GRACE_MS}.

%% @private
-spec label(dns()) -> unicode:chardata().
label(#{name := Name} = Source) ->
    io_lib:format("the DNS name ~ts (~s)", [Name, type(Source)]).

%% @private
-spec format_error(why() | reason() | complaint()) -> unicode:chardata().
format_error(not_a_map) ->
    "what follows dns must be a map";
format_error(no_name) ->
    "the key name is missing";
format_error({unknown_key, Key}) ->
    io_lib:format("it has no key ~0tp; there are name, type, node, nameservers and timeout", [Key]);
format_error({bad_value, Key, Value}) ->
    io_lib:format("~ts must be ~ts, not ~0tp", [Key, wanted(Key), Value]);
format_error({dns, timeout}) ->
    "no name server answered in time";
format_error({dns, formerr}) ->
    "what the name server answered cannot be understood";
format_error({dns, Reason}) ->
    io_lib:format("the name servers' answer was ~tp", [Reason]);
format_error({no_records, Type}) ->
    io_lib:format("the name is not there, or has no records of type ~s", [string:uppercase(atom_to_list(Type))]).

wanted(name) -> "a domain name, such as \"app.svc.local\"";
wanted(type) -> "a, aaaa or srv";
wanted(node) -> "what stands before the @ in the names of nodes: letters, digits, _ and -";
wanted(nameservers) -> "a list of {Address, Port}, not empty";
wanted(timeout) -> "a number of milliseconds, 100 at least".
