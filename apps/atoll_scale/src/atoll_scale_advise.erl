%% SPDX-License-Identifier: Apache-2.0
%% @doc From what was measured while a service failed to what limits it: findings, the likeliest cause first, each
%% with what was seen and what to change next. Pure: runs come in as data, recorded ones as well as fresh ones.
%%
%% The order is that of causes before what follows from them: a service without a file left accepts nobody, so its
%% listen queue overflows too, or it ends; a machine without a processor to spare has long queues everywhere. Among findings of one
%% cause the one nearer to its limit comes first. What only runs far beyond the limit show comes last, with its level. A cause that several runs show is told once, as the run shows it in which it was worst.
%%
%% Not promised: that a finding is the cause. It says what was at its limit while runs failed; a change and a
%% comparison ({@link atoll_scale_tune}) say whether that was it. Where nothing was at a limit there is no finding.
%%
%% It is one module, though long: a clause for each cause, with its sentences.
-module(atoll_scale_advise).

-export([causes/0, findings/1, findings/2]).

-export_type([cause/0, finding/0]).

-type cause() ::
    %% Open files of a process; processes, ports and atoms of an Erlang node.
    files | processes | ports | atoms
    | memory
    %% The service has ended.
    | ended
    %% Ports for connections that the load makes; the load itself.
    | outgoing | load
    %% One Erlang process that all wait for.
    | process
    | backlog
    %% Waits for locks in the emulator, where that counts them; garbage collection.
    | locks | collections
    | processors
    %% The connections of a node with others.
    | distribution.

-type finding() :: #{
    cause := cause(),
    %% What it is about: a port, a process.
    subject := binary(),
    %% How near to its limit it was; above 1 beyond it.
    weight := number(),
    %% What was seen, and what to change, a sentence each.
    says := binary(),
    change := binary()
}.

%% A share of a limit from which on it counts as reached, and a share of processors.
-define(FULL, 0.95).
-define(BUSY, 0.9).
%% A mailbox with fewer messages is no limit, nor one that is not so many times as long as the next one.
-define(LONG, 10).
-define(LONGER, 4).
%% The share of looks at which it must have had work.
-define(OFTEN, 0.5).
-define(LITTLE_MEMORY, 0.05).
%% Shares of the time of a run, all schedulers together, and of the work of schedulers that work for half of the time.
-define(LOCKED, 0.25).
-define(COLLECTING, 0.3).
-define(WORKING, 0.5).

%% @doc All causes, those first that others follow from.
-spec causes() -> [cause(), ...].
causes() ->
    [files, processes, ports, atoms, memory, ended, outgoing, load, process, backlog, locks, collections, processors, distribution].

%% @doc What limits the service, by runs that failed.
-spec findings([atoll_scale_run:run()]) -> [finding()].
findings(Runs) -> [Finding || {Finding, _} <- ordered(Runs)].

