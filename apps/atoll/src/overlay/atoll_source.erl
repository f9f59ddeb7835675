%% @doc One discovery source: what it looks like, whether that is right, and how it is
%% read.
%%
%% A source gives contacts, names of nodes through which this one can join. Some also
%% say how a node is reached ({@link atoll_epmd:way()}).
-module(atoll_source).

-export([check/1, is_path/1, format_error/1, read/1, deadline/1, label/1]).

-export_type([source/0, dns/0, contact/0, reading/0, error/0]).

-type source() ::
    %% Contacts that are known beforehand.
    {nodes, [node()]}
    %% A file, as {@link atoll_source_file} reads it.
    | {file, file:name_all()}
    %% Records in the domain name system, as {@link atoll_source_dns} reads them.
    | {dns, dns()}.

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

-type contact() :: {Node :: binary(), atoll_epmd:way()}.

-type reading() ::
    %% What it holds, and what is wrong with the rest of it.
    {ok, [contact()], [atoll_source_reason:complaint()]}
    | {error, atoll_source_reason:reason()}.

-type error() :: {bad_source, Source :: term(), Why :: why()}.

-type why() ::
    unknown_kind
    | {not_a_node, term()}
    | not_a_list
    | bad_path
    | not_a_map
    | no_name
    | {unknown_key, term()}
    | {bad_value, atom(), term()}.

-define(TIMEOUT_MS, 5000).
%% How long after the resolver's time is over.
-define(GRACE_MS, 1000).

%% @doc Checks how a source is written, key by key. Nothing is read.
-spec check(term()) -> ok | {error, error()}.
check(Source) ->
    case why(Source) of
        ok -> ok;
        Why -> {error, {bad_source, Source, Why}}
    end.

why({nodes, Nodes}) -> contacts(Nodes);
why({file, Path}) -> path(Path);
why({dns, #{name := _} = Dns}) -> keys(lists:sort(maps:to_list(Dns)));
why({dns, Dns}) when is_map(Dns) -> no_name;
why({dns, _}) -> not_a_map;
why(_) -> unknown_kind.

contacts([]) ->
    ok;
contacts([Node | Nodes]) ->
    case is_atom(Node) andalso atoll_source_names:is_name(atom_to_binary(Node)) of
        true -> contacts(Nodes);
        false -> {not_a_node, Node}
    end;
contacts(_) ->
    not_a_list.

path(Path) ->
    case is_path(Path) of
        true -> ok;
        false -> bad_path
    end.

%% @doc Whether a term can be the path of a file or a folder: a text that is not empty and
%% has no zero in it.
-spec is_path(term()) -> boolean().
is_path(Path) when is_binary(Path) -> Path =/= <<>> andalso binary:match(Path, <<0>>) =:= nomatch;
is_path(Path) -> is_text(Path).

keys([]) ->
    ok;
keys([{Key, Value} | Rest]) ->
    case value(Key, Value) of
        true -> keys(Rest);
        false -> {bad_value, Key, Value};
        unknown -> {unknown_key, Key}
    end.

value(name, Name) -> is_text(Name) andalso is_domain(Name);
value(type, Type) -> lists:member(Type, [a, aaaa, srv]);
value(node, Node) -> is_text(Node) andalso matches(Node, "^[0-9A-Za-z_-]+$");
value(nameservers, [_ | _] = Servers) -> length_of(Servers) =/= improper andalso lists:all(fun is_server/1, Servers);
value(nameservers, _) -> false;
value(timeout, Ms) -> is_integer(Ms) andalso Ms >= 100 andalso Ms =< 16#FFFFFFF;
value(_Key, _) -> unknown.

is_text(Text) ->
    is_list(Text) andalso Text =/= [] andalso length_of(Text) =/= improper andalso
        lists:all(fun(C) -> is_integer(C) andalso C > 0 andalso C =< 16#10FFFF end, Text).

length_of(List) when length(List) >= 0 -> length(List);
length_of(_) -> improper.

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

%% @doc One sentence for an error of {@link check/1}.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_source, Source, Why}) ->
    io_lib:format("the discovery source ~0tp is wrong: ~ts", [Source, sentence(Why)]).

sentence(unknown_kind) ->
    "it must be {nodes, Nodes}, {file, Path} or {dns, Map}";
sentence({not_a_node, Term}) ->
    io_lib:format("~0tp is not the name of a node, name@host", [Term]);
sentence(not_a_list) ->
    "the nodes must be a list";
sentence(bad_path) ->
    "the path of a file must be a text that is not empty";
sentence(not_a_map) ->
    "what follows dns must be a map";
sentence(no_name) ->
    "the key name is missing";
sentence({unknown_key, Key}) ->
    io_lib:format("it has no key ~0tp; there are name, type, node, nameservers and timeout", [Key]);
sentence({bad_value, Key, Value}) ->
    io_lib:format("~ts must be ~ts, not ~0tp", [Key, wanted(Key), Value]).

wanted(name) -> "a domain name, such as \"app.svc.local\"";
wanted(type) -> "a, aaaa or srv";
wanted(node) -> "what stands before the @ in the names of nodes: letters, digits, _ and -";
wanted(nameservers) -> "a list of {Address, Port}, not empty";
wanted(timeout) -> "a number of milliseconds, 100 at least".

%% @doc Reads a source that {@link check/1} found right, now, and takes the time that it
%% takes: {@link deadline/1} says when to give up.
-spec read(source()) -> reading().
read({nodes, Nodes}) -> {ok, [{atom_to_binary(Node), #{}} || Node <- Nodes], []};
read({file, Path}) -> atoll_source_file:read(Path);
read({dns, #{name := Name} = Dns}) -> atoll_source_dns:read(maps:merge(defaults(), Dns#{name := without_dot(Name)})).

defaults() ->
    #{type => a, timeout => ?TIMEOUT_MS}.

%% @doc After how many milliseconds a read is late, and whether its process is to be
%% killed then. One that waits for a file is not: it would be gone and the runtime's
%% thread that waits for the file system still be taken, one more each time, until the
%% node can read no file at all.
-spec deadline(source()) -> {kill | leave, pos_integer()}.
deadline({dns, #{timeout := Timeout}}) -> {kill, Timeout + ?GRACE_MS};
deadline({file, _}) -> {leave, ?TIMEOUT_MS};
deadline(_) -> {kill, ?TIMEOUT_MS + ?GRACE_MS}.

%% @doc What to call a source in a sentence.
-spec label(source()) -> unicode:chardata().
label({nodes, _}) -> "the list of nodes";
label({file, Path}) -> io_lib:format("the file ~ts", [Path]);
label({dns, #{name := Name} = Dns}) -> io_lib:format("the DNS name ~ts (~s)", [Name, maps:get(type, Dns, a)]).
