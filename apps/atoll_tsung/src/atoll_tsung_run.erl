%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a scenario once: Tsung's controller, and its clients with it, as a cluster of one node
%% ({@link atoll_cluster}) that ends with this VM in whatever way.
%%
%% Whose host a client stands on is the scenario's: the controller's VM, this machine under the names that
%% `here' has, each client a VM of its own and no ssh between, or other machines, over ssh. Where clients
%% have VMs of their own, and this is root, all of the run is in a namespace of processes, and ends with
%% its first.
-module(atoll_tsung_run).

-export([once/2, name_domain/1]).

-export_type([task/0]).

-type task() :: #{
    place := atoll_tsung_place:place(),
    made := atoll_tsung_place:made(),
    %% As it is run, with our document type.
    scenario := file:filename(),
    facts := atoll_tsung_scenario:facts(),
    way := #{cookie_file => file:filename(), tls_options_file => file:filename()},
    %% Whether the clients' hosts are this machine.
    here := boolean(),
    %% For clients on others: by which address they reach this one, and the program in ssh's place.
    address => inet:ip4_address(),
    connector => string()
}.

-define(START_MS, 180000).
-define(SAID_BYTES, 4000).

%% @doc Runs it, into a folder that is there. After an error nothing of it is left but that.
-spec once(task(), Dir :: file:filename()) -> {ok, atoll_tsung_log:log()} | {error, Sentence :: unicode:chardata()}.
once(#{facts := #{clients := Clients, nodes := Nodes}, way := Way, scenario := Scenario, here := Here} = Task, Dir) ->
    Named = case Nodes of [] -> ['tsung@127.0.0.1']; _ -> Nodes end,
    HostsFile = hosts_file(Here, Clients, Dir),
    Settings = #{
        scenario => filename:absname(Scenario), logs => filename:absname(Dir), way => Way#{nodes => Named},
        here => case Here of true -> Clients; false -> [] end, flags => flags(Task), hosts_file => HostsFile
    },
    case name_domain(Named) of
        {ok, Domain} ->
            atoll_cluster:with_cluster(options(Domain, Task), fun(Cluster) -> driven(Cluster, Settings, Dir) end);
        {error, _} = Error ->
            Error
    end.

%% @doc Whether nodes have long names or short ones: they cannot have both.
-spec name_domain([node(), ...]) -> {ok, longnames | shortnames} | {error, Sentence :: string()}.
name_domain(Nodes) ->
    Is = fun(Node) ->
        [_, Host] = string:split(atom_to_list(Node), "@"),
        case lists:member($., Host) orelse lists:member($:, Host) of true -> longnames; false -> shortnames end
    end,
    case lists:usort([Is(Node) || Node <- Nodes]) of
        [Domain] -> {ok, Domain};
        [_, _] -> {error, "Nodes with long names and nodes with short ones cannot be called in one scenario."}
    end.

options(Domain, #{place := #{ebin := Ebins}, made := #{ebin := Ebin}, facts := #{clients := Clients}} = Task) ->
    Schedulers = integer_to_list(erlang:system_info(logical_processors_available)),
    Named = case Domain of longnames -> #{}; shortnames -> #{name => short_host()} end,
    #{
        name => lists:concat(["tsung_controller_", os:getpid(), "_", erlang:unique_integer([positive]), "_"]),
        nodes => 1,
        hosts => [Named#{address => maps:get(address, Task, {127, 0, 0, 1}), wrap => wrap(Clients)}],
        boot_timeout => ?START_MS,
        %% Tsung passes these paths on to its clients, and one for each flag.
        args => lists:append([["-pa", Path] || Path <- [filename:dirname(code:which(atoll_tsung_rpc)), Ebin | Ebins]]) ++
            ["+S", Schedulers ++ ":" ++ Schedulers, "+P", "1000000", "+K", "true"] ++
            lists:append([["-rsh", connector(Task)] || Clients =/= []]) ++ tls(Task)
    }.

short_host() ->
    {ok, Host} = inet:gethostname(),
    hd(string:split(Host, ".")).

%% All that Tsung starts ends with the first process of the namespace.
wrap([]) -> [];
wrap(_) ->
    case {atoll_cluster_os:uid(), os:find_executable("unshare")} of
        {0, Unshare} when is_list(Unshare) -> [Unshare, "--pid", "--mount-proc", "--fork", "--kill-child"];
        _ -> []
    end.

connector(#{here := true}) -> filename:absname(filename:join(code:priv_dir(atoll_tsung), "here"));
connector(Task) -> maps:get(connector, Task, "ssh").

tls(#{way := #{tls_options_file := File}}) -> ["-proto_dist", "inet_tls", "-ssl_dist_optfile", filename:absname(File)];
tls(_) -> [].

%% Nothing that listens for Tsung's own connections is to be reached from elsewhere. The certificates of TLS are for the
%% nodes' hosts, and not for those names by which clients would reach each other: what has to be is that each has the controller.
flags(#{here := true} = Task) ->
    tls(Task) ++ ["-kernel", "inet_dist_use_interface", "{127,0,0,1}", "prevent_overlapping_partitions", "false"];
flags(_) -> [].

hosts_file(true, [_ | _] = Clients, Dir) ->
    File = filename:absname(filename:join(Dir, "hosts")),
    ok = file:write_file(File, io_lib:format("~0p.~n{lookup,[file,native]}.~n", [{host, {127, 0, 0, 1}, Clients}])),
    File;
hosts_file(_, _, _) ->
    none.

driven(Cluster, Settings, Dir) ->
    [Node] = atoll_cluster:nodes(Cluster),
    try atoll_cluster:call(Cluster, Node, atoll_tsung_controller, start, [Settings], ?START_MS) of
        ok ->
            receive
                {atoll_cluster, Cluster, {node_down, Node, _}} -> ended(Cluster, Node, Dir);
                {atoll_cluster, Cluster, stopped} -> {error, "Tsung was stopped."}
            end;
        {error, _} = Error ->
            Error
    catch
        %% It has ended by itself, over a scenario that it does not take.
        error:{node_down, Node} -> {error, ["Tsung has ended: ", said(Cluster, Node)]};
        error:{timeout, Node} -> {error, "Tsung did not start its users in time."}
    end.

ended(Cluster, Node, Dir) ->
    case [atoll_tsung_log:read(Logs) || Logs <- atoll_tsung_log:find([Dir])] of
        %% It ends its log in the same way when it has given up, such as over a client that it cannot start.
        [{ok, #{complete := true, counts := #{<<"users_count">> := Users}} = Log}] when Users > 0 -> {ok, Log};
        [{ok, #{complete := true}}] -> {error, ["Tsung has ended and no user had come: ", said(Cluster, Node)]};
        [{ok, #{complete := false}}] -> {error, ["Tsung has ended before its users had: ", said(Cluster, Node)]};
        [{error, Error}] -> {error, atoll_tsung_log:format_error(Error)};
        [] -> {error, ["Tsung has ended and written nothing: ", said(Cluster, Node)]}
    end.

%% On one line.
said(Cluster, Node) ->
    #{dir := Dir} = atoll_cluster:info(Cluster),
    case file:read_file(atoll_cluster_rundir:out(Dir, Node)) of
        {ok, <<>>} -> "it said nothing";
        {ok, Text} -> lists:join($\s, string:lexemes(string:slice(Text, 0, ?SAID_BYTES), [$\s, $\t, $\r, $\n, "\r\n"]));
        {error, _} -> "it said nothing"
    end.
