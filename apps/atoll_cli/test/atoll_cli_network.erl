%% SPDX-License-Identifier: Apache-2.0
%% Hosts of their own on this machine, and switches between them: each host has a network and
%% processes that nobody else has, and an address; it reaches those that are on a switch with
%% it, and nobody else. A host that is unplugged is cut off as by a cable that is pulled:
%% what it sends is lost, nothing tells it so, and its own loopback works on.
%%
%% All of it is namespaces of the kernel. They, and all that runs in them, end with the process
%% that holds them, and with this VM in whatever way that ends.
-module(atoll_cli_network).

-export([can/0, start/1, stop/1, join/3, address/1, netns/2, shell/3, unplug/2, plug/2]).

-export_type([network/0, host/0]).

-type host() :: 1..254.

-opaque network() :: #{
    holder := pid(),
    %% The first process of each host, and that of the switches.
    hosts := #{host() => string()},
    switches := string(),
    %% The ports of the switches that a host's cables are in.
    ports := [{host(), string()}]
}.

-define(MS, 30000).

%% What runs in a host, whose first process says by which number it is known outside; until its
%% input ends. That process is a shell, which sees to those that lose their parents.
-define(HOST,
    "read -r pid _ </proc/self/stat; mount -t proc proc /proc; ip link set lo up; "
    "[ -z \"$1\" ] || ip addr add \"$1/32\" dev lo; echo \"$pid\"; cat >/dev/null; exit 0"
).

%% @doc Whether there can be such hosts here.
-spec can() -> ok | {skip, string()}.
can() ->
    Lacking = [Program || Program <- ["ip", "unshare", "nsenter"], os:find_executable(Program) =:= false],
    Try = "unshare --mount --net --pid --fork sh -c 'ip link add veth0 type veth peer name veth1 && ip link add sw0 type bridge' 2>&1",
    case Lacking =:= [] andalso os:cmd(Try) of
        false -> {skip, "not installed: " ++ lists:append(lists:join(", ", Lacking))};
        "" -> ok;
        Why -> {skip, "there can be no hosts with a network of their own here: " ++ Why}
    end.

%% @doc Starts the hosts that are on some switch; each switch is the list of those on it.
-spec start([[host(), ...], ...]) -> network().
start(Switches) ->
    Self = self(),
    {Holder, Ref} = spawn_monitor(fun() -> hold(Switches, Self) end),
    receive
        {Holder, Network} ->
            true = demonitor(Ref, [flush]),
            Network;
        {'DOWN', Ref, process, Holder, Why} ->
            error(Why)
    end.

