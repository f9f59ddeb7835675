%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands share that watch a cluster for as long as they run: `top', `metrics' and
%% `alarms'.
-module(atoll_watch_cli).

-export([looked/3, looked/4, judged/2, node_json/1, key_text/1, period/1, rules/1, rules/2]).

%% A node that does not answer takes five seconds of each look.
-define(LOOK_MS, 30000).
-define(MS, 1000).

%% @doc The option of how many seconds are between two looks.
-spec period(Unless :: string()) -> atoll_cli_options:option().
period(Unless) ->
    #{name => period, value => "S", read => fun period_ms/1, help => ["seconds between two looks at a node (", Unless, " unless told)"]}.

period_ms(Text) ->
    case (atoll_cli_read:number(3600))(Text) of
        {ok, S} when S >= 0.2 -> {ok, round(S * ?MS)};
        _ -> {error, "must be a number of seconds from 0.2 to 3,600"}
    end.

%% @doc The option of a file of rules.
-spec rules(Name :: atom()) -> atoll_cli_options:option().
rules(Name) ->
    #{name => Name, value => "FILE", is_read => true, help => "a file of rules for alarms, of your own and changed ones"}.

%% @doc The rules, with those of that option's file.
-spec rules(Name :: atom(), atoll_cli_options:values()) -> {ok, [atoll_watch_rule:rule()]} | {unable, unicode:chardata()}.
rules(Name, Values) ->
    case Values of
        #{Name := File} ->
            case atoll_watch_rule_file:read(File) of
                {ok, Rules} -> {ok, Rules};
                {error, Sentence} -> {unable, Sentence}
            end;
        #{} ->
            {ok, atoll_watch_rule:all()}
    end.

%% @doc Watches the cluster that is meant for as long as Fun takes, which is called when each of its nodes was looked
%% at so many times.
-spec looked(pos_integer(), atoll_cli_options:values(), fun((Name :: string(), Watch :: pid()) -> atoll_cli_command:outcome())) ->
    atoll_cli_command:outcome().
looked(Looks, Values, Fun) -> looked(Looks, Values, #{}, Fun).

%% @doc As looked/3, with these options too.
-spec looked(pos_integer(), atoll_cli_options:values(), atoll_watch:options(), fun((Name :: string(), Watch :: pid()) -> atoll_cli_command:outcome())) ->
    atoll_cli_command:outcome().
looked(Looks, Values, Options, Fun) ->
    Ms = maps:get(period, Values, ?MS),
    case atoll_view_cli_where:target(looks, Values) of
        {ok, Target} ->
            watching(Target, Options#{period => Ms}, fun(Name, Watch) ->
                case atoll_watch:await(Watch, Looks, Looks * (?LOOK_MS + Ms)) of
                    ok -> Fun(Name, Watch);
                    timeout -> {unable, ["The nodes of ", Name, " could not be looked at within the time."]}
                end
            end);
        Wrong ->
            Wrong
    end.

watching(Target, Options, Fun) ->
    %% One that cannot begin ends with its reason, which is told; its end comes after its answer.
    _ = process_flag(trap_exit, true),
    case atoll_watch:start_link(Target, Options) of
        {ok, Watch} ->
            try
                Fun(element(2, Target), Watch)
            after
                ok = gen_server:stop(Watch)
            end;
        {error, {unable, Sentence}} ->
            {unable, Sentence}
    end.

%% @doc What to say if some nodes do not answer.
-spec judged([atoll_watch_core:seen()], atoll_cli_command:outcome()) -> atoll_cli_command:outcome().
judged(Seen, Else) ->
    case {[Node || #{node := Node, state := State} <- Seen, State =/= up], [Why || #{why := Why} <- Seen, Why =/= none]} of
        {[], _} -> Else;
        {_, [Why | _]} -> {failed, Why};
        {Silent, []} -> {failed, ["these do not answer: ", lists:join(", ", [atom_to_list(Node) || Node <- Silent])]}
    end.

%% @doc What is known of a node, as an object: metrics with a label are objects by that.
-spec node_json(atoll_watch_core:seen()) -> atoll_cli_json:object().
node_json(#{node := Node, state := State, why := Why, readings := Readings, rates := Rates}) ->
    {[{node, Node}, {state, State}, {why, case Why of none -> null; _ -> unicode:characters_to_binary(Why) end},
      {metrics, by_name(Readings)}, {rates, by_name(Rates)}]}.

by_name(Readings) ->
    Plain = [{Name, Value} || {Name, Value} <- maps:to_list(Readings), is_atom(Name)],
    Labelled = maps:groups_from_list(fun({{Name, _}, _}) -> Name end, fun({{_, Label}, Value}) -> {Label, Value} end,
                                     [Reading || {{_, _}, _} = Reading <- maps:to_list(Readings)]),
    {lists:sort(Plain ++ [{Name, {lists:sort(Values)}} || {Name, Values} <- maps:to_list(Labelled)])}.

%% @doc A label, for people.
-spec key_text(atom() | binary()) -> unicode:chardata().
key_text(none) -> "";
key_text(Label) when is_atom(Label) -> atom_to_list(Label);
key_text(Label) -> Label.
