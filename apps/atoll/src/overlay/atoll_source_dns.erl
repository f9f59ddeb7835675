%% @doc Contacts from DNS, as headless services publish them.
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

-export([read/1, contacts/3]).

-define(RETRIES, 3).
%% The resolver of OTP 27 and later gives up a wait of less than 50 ms at once, and the
%% first wait is this divided by the retries.
-define(MIN_WAIT_MS, 150).

%% @doc The contacts that the name has now. It takes the source's `timeout' at most.
-spec read(atoll_source:dns()) -> atoll_source:reading().
read(#{name := Name, type := Type, timeout := Timeout} = Source) ->
    Options = [{retry, ?RETRIES}, {timeout, max(?MIN_WAIT_MS, Timeout div 2)} | nameservers(Source)],
    case ask(Name, Type, Options, Timeout) of
        {ok, Message} ->
            Answers = inet_dns:msg(Message, anlist),
            Data = [inet_dns:rr(Answer, data) || Answer <- Answers, inet_dns:rr(Answer, type) =:= Type],
            {Contacts, Complaints} = contacts(Type, node_part(Source), Data),
            {ok, Contacts, Complaints};
        {error, nxdomain} ->
            {ok, [], [{no_records, Type}]};
        {error, {nxdomain, _Message}} ->
            {ok, [], [{no_records, Type}]};
        {error, {Reason, _Message}} ->
            {error, {dns, Reason}};
        {error, Reason} ->
            {error, {dns, Reason}}
    end.

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
%% theirs, and what is wrong with them.
-spec contacts(a | aaaa | srv, Node :: string(), Data :: [term()]) ->
    {[atoll_source:contact()], [atoll_source_reason:complaint()]}.
contacts(Type, _Node, []) ->
    {[], [{no_records, Type}]};
contacts(Type, Node, Data) ->
    All = [{iolist_to_binary([Node, $@, Host]), Way} || {Host, Way} <- lists:map(fun(D) -> host(Type, D) end, Data)],
    {Good, Bad} = lists:partition(fun({Name, _}) -> atoll_source_names:is_name(Name) end, All),
    {lists:usort(Good), [{bad_records, length(Bad)} || Bad =/= []]}.

host(srv, {_Priority, _Weight, 0, Target}) -> {Target, #{}};
host(srv, {_Priority, _Weight, Port, Target}) -> {Target, #{port => Port}};
host(_Type, Address) -> {inet:ntoa(Address), #{}}.