%% @doc Ends them, and all that runs there.
-spec stop(network()) -> ok.
stop(#{holder := Holder}) ->
    Ref = monitor(process, Holder),
    Holder ! stop,
    receive
        {'DOWN', Ref, process, Holder, normal} -> ok
    after ?MS -> error(not_stopped)
    end.

hold(Switches, For) ->
    Names = lists:usort(lists:append(Switches)),
    {Between, BetweenPort} = host(""),
    Started = [{Name, host(address(Name))} || Name <- Names],
    Hosts = maps:from_list([{Name, Pid} || {Name, {Pid, _}} <- Started]),
    Ports = [Cable || {N, On} <- lists:enumerate(Switches), Cable <- switch(integer_to_list(N), On, Between, Hosts)],
    For ! {self(), #{holder => self(), hosts => Hosts, switches => Between, ports => Ports}},
    receive
        stop -> ok
    end,
    [ended(Port) || Port <- [BetweenPort | [Port || {_, {_, Port}} <- Started]]],
    ok.

host(Address) ->
    Port = open_port({spawn_executable, os:find_executable("unshare")}, [
        {args, ["--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-ec", ?HOST, "sh", Address]},
        {line, 100}, exit_status, use_stdio
    ]),
    receive
        {Port, {data, {eol, Pid}}} -> {Pid, Port};
        {Port, {exit_status, Status}} -> error({no_host, Status})
    after ?MS -> error(no_host)
    end.

%% Its input ends with the port, and the host's processes with the first one.
ended(Port) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    true = port_close(Port),
    ok = atoll_cli_os:await(fun() -> not filelib:is_dir("/proc/" ++ integer_to_list(Pid)) end, ?MS).

switch(N, On, Between, Hosts) ->
    ok = done(Between, ["ip link add sw", N, " type bridge && ip link set sw", N, " up"]),
    [{Host, cable(Host, N, On, Between, Hosts)} || Host <- On].

%% Ends are called after the switch, and at the switch after the host.
cable(Host, N, On, Between, Hosts) ->
    #{Host := Pid} = Hosts,
    At = lists:append(["p", integer_to_list(Host), "_", N]),
    ok = done(Between, [
        "ip link add ", At, " type veth peer name net", N, " netns ", Pid, " && ",
        "ip link set ", At, " master sw", N, " && ip link set ", At, " up"
    ]),
    Routes = [[" && ip route add ", address(Other), "/32 dev net", N, " src ", address(Host)] || Other <- On, Other =/= Host],
    ok = done(Pid, ["ip link set net", N, " up" | Routes]),
    At.

%% Only the network of that process: others are known by the numbers that they have here.
done(Pid, Command) ->
    "" = os:cmd(lists:flatten(["nsenter -t ", Pid, " --net sh -c '", Command, "' 2>&1"])),
    ok.

%% @doc Has the hosts of two switches, the first being 1, reach each other over a wire ({@link atoll_wire}), which is to be
%% stopped after the network.
-spec join(network(), {pos_integer(), pos_integer()}, atoll_wire:wire()) -> ok.
join(#{switches := Between, hosts := Hosts, ports := Ports}, {One, Other}, Wire) ->
    On = fun(N) -> [Host || {Host, At} <- Ports, lists:suffix("_" ++ integer_to_list(N), At)] end,
    [End, FarEnd] = atoll_wire:ends(Wire),
    ok = over(One, {End, FarEnd}, {On(One), On(Other)}, Between, Hosts),
    ok = over(Other, {FarEnd, End}, {On(Other), On(One)}, Between, Hosts).

%% A wire carries packets between its ends alone, so those of the switches are put into such (VXLAN), and the rest of
%% them is a little smaller.
over(N, {#{wrap := Wrap, address := Local}, #{address := Remote}}, {Near, Far}, Between, Hosts) ->
    Switch = integer_to_list(N),
    %% It lives for as long as its input is open: its number says in which network the interface is to be.
    [Program | Args] = Wrap ++ ["sh", "-c", "echo $$; exec cat"],
    Port = open_port({spawn_executable, os:find_executable(Program)}, [{args, Args}, {line, 100}, exit_status, use_stdio]),
    Pid = receive {Port, {data, {eol, Line}}} -> Line after ?MS -> error(no_end) end,
    ok = done(Between, [
        "ip link add wire", Switch, " type veth peer name cable0 netns ", Pid, " && ip link set wire", Switch, " master sw", Switch, " && ip link set wire", Switch, " up"
    ]),
    ok = done(Pid, [
        "ip link add vxlan0 type vxlan id 1 local ", inet:ntoa(Local), " remote ", inet:ntoa(Remote), " dstport 4789 && ip link add hub0 type bridge",
        [[" && ip link set ", Link, " master hub0 && ip link set ", Link, " up"] || Link <- ["vxlan0", "cable0"]], " && ip link set hub0 up"
    ]),
    true = port_close(Port),
    _ = [
        ok = done(maps:get(Host, Hosts), lists:join(" && ", [["ip route add ", address(To), "/32 dev net", Switch, " src ", address(Host), " mtu 1400"] || To <- Far]))
     || Host <- Near
    ],
    ok.

%% @doc The address of a host.
-spec address(host()) -> string().
address(Host) -> "10.71.0." ++ integer_to_list(Host).

%% @doc Its network, as sockets of this VM can be opened there (`netns' of `inet').
-spec netns(network(), host()) -> file:filename().
netns(#{hosts := Hosts}, Host) ->
    #{Host := Pid} = Hosts,
    "/proc/" ++ Pid ++ "/ns/net".

%% @doc What runs a shell's command there.
-spec shell(network(), host(), Command :: string()) -> [string(), ...].
shell(#{hosts := Hosts}, Host, Command) ->
    #{Host := Pid} = Hosts,
    [os:find_executable("nsenter"), "-t", Pid, "--mount", "--net", "--pid", "sh", "-c", Command].

%% @doc Cuts a host off.
-spec unplug(network(), host()) -> ok.
unplug(Network, Host) -> set(Network, Host, "down").

%% @doc And no more.
-spec plug(network(), host()) -> ok.
plug(Network, Host) -> set(Network, Host, "up").

set(#{switches := Between, ports := Ports}, Host, State) ->
    _ = [ok = done(Between, ["ip link set ", At, " ", State]) || {Of, At} <- Ports, Of =:= Host],
    ok.
