%% SPDX-License-Identifier: Apache-2.0
%% @doc Where a node listens, when its name does not say so: a module for
%% `-epmd_module' that knows the addresses and ports of some nodes, and leaves
%% everything else to OTP's `erl_epmd'.
%%
%% A node's name says at which host it is, and the port mapper (EPMD) of that host
%% says at which port. Behind a translated address, in a pod, or where no EPMD
%% runs, that is not so; but a discovery source may know it. What such a source
%% says is kept here:
%% <ul>
%% <li>A known address and port are used as they are. No name is resolved and no
%%   EPMD is asked.</li>
%% <li>Of a node whose port alone is known (an SRV record), the host of its name is
%%   resolved, and no EPMD is asked.</li>
%% <li>Of a node whose address alone is known, the EPMD at that address is
%%   asked.</li>
%% <li>A known address of the other family (IPv4, IPv6) than the connection's is
%%   of no use: that node is left to `erl_epmd' altogether.</li>
%% </ul>
%% With `-no_epmd' (for which erl wants `-proto_dist inet_tcp' too) there is no process
%% that could register this node anywhere, so it is not registered, and whoever wants
%% to connect has to know its port.
%%
%% It runs before the application does, inside kernel: then it knows nothing and is
%% `erl_epmd'. What it knows outlives the application. It does not check that it is
%% true: a wrong port is a connection that fails, until the source says better.
%%
%% What is known is one term that every connection attempt reads and that hardly
%% ever changes, hence a persistent term. A change is costly (the runtime visits
%% every process), so callers tell of changes only.
-module(atoll_epmd).

-export([learn/2, summary/0, in_use/0]).
-export([start_link/0, register_node/2, register_node/3, port_please/2, port_please/3]).
-export([listen_port_please/2, address_please/3, names/0, names/1]).

-export_type([way/0, ways/0]).

-type way() :: #{
    %% Where the node's host is reached, in place of what its name resolves to.
    address => inet:ip_address(),
    %% The port at which the node listens, so that no EPMD has to be asked.
    port => 1..65535
}.

-type ways() :: #{Node :: binary() => way()}.
%% By the name of the node as text: no atom is made here.

-type host() :: atom() | string() | inet:ip_address().

%% The version of the distribution protocol: that of OTP 23 and later.
-define(VERSION, 6).

%% @doc Adds to what is known of nodes. An empty way is no longer to be used. Of
%% nodes that were not known before, at most so many are kept that there are `Max'
%% in all; the others are counted as refused. One process calls this at a time.
-spec learn(ways(), Max :: pos_integer()) -> ok.
learn(News, Max) ->
    {Ways, Refused} = Before = get_term(),
    case maps:fold(fun(Node, Way, Acc) -> learn(Node, Way, Max, Acc) end, {Ways, Refused}, News) of
        Before -> ok;
        After -> persistent_term:put(?MODULE, After)
    end.

learn(Node, Way, _Max, {Ways, Refused}) when map_size(Way) =:= 0 ->
    {maps:remove(Node, Ways), Refused};
learn(Node, Way, Max, {Ways, Refused}) when is_map_key(Node, Ways); map_size(Ways) < Max ->
    {Ways#{Node => Way}, Refused};
learn(_Node, _Way, _Max, {Ways, Refused}) ->
    {Ways, Refused + 1}.

%% @doc For people: of how many nodes something is known, and how many were refused.
-spec summary() -> #{known | refused := non_neg_integer()}.
summary() ->
    {Ways, Refused} = get_term(),
    #{known => map_size(Ways), refused => Refused}.

%% @doc Whether this node was started with `-epmd_module atoll_epmd'.
-spec in_use() -> boolean().
in_use() ->
    net_kernel:epmd_module() =:= ?MODULE.

%% @doc Starts the process of `erl_epmd', which registers this node.
-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() ->
    erl_epmd:start_link().

%% @doc Registers this node with the EPMD of this host, as `register_node/3'.
-spec register_node(string(), inet:port_number()) -> {ok, Creation :: integer()} | {error, term()}.
register_node(Name, Port) ->
    register_node(Name, Port, inet).

%% @doc Registers this node with the EPMD of this host, unless it runs without one.
-spec register_node(string(), inet:port_number(), Driver) ->
    {ok, Creation :: integer()} | {error, term()}
when
    Driver :: inet_tcp | inet6_tcp | inet | inet6.
register_node(Name, Port, Driver) ->
    case init:get_argument(no_epmd) of
        %% The kernel makes a creation up where it is given a negative one.
        {ok, _} -> {ok, -1};
        error -> erl_epmd:register_node(Name, Port, Driver)
    end.

%% @doc The port of a node at that host, as `port_please/3'.
-spec port_please(Name :: atom() | string(), host()) ->
    {port, inet:port_number(), Version :: non_neg_integer()} | noport | closed | {error, term()}.
port_please(Name, Host) ->
    port_please(Name, Host, infinity).

%% @doc The port of a node at that host: the known one, or what the EPMD there says.
-spec port_please(Name :: atom() | string(), host(), timeout()) ->
    {port, inet:port_number(), Version :: non_neg_integer()} | noport | closed | {error, term()}.
port_please(Name, Host, Timeout) ->
    case way(Name, Host) of
        #{port := Port} -> {port, Port, ?VERSION};
        #{} -> erl_epmd:port_please(Name, Host, Timeout)
    end.

%% @doc The port at which this node is to listen; 0 leaves the choice.
-spec listen_port_please(Name :: atom() | string(), host()) -> {ok, inet:port_number()}.
listen_port_please(Name, Host) ->
    erl_epmd:listen_port_please(Name, Host).

%% @doc The address of a node, and its port if it is known too.
-spec address_please(Name :: atom() | string(), host(), inet | inet6) ->
    {ok, inet:ip_address()}
    | {ok, inet:ip_address(), inet:port_number(), Version :: non_neg_integer()}
    | {error, term()}.
address_please(Name, Host, Family) ->
    case way(Name, Host) of
        #{address := Address} = Way ->
            case family(Address) of
                Family -> with_port({ok, Address}, Way);
                _ -> erl_epmd:address_please(Name, Host, Family)
            end;
        Way ->
            with_port(erl_epmd:address_please(Name, Host, Family), Way)
    end.

with_port({ok, Address}, #{port := Port}) -> {ok, Address, Port, ?VERSION};
with_port(Answer, _Way) -> Answer.

%% @doc The nodes that are registered at this host, as `names/1'.
-spec names() -> {ok, [{Name :: string(), inet:port_number()}]} | {error, term()}.
names() ->
    erl_epmd:names().

%% @doc The nodes that are registered with the EPMD of that host.
-spec names(host()) -> {ok, [{Name :: string(), inet:port_number()}]} | {error, term()}.
names(Host) ->
    erl_epmd:names(Host).

way(Name, Host) ->
    {Ways, _Refused} = get_term(),
    maps:get(unicode:characters_to_binary([text(Name), $@, text(Host)]), Ways, #{}).

text(Atom) when is_atom(Atom) -> atom_to_list(Atom);
text(Address) when is_tuple(Address) -> inet:ntoa(Address);
text(String) -> String.

family(Address) when tuple_size(Address) =:= 4 -> inet;
family(Address) when tuple_size(Address) =:= 8 -> inet6.

-spec get_term() -> {ways(), Refused :: non_neg_integer()}.
get_term() ->
    persistent_term:get(?MODULE, {#{}, 0}).