%% @doc What limits the service, by runs at the lowest level that failed, and what others show beside that.
-spec findings([atoll_scale_run:run()], Others :: [atoll_scale_run:run()]) -> [finding()].
findings(Runs, Others) ->
    Near = findings(Runs),
    Known = [subject(Finding) || Finding <- Near],
    Near ++ [
        Finding#{says := unicode:characters_to_binary(["At ", count(Level), ", and not where it first failed: ", Says])}
     || {#{says := Says} = Finding, Level} <- ordered(Others), not lists:member(subject(Finding), Known)
    ].

ordered(Runs) ->
    All = [{Finding, Level} || #{level := Level} = Run <- Runs, Cause <- causes(), Finding <- seen(Cause, Run)],
    lists:uniq(fun({Finding, _}) -> subject(Finding) end, lists:sort(fun before/2, All)).

subject(#{cause := Cause, subject := Subject}) -> {Cause, Subject}.

before({#{cause := A, weight := WeightA}, _}, {#{cause := B, weight := WeightB}, _}) ->
    {place(A), -WeightA} =< {place(B), -WeightB}.

place(Cause) -> length(lists:takewhile(fun(Is) -> Is =/= Cause end, causes())).

seen(ended, #{machine := #{ended := Said}}) when is_binary(Said) ->
    [finding(ended, <<>>, 1, ["The service ended during the run", [[": ", Said] || Said =/= <<>>], $.], "Read what it has said before it ended: it must refuse what is too much, and live.")];
seen(files, #{machine := #{files := Files}}) ->
    [
        finding(files, Name, Most / Limit,
            [Name, " had ", count(Most), " of ", count(Limit), " files open."],
            "Raise its limit of open files: ulimit -n before it is started, or LimitNOFILE in its unit.")
     || #{name := Name, most := Most, limit := Limit} <- Files, is_integer(Limit), Most >= ?FULL * Limit
    ];
seen(Cause, #{node := #{limits := Limits}}) when Cause =:= processes; Cause =:= ports; Cause =:= atoms ->
    [
        finding(Cause, <<>>, Most / Limit,
            ["The node had ", count(Most), " of ", count(Limit), $\s, atom_to_list(Cause), $.],
            raise(Cause))
     || #{what := What, most := Most, limit := Limit} <- Limits, What =:= Cause, Most >= ?FULL * Limit
    ];
seen(outgoing, #{machine := #{outgoing := #{most := Most, of_all := All}}} = Run) ->
    Refused = reason(<<"eaddrnotavail">>, Run),
    [
        finding(outgoing, <<>>, Most / All,
            ["Up to ", count(Most), " connections went to one place, and there are ", count(All), " ports for connections that go out",
             [[", and ", count(Refused), " connections found none"] || Refused > 0], $.],
            "Widen net.ipv4.ip_local_port_range, keep connections open, or make the load from several addresses.")
     || Refused > 0 orelse Most >= ?FULL * All
    ];
seen(load, #{machine := #{load_files := #{most := Most, limit := Limit}}} = Run) when is_integer(Limit) ->
    Refused = reason(<<"emfile">>, Run),
    [
        finding(load, <<"files">>, Most / Limit,
            case Most >= ?FULL * Limit of
                true -> ["The program that makes the load had ", count(Most), " of ", count(Limit), " files open: the limit is its own."];
                false -> ["The load found no file left, ", times(Refused), "; atoll itself had up to ", count(Most), " of ", count(Limit), " open."]
            end,
            "Raise ulimit -n where atoll is started.")
     || Refused > 0 orelse Most >= ?FULL * Limit
    ] ++ loaded(Run);
seen(load, Run) ->
    loaded(Run);
seen(process, #{node := #{mailboxes := [#{most := Most, had := Had, looks := Looks} = Mailbox | Others]}}) ->
    Next = lists:max([0 | [N || #{most := N} <- Others]]),
    #{name := Name, current := Current, work := Work} = Mailbox,
    [
        finding(process, Name, Most,
            ["Process ", Name, " had up to ", count(Most), " messages waiting, and some at ", count(Had), " of ", count(Looks),
             " looks; the next longest mailbox had ", count(Next), ". It did ", atoll_cli_table:percent(Work), " of the work of the node."],
            ["One process does what all wait for, mostly in ", Current,
             ": let several do it, or have others do what does not touch its state, and answer with gen_server:reply/2."])
     || Most >= ?LONG, Most >= ?LONGER * Next, Had >= ?OFTEN * Looks
    ];
seen(backlog, #{machine := #{overflows := Overflows, ms := Ms, listeners := Listeners} = Machine}) when Overflows > 0 ->
    case {[Is || #{most := Most, backlog := Backlog} = Is <- Listeners, Most >= Backlog], lists:sort([{Most / Backlog, Is} || #{most := Most, backlog := Backlog} = Is <- Listeners, Most > 0])} of
        {[_ | _] = Full, _} -> [full(Is, Overflows, Ms, Machine) || Is <- Full];
        %% It is full for a moment only: the one that was nearest to that is the likeliest.
        {[], [_ | _] = Used} ->
            {_, #{port := Port, backlog := Backlog, most := Most}} = lists:last(Used),
            [finding(backlog, integer_to_binary(Port), Overflows,
                ["Listen queues of this machine overflowed ", times(Overflows), " in ", atoll_cli_table:seconds(Ms), "; no look saw which. That of port ",
                 integer_to_list(Port), " had up to ", count(Most), " of ", count(Backlog), " connections."],
                raise_backlog(Backlog, Machine))];
        %% Those of the service were empty: it was somebody else's.
        {[], []} -> []
    end;
seen(locks, #{node := #{locks := [_ | _] = Locks}}) ->
    [
        finding(locks, Name, Share,
            ["The emulator waited for its locks ", Name, " for ", atoll_cli_table:percent(Share), " of the time, at ", count(Collisions), " of ", count(Tries), " times that they were taken."],
            ["Let fewer processes use at once what ", Name, " guards: lcnt shows where it is taken; of a table, write_concurrency."])
     || #{name := Name, share := Share, collisions := Collisions, tries := Tries} <- Locks, Share >= ?LOCKED
    ];
seen(collections, #{node := #{collecting := Share, collections := Rate, utilisation := Work}}) when is_float(Share), Share >= ?COLLECTING, Work >= ?WORKING ->
    [finding(collections, <<>>, Share,
        ["Garbage collection was ", atoll_cli_table:percent(Share), " of the work of the node's schedulers, ", atoll_cli_table:decimal(Rate), " collections a second."],
        "Find the processes with large heaps (bin/atoll top shows them): keep less in them, or in a table, or do such work in processes that end, or with a larger min_heap_size.")];
seen(processors, #{machine := #{cores := Cores, service_cpu := Cpu}, node := #{utilisation := Share, schedulers := Schedulers, run_queue := Queue}} = Run) when Share >= ?BUSY ->
    [finding(processors, <<>>, Share,
        ["The schedulers of the node were at work for ", atoll_cli_table:percent(Share), " of the time, with up to ", count(Queue),
         " processes waiting to run; the service used ", atoll_cli_table:decimal(Cpu), " of ", count(Cores), " processors."],
        [more_processors(Schedulers, Cores), [" Whether they wait for locks is not known: this emulator does not count them, and erl -emu_type lcnt does." || uncounted(Run)]])];
seen(processors, #{machine := #{cores := Cores, service_cpu := Cpu}}) when Cpu >= ?BUSY * Cores ->
    [finding(processors, <<>>, Cpu / Cores,
        ["The service used ", atoll_cli_table:decimal(Cpu), " of ", count(Cores), " processors."],
        "Profile it, or give it more processors: another machine, another node.")];
seen(memory, #{machine := #{available := Least, memory := All, service_memory := Service}}) when is_integer(All), Least < ?LITTLE_MEMORY * All ->
    [finding(memory, <<>>, 1 - Least / All,
        ["The machine had ", atoll_cli_table:bytes(Least), " of memory left; the service had ", atoll_cli_table:bytes(Service), $.],
        "Let it keep less for each client (hibernate what is idle, bound what waits), or add memory.")];
seen(distribution, #{node := #{connections := Connections, suspended := Suspended}}) ->
    [
        finding(distribution, Peer, Most / Limit,
            ["Up to ", count(Most), " bytes waited for the connection with ", Peer, ", and from ", count(Limit), " on senders are suspended; ",
             count(Suspended), " processes were."],
            "Raise +zdbbl, send less to that node, or put bulk in a channel of its own.")
     || #{peer := Peer, most := Most, limit := Limit} <- Connections, Most >= ?BUSY * Limit
    ];
seen(_, _) ->
    [].

finding(Cause, Subject, Weight, Says, Change) ->
    #{cause => Cause, subject => Subject, weight => Weight, says => unicode:characters_to_binary(Says), change => unicode:characters_to_binary(Change)}.

count(N) -> atoll_cli_table:count(N).

times(1) -> "once";
times(N) -> [count(N), " times"].

reason(Reason, #{load := #{reasons := Reasons}}) -> maps:get(Reason, Reasons, 0).

raise(processes) -> "Start it with a larger +P, or let fewer processes live at once.";
raise(ports) -> "Start it with a larger +Q.";
raise(atoms) -> "Find what makes atoms of what clients send; +t only puts it off.".

%% The load has taken the processors from the service.
loaded(#{machine := #{cores := Cores, service_cpu := Service, load_cpu := Load}}) when Load > Service, Load + Service >= ?BUSY * Cores ->
    [finding(load, <<"processors">>, Load / Cores,
        ["The load used ", atoll_cli_table:decimal(Load), " of ", count(Cores), " processors, and the service ", atoll_cli_table:decimal(Service),
         ": the limit may be that of the load."],
        "Make the load on another machine.")];
loaded(_) ->
    [].

full(#{port := Port, backlog := Backlog, most := Most}, Overflows, Ms, Machine) ->
    finding(backlog, integer_to_binary(Port), Overflows,
        ["The listen queue of port ", integer_to_list(Port), " has room for ", count(Backlog), " connections, had ", count(Most), ", and overflowed ",
         times(Overflows), " in ", atoll_cli_table:seconds(Ms), $.],
        raise_backlog(Backlog, Machine)).

raise_backlog(Backlog, Machine) ->
    Kernel = maps:get(somaxconn, Machine, none),
    ["Raise the backlog of that listen socket", [[", and net.core.somaxconn, which is ", count(Kernel)] || is_integer(Kernel), Backlog >= Kernel], $.].

uncounted(#{node := #{locks := none}}) -> true;
uncounted(_) -> false.

more_processors(Schedulers, Cores) when Schedulers < Cores ->
    ["It has ", count(Schedulers), " schedulers for ", count(Cores), " processors: start it with more (+S)."];
more_processors(_, _) ->
    "Profile it (bin/atoll top shows its processes), or add a node.".
