%% SPDX-License-Identifier: Apache-2.0
%% @doc What a watch knows as the objects of priv/openapi.json, and JSON that comes from outside.
-module(atoll_watch_json).

-export([cluster/0, node/1, node/2, manager/1, alarms_by_node/0, family/1, readings/3, metric/1, alarm/1, rule/1, note/1, topology/2, link/1, null/1, decode/1]).

-compile({no_auto_import, [node/1, link/1]}).

-define(STATES, [unknown, up, silent, down, refused]).
-define(SEVERITIES, [critical, major, minor, warning]).
-define(FAMILY_FIGURES, [utilisation, run_queue, memory, processes, reductions_per_s, dist_in_per_s, dist_out_per_s]).
-define(FIGURES, [utilisation, run_queue, memory, processes, processes_limit, reductions_per_s, mailbox_longest, dist_in_per_s, dist_out_per_s, uptime_ms]).

%% @doc The cluster at a glance.
-spec cluster() -> atoll_cli_json:object().
cluster() ->
    #{name := Name, period := Period, started := Started} = atoll_watch_store:about(),
    States = [State || #{state := State} <- atoll_watch_store:nodes()],
    Standing = atoll_watch_store:alarms(standing),
    Counts = atoll_watch:counts(atoll_watch_store:watch()),
    {[
        {name, Name}, {version, unicode:characters_to_binary(version())}, {period_ms, Period}, {now_ms, erlang:system_time(millisecond)}, {started_ms, Started},
        {nodes, {[{State, length([Is || Is <- States, Is =:= State])} || State <- ?STATES]}},
        {alarms, {[{Severity, length([Is || #{severity := Is} <- Standing, Is =:= Severity])} || Severity <- ?SEVERITIES]}},
        {unacknowledged, length([new || #{state := new} <- Standing])},
        {counts, {lists:sort(maps:to_list(Counts)) ++ [{Count, atoll_watch_store:count(Count)} || Count <- [series_beyond, unwritten, unseen, streams_refused, graphite_sent, graphite_dropped]]}},
        {streams, atoll_watch_store:count(streams)}
    ]}.

version() ->
    _ = application:load(atoll),
    {ok, Version} = application:get_key(atoll, vsn),
    Version.

%% @doc How many alarms of each node stand, and the worst of them.
-spec alarms_by_node() -> #{node() => {pos_integer(), atoll_watch_rule:severity()}}.
alarms_by_node() ->
    Severities = maps:groups_from_list(fun({Node, _}) -> Node end, fun({_, Severity}) -> Severity end,
                                       [{Node, Severity} || #{nodes := Nodes, severity := Severity} <- atoll_watch_store:alarms(standing), Node <- Nodes]),
    maps:map(fun(_, Here) -> {length(Here), hd([Severity || Severity <- ?SEVERITIES, lists:member(Severity, Here)])} end, Severities).

%% @doc One node.
-spec node(atoll_watch_store:row()) -> atoll_cli_json:object().
node(Row) -> node(Row, alarms_by_node()).

%% @doc One of many.
-spec node(atoll_watch_store:row(), #{node() => {pos_integer(), atoll_watch_rule:severity()}}) -> atoll_cli_json:object().
node(#{node := Node, state := State, since := Since, why := Why, figures := Figures}, Alarms) ->
    {Count, Worst} = maps:get(Node, Alarms, {0, null}),
    {[
        {node, text(Node)}, {family, atoll_watch_family:of_node(Node)}, {state, State}, {since_ms, Since}, {why, case Why of none -> null; _ -> unicode:characters_to_binary(Why) end},
        {by_hand, atoll_watch_store:is_by_hand(Node)}, {alarms, Count}, {worst, Worst}, {figures, {[{Name, maps:get(Name, Figures, null)} || Name <- ?FIGURES]}}
    ]}.

%% @doc One manager.
-spec manager(atoll_watch_managers:manager()) -> atoll_cli_json:object().
manager(#{id := Id, state := State, since := Since, lost := Lost, os_pid := OsPid, memory := Memory, nodes := Nodes}) ->
    {[
        {id, Id}, {state, State}, {since_ms, erlang:system_time(millisecond) - (erlang:monotonic_time(millisecond) - Since)}, {lost, Lost},
        {os_pid, case OsPid of none -> null; _ -> list_to_integer(OsPid) end}, {memory, null(Memory)}, {nodes, [text(Node) || Node <- Nodes]}
    ]}.

%% @doc A family.
-spec family(atoll_watch_family:family()) -> atoll_cli_json:object().
family(#{name := Name, nodes := Nodes, states := States, alarms := Alarms, worst := Worst, figures := Figures}) ->
    {[
        {family, Name}, {nodes, Nodes}, {states, {[{State, maps:get(State, States, 0)} || State <- ?STATES]}}, {alarms, Alarms}, {worst, null(Worst)},
        {figures, {[{Key, maps:get(Key, Figures, null)} || Key <- ?FAMILY_FIGURES]}}
    ]}.

%% @doc What a node says, of all its metrics or of these, by metric and label; and what stands around that.
-spec readings(atoll_watch_core:seen(), At :: integer() | none, none | [binary()]) ->
    {[{Metric :: binary(), Label :: binary() | null, atoll_cli_json:object()}], atoll_cli_json:object()}.
readings(#{node := Node, state := State, readings := Readings, rates := Rates}, At, Names) ->
    {
        [{Metric, Label, {[{metric, Metric}, {label, Label}, {value, Value}, {rate, maps:get(Key, Rates, null)}]}}
         || {Metric, Label, Key, Value} <- lists:sort([row(Key, Value) || {Key, Value} <- maps:to_list(Readings)]), Names =:= none orelse lists:member(Metric, Names)],
        {[{node, text(Node)}, {state, State}, {at_ms, null(At)}]}
    }.

row({Metric, Label} = Key, Value) -> {text(Metric), text(Label), Key, Value};
row(Metric, Value) -> {text(Metric), null, Metric, Value}.

%% @doc One metric.
-spec metric(atoll_watch_metric:metric()) -> atoll_cli_json:object().
metric(#{name := Name, unit := Unit, kind := Kind, label := Label, help := Help} = Metric) ->
    {Prometheus, _} = atoll_watch_metric:prometheus(Metric),
    {[{name, text(Name)}, {unit, null(Unit)}, {kind, Kind}, {label, null(Label)}, {help, text(Help)}, {prometheus, text(Prometheus)}, {stored, atoll_watch_metric:is_stored(Metric)}]}.

%% @doc One alarm.
-spec alarm(atoll_watch_alarm:alarm()) -> atoll_cli_json:object().
alarm(#{id := Id, rule := Rule, node := Node, nodes := Nodes, information := Information, instance := Instance, state := State, severity := Severity, cause := Cause, repair := Repair, value := Value,
        raised := Raised, cleared := Cleared, acknowledged := Acknowledged, comments := Comments}) ->
    {[
        {id, Id}, {rule, text(Rule)}, {node, text(Node)}, {nodes, [text(Is) || Is <- Nodes]}, {information, null(Information)}, {instance, null(Instance)}, {state, State}, {severity, Severity}, {cause, text(Cause)}, {repair, text(Repair)},
        {value, null(Value)}, {raised_ms, Raised}, {cleared_ms, null(Cleared)},
        {acknowledged, case Acknowledged of none -> null; {Time, Who} -> {[{time_ms, Time}, {who, Who}]} end},
        {comments, [{[{time_ms, Time}, {who, Who}, {text, Text}]} || {Time, Who, Text} <- Comments]}
    ]}.

%% @doc One rule.
-spec rule(atoll_watch_rule:rule()) -> atoll_cli_json:object().
rule(#{id := Id, what := What, raise := Raise, clear := Clear, looks := Looks, severity := Severity, cause := Cause, repair := Repair}) ->
    Bound = fun(Value) -> case What of {state, _} -> null; _ -> Value end end,
    {[{rule, text(Id)}, {about, unicode:characters_to_binary(atoll_watch_cli_alarms:about(What))}, {severity, Severity}, {raise, Bound(Raise)}, {clear, Bound(Clear)}, {looks, Looks},
      {cause, text(Cause)}, {repair, text(Repair)}]}.

%% @doc One notification.
-spec note(atoll_watch_store:note()) -> atoll_cli_json:object().
note(#{id := Id, time := Time, kind := Kind, severity := Severity, node := Node, text := Text} = Note) ->
    {[{id, Id}, {time_ms, Time}, {kind, Kind}, {severity, Severity}, {node, null(Node)}, {text, Text}] ++ [{level, Level} || #{level := Level} <- [Note]]}.

%% @doc How nodes are connected, with so many links at most.
-spec topology(atoll_watch_topology:topology(), pos_integer()) -> atoll_cli_json:object().
topology(#{at := At, atoll := Atoll, groups := Groups, free := Free, links := Links, silent := Silent}, Most) ->
    In = fun(Node) -> [Name || {Name, Nodes} <- Groups, lists:member(Node, Nodes)] end,
    Shown = lists:sublist(Links, Most),
    {[
        {at_ms, At}, {atoll, Atoll},
        {nodes, [{[{node, text(Node)}, {state, State}, {groups, [term(Name) || Name <- In(Node)]}, {gateway, length(In(Node)) > 1}]} || #{node := Node, state := State} <- atoll_watch_store:nodes()]},
        {groups, [{[{name, term(Name)}, {nodes, [text(Node) || Node <- Nodes]}, {gateways, [text(Node) || Node <- Nodes, length(In(Node)) > 1]}]} || {Name, Nodes} <- Groups]},
        {free, [text(Node) || Node <- Free]},
        {links, [link(Link) || Link <- Shown, not is_circuit(Link)]}, {circuits, [link(Link) || Link <- Shown, is_circuit(Link)]},
        {silent, [text(Node) || Node <- Silent]}, {omitted, length(Links) - length(Shown)}
    ]}.

%% A path of its ends alone is a connection of its own.
is_circuit(#{path := [_, _, _ | _]}) -> true;
is_circuit(#{}) -> false.

%% @doc A connection.
-spec link(atoll_view_links:link()) -> atoll_cli_json:object().
link(#{from := From, to := To, kind := Kind, rtt_us := Rtt, connected_by := By, age_ms := Age, bytes_there := There, bytes_back := Back} = Link) ->
    {[
        {from, text(From)}, {to, text(To)}, {kind, term(Kind)}, {rtt_us, null(Rtt)}, {bytes_there, null(There)}, {bytes_back, null(Back)}, {connected_by, null(By)}, {age_ms, null(Age)},
        {path, case Link of #{path := Path} -> [text(Node) || Node <- Path]; #{} -> null end}, {sealed, maps:get(sealed, Link, null)}
    ]}.

%% @doc A value that may be missing.
-spec null(none | unknown | atom() | binary() | number()) -> null | binary() | number().
null(none) -> null;
null(unknown) -> null;
null(Number) when is_number(Number) -> Number;
null(Text) -> text(Text).

text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Text) when is_binary(Text) -> Text;
text(Text) ->
    case unicode:characters_to_binary(Text) of
        Binary when is_binary(Binary) -> Binary
    end.

term(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
term(Term) -> unicode:characters_to_binary(io_lib:format("~0tP", [Term, 20])).

%% @doc JSON from outside. Objects are maps, and texts are UTF-8.
-spec decode(binary()) -> {ok, term()} | error.
decode(Text) ->
    case code:ensure_loaded(json) of
        {module, Json} -> decoded(fun() -> Json:decode(Text) end);
        {error, _} ->
            {module, Jiffy} = code:ensure_loaded(jiffy),
            decoded(fun() -> Jiffy:decode(Text, [return_maps]) end)
    end.

%% They raise errors of several kinds.
decoded(Fun) ->
    try {ok, Fun()} catch error:_ -> error; throw:_ -> error end.
