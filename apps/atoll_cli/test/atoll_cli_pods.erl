%% SPDX-License-Identifier: Apache-2.0
%% Pods of a StatefulSet, as far as the network tells them apart: a network namespace in which their addresses are this machine's, and
%% a DNS server (dnsmasq, from Debian) with the records that Kubernetes makes of a headless service whose port has a name.
-module(atoll_cli_pods).

-export([available/1, network/2, within/3, address/1, host/2, dns/4]).

%% @doc Whether there can be some; what is lacking is installed where Debian has it and this user may.
-spec available(Programs :: [string()]) -> ok | {skip, string()}.
available(Programs) ->
    _ = os:cmd(filename:join(atoll_cli_os:root(), "scripts/setup") ++ " dnsmasq-base iproute2"),
    case {[Program || Program <- ["dnsmasq", "unshare", "nsenter", "ip" | Programs], os:find_executable(Program) =:= false], os:cmd("unshare -n -m true 2>&1")} of
        {[], ""} -> ok;
        {[], Why} -> {skip, "there can be no network namespace here: " ++ Why};
        {Lacking, _} -> {skip, "not installed: " ++ lists:append(lists:join(", ", Lacking))}
    end.

%% @doc The network of so many pods, where DNS is asked at 127.0.0.1. Dir is as for {@link atoll_cli_os}.
-spec network(Pods :: pos_integer(), Dir :: file:filename()) -> atoll_cli_os:program().
network(Pods, Dir) ->
    ok = file:write_file(filename:join(Dir, "resolv.conf"), "nameserver 127.0.0.1\n"),
    ok = file:write_file(filename:join(Dir, "network.sh"), [
        "set -eu\nip link set lo up\n",
        [["ip addr add ", inet:ntoa(address(N)), "/32 dev lo\n"] || N <- lists:seq(0, Pods - 1)],
        "mount --bind ", Dir, "/resolv.conf /etc/resolv.conf\n",
        "echo ready\nexec sleep infinity\n"
    ]),
    Holder = atoll_cli_os:start(Dir, {sh, "exec unshare -n -m sh " ++ Dir ++ "/network.sh"}, Dir),
    _ = atoll_cli_os:await_line(Holder, stdout, <<"ready">>),
    Holder.

%% @doc Starts a command there.
-spec within(atoll_cli_os:program(), Command :: iodata(), Dir :: file:filename()) -> atoll_cli_os:program().
within(#{os_pid := Pid}, Command, Dir) ->
    Enter = "exec nsenter -t " ++ integer_to_list(Pid) ++ " -n -m ",
    atoll_cli_os:start(Dir, {sh, lists:flatten([Enter, Command])}, Dir).

%% @doc The address of a pod.
-spec address(N :: non_neg_integer()) -> inet:ip4_address().
address(N) -> {10, 42, 0, 10 + N}.

%% @doc The name of a pod: the StatefulSet and the service have one name.
-spec host(N :: non_neg_integer(), Service :: string()) -> string().
host(N, Service) -> lists:concat([hd(string:split(Service, ".")), "-", N, ".", Service]).

%% @doc Starts the server, with the records of these pods at a port whose name is `dist'.
-spec dns([non_neg_integer()], {Service :: string(), inet:port_number()}, atoll_cli_os:program(), Dir :: file:filename()) -> atoll_cli_os:program().
dns(Pods, {Service, Port}, Network, Dir) ->
    File = filename:join(Dir, lists:concat(["dnsmasq", length(Pods)])),
    ok = file:write_file(File, [
        "no-resolv\nno-hosts\nbind-interfaces\nlisten-address=127.0.0.1\nuser=root\nkeep-in-foreground\n",
        "log-facility=-\npid-file=\nlocal=/cluster.local/\n",
        [
            ["host-record=", host(N, Service), ",", inet:ntoa(address(N)), "\nsrv-host=_dist._tcp.", Service, ",", host(N, Service), ",", integer_to_list(Port), "\n"]
         || N <- Pods
        ]
    ]),
    Dns = within(Network, ["dnsmasq --conf-file=", File], Dir),
    _ = atoll_cli_os:await_line(Dns, stderr, <<"started">>),
    Dns.
