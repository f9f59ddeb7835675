%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll alarms': what is wrong with a running cluster just now.
-module(atoll_watch_cli_alarms).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, more/0, run/2, about/1]).

-spec summary() -> string().
summary() -> "say what is wrong with a running cluster, and what may help".

-spec options() -> [atoll_cli_options:option()].
options() ->
    atoll_view_cli_where:options(looks) ++
    [
        atoll_watch_cli:period("1"),
        #{name => looks, value => "N", default => "3", read => atoll_cli_read:whole(1, 1000),
          help => "how often each node is looked at"},
        #{name => rules, help => "say when which alarm is raised, and ask no node"},
        atoll_watch_cli:rules(rules_file),
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll alarms", "atoll alarms -c reef --json", "atoll alarms --rules", "atoll alarms --rules-file shop.rules"].

-spec more() -> unicode:chardata().
more() -> "It looks for a few seconds, and ends with exit status 1 if an alarm stands then".

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    case atoll_watch_cli:rules(rules_file, Values) of
        {ok, Rules} -> said(Values, Rules);
        Unable -> Unable
    end.

said(#{rules := true, json := Json}, Rules) ->
    rules(Json, Rules);
said(#{looks := Looks, json := Json} = Values, Rules) ->
    %% What all have said is compared when the next look begins.
    atoll_watch_cli:looked(Looks + 1, Values, #{rules => Rules}, fun(Name, Watch) ->
        Alarms = atoll_watch:alarms(Watch),
        ok = show(Json, Name, Alarms),
        case length(Alarms) of
            0 -> atoll_watch_cli:judged(atoll_watch:nodes(Watch), ok);
            1 -> {failed, "1 alarm stands"};
            N -> {failed, [atoll_cli_table:count(N), " alarms stand"]}
        end
    end).

show(true, Name, Alarms) ->
    atoll_cli_io:print_json({[{cluster, unicode:characters_to_binary(Name)}, {alarms, [json(Alarm) || Alarm <- Alarms]}]});
show(false, _, []) ->
    atoll_cli_io:print("No alarm stands.\n");
show(false, _, Alarms) ->
    Columns = [{left, "severity"}, {left, "node"}, {left, "alarm"}, {left, "of"}, {right, "value"}, {left, "probable cause"}],
    Rows = [
        [atom_to_list(Severity), named(Nodes), atom_to_list(Rule), atoll_watch_cli:key_text(Instance), value(Value), Cause]
     || #{severity := Severity, nodes := Nodes, rule := Rule, instance := Instance, value := Value, cause := Cause} <- worst_first(Alarms)
    ],
    Found = [[atom_to_list(Rule), case Instance of none -> ""; _ -> [" of ", atoll_watch_cli:key_text(Instance)] end, ": ", Said, ".\n"]
             || #{rule := Rule, instance := Instance, information := Said} <- worst_first(Alarms), Said =/= none],
    Repairs = lists:uniq([{Rule, Repair} || #{rule := Rule, repair := Repair} <- worst_first(Alarms)]),
    atoll_cli_io:print([atoll_cli_table:format(Columns, Rows), $\n, Found, [[atom_to_list(Rule), ": ", Repair, ".\n"] || {Rule, Repair} <- Repairs]]).

named([Node]) -> atom_to_list(Node);
named([Node | More]) -> [atom_to_list(Node), " and ", integer_to_list(length(More)), " more"].

worst_first(Alarms) ->
    [Alarm || {_, _, Alarm} <- lists:sort([{order(Severity), Id, Alarm} || #{severity := Severity, id := Id} = Alarm <- Alarms])].

order(critical) -> 0;
order(major) -> 1;
order(minor) -> 2;
order(warning) -> 3.

value(none) -> "-";
value(Value) when is_integer(Value) -> atoll_cli_table:count(Value);
value(Value) -> float_to_list(Value, [{decimals, 2}, compact]).

json(#{rule := Rule, cause := Cause, repair := Repair, instance := Instance, value := Value} = Alarm) ->
    {[{Key, maps:get(Key, Alarm)} || Key <- [id, node, severity, state]] ++
     [{nodes, maps:get(nodes, Alarm)}, {information, null(maps:get(information, Alarm))}, {alarm, Rule}, {'of', null(Instance)}, {value, null(Value)}, {raised_ms, maps:get(raised, Alarm)},
      {probable_cause, list_to_binary(Cause)}, {repair, list_to_binary(Repair)}]}.

null(none) -> null;
null(Value) -> Value.

rules(true, Rules) ->
    atoll_cli_io:print_json({[{rules, [
        {[{alarm, Id}, {severity, Severity}, {is_about, unicode:characters_to_binary(about(What))}, {raise, bound(What, Raise)}, {clear, bound(What, Clear)},
          {looks, Looks}, {probable_cause, list_to_binary(Cause)}, {repair, list_to_binary(Repair)}]}
     || #{id := Id, what := What, severity := Severity, raise := Raise, clear := Clear, looks := Looks, cause := Cause, repair := Repair} <- Rules
    ]}]});
rules(false, Rules) ->
    Columns = [{left, "alarm"}, {left, "severity"}, {left, "is about"}, {right, "raised at"}, {right, "cleared"}, {right, "looks"}],
    atoll_cli_io:print(atoll_cli_table:format(Columns, [
        [atom_to_list(Id), atom_to_list(Severity), about(What), shown("", bound(What, Raise)), shown(case Clear > Raise of true -> "above "; false -> "below " end, bound(What, Clear)), integer_to_list(Looks)]
     || #{id := Id, what := What, severity := Severity, raise := Raise, clear := Clear, looks := Looks} <- Rules
    ])).

%% @doc What a rule is about, for people.
-spec about(atoll_watch_rule:what()) -> unicode:chardata().
about({state, State}) -> ["a node that is ", atom_to_list(State)];
about({value, Name}) -> atom_to_list(Name);
about({share, Name, Of}) -> [atom_to_list(Name), " by ", atom_to_list(Of)];
about({each, Name, _}) -> ["each ", atom_to_list(Name)];
about({'of', Name, Label}) -> [atom_to_list(Name), " of ", Label];
about({rate, Name}) -> [atom_to_list(Name), " in a second"];
about({rate, Name, Label}) -> [atom_to_list(Name), " of ", Label, " in a second"];
about({nodes, partition}) -> "pairs of nodes that are not connected, of a mesh";
about({nodes, flags}) -> "values of a flag on several nodes";
about({nodes, otp}) -> "releases of OTP on several nodes";
about({nodes, cookies}) -> "cookies of several nodes";
about({nodes, modules}) -> "versions of a module on several nodes";
about({nodes, names}) -> "processes that have one name of global";
about({nodes, clocks}) -> "milliseconds between a clock and those of most nodes";
about({nodes, dumps}) -> "bytes of a crash dump".

bound({state, _}, _) -> null;
bound(_, Bound) -> Bound.

shown(_, null) -> "-";
shown(Before, Bound) -> [Before, value(Bound)].
