%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of `atoll deploy' have in common: the folder of the state, registering a thing, and how it is said what
%% came of it.
-module(atoll_deploy_cli).

-export([state/0, dry_run/0, registering/0, count/1, within/2, registered/4, tell/0, outcome/2, steps/2]).

%% @doc The option of all of them.
-spec state() -> atoll_cli_options:option().
state() -> #{name => state, value => "DIR", help => "where the state of deployments is (~/.local/share/atoll/deploy unless told)"}.

%% @doc The option of those that change nodes.
-spec dry_run() -> atoll_cli_options:option().
dry_run() -> #{name => dry_run, help => "say what would be done, and do nothing"}.

%% @doc A number of nodes.
-spec count(string()) -> {ok, non_neg_integer()} | {usage, unicode:chardata()}.
count(Typed) ->
    case (atoll_cli_read:whole(0, 10000))(Typed) of
        {ok, Count} -> {ok, Count};
        {error, Must} -> {usage, ["N ", Must, ", not \"", Typed, $"]}
    end.

%% @doc Calls a function with the state, and closes it.
-spec within(atoll_cli_options:values(), fun((atoll_deploy:deployment()) -> atoll_cli_command:outcome())) -> atoll_cli_command:outcome().
within(Values, Fun) ->
    case atoll_deploy:open(maps:get(state, Values, atoll_deploy:default_dir())) of
        {ok, Deployment} ->
            try
                Fun(Deployment)
            after
                atoll_deploy:close(Deployment)
            end;
        {error, Sentence} ->
            {unable, Sentence}
    end.

%% @doc The options of those that register something.
-spec registering() -> [atoll_cli_options:option()].
registering() -> [#{name => forget, help => "forget it, if nothing needs it"}, dry_run(), state()].

%% @doc Registers a thing, or forgets it; or says what that would do.
-spec registered(atoll_deploy_thing:kind(), Name :: string(), map(), atoll_cli_options:values()) -> atoll_cli_command:outcome().
registered(Kind, Name, Given, #{forget := Forget, dry_run := Dry} = Values) ->
    Mode = case Dry of true -> plan; false -> run end,
    %% Before anything is opened.
    case Forget orelse atoll_deploy_thing:check(Kind, Name, Given) of
        true -> within(Values, fun(Deployment) -> said(Mode, Kind, Name, atoll_deploy:forget(Deployment, Kind, Name, Mode)) end);
        {ok, _} -> within(Values, fun(Deployment) -> said(Mode, Kind, Name, atoll_deploy_register:put(Deployment, Kind, Name, Given, Mode)) end);
        {error, Sentence} -> {usage, Sentence}
    end.

said(_, _, _, {error, Sentence}) ->
    {unable, Sentence};
said(Mode, Kind, Name, Done) ->
    Is = case {Mode, Done} of
        {run, ok} -> "is forgotten";
        {run, {ok, _}} -> "is registered";
        {plan, ok} -> "would be forgotten";
        {plan, {ok, new}} -> "would be registered";
        {plan, {ok, changed}} -> "would be another one than it was";
        {plan, {ok, same}} -> "is registered so already"
    end,
    atoll_cli_io:say(["The ", atom_to_list(Kind), " ", Name, " ", Is, $.]).

%% @doc Shows how far it is.
-spec tell() -> atoll_deploy:tell().
tell() ->
    Bar = atoll_cli_progress:bar("Nodes"),
    fun
        (_, 0) -> ok;
        (Done, Total) -> Bar(Done, Total)
    end.

%% @doc Says what came of it.
-spec outcome(Json :: boolean(), atoll_deploy:outcome()) -> atoll_cli_command:outcome().
outcome(Json, #{family := Family, up := Up, failed := Failed, said := Said, done := Done, phases := Phases, ms := Ms} = Outcome) ->
    ok = atoll_cli_progress:done(),
    case Json of
        true ->
            atoll_cli_io:print_json(atoll_deploy_json:outcome(Outcome));
        false ->
            atoll_cli_io:print([
                io_lib:format("~ts: ~b up, ~b done, ~b failed, in ~ts s~n", [Family, length(Up), Done, length(Failed), atoll_cli_table:decimal(Ms / 1000)]),
                [[Node, ": ", Text, $\n] || {Node, Text} <- Failed ++ Said],
                case lists:sort(maps:to_list(Phases)) of
                    [] -> [];
                    Timed -> [$\n, atoll_cli_table:format(
                        [{left, "host"}, {right, "connect ms"}, {right, "upload ms"}, {right, "nodes ms"}],
                        [[Host | [case Of of #{Phase := N} -> atoll_cli_table:count(N); #{} -> "-" end || Phase <- [connect, upload, nodes]]] || {Host, Of} <- Timed]
                    )]
                end
            ])
    end,
    case Failed of
        [] -> ok;
        [{Node, Why} | More] -> {failed, [Node, ": ", Why, case length(More) of 0 -> ""; N -> io_lib:format("; ~b more failed", [N]) end]}
    end.

%% @doc Says what would be done.
-spec steps(Json :: boolean(), [{Family :: string(), [atoll_deploy_plan:step()]}]) -> atoll_cli_command:outcome().
steps(true, Plans) ->
    atoll_cli_io:print_json({[{families, [{[{family, unicode:characters_to_binary(Family)}, {steps, atoll_deploy_json:steps(Steps)}]} || {Family, Steps} <- Plans]}]});
steps(false, Plans) ->
    atoll_cli_io:print([
        case Steps of
            [] -> [Family, ": nothing is to be done\n"];
            _ -> [[Family, ": ", atoll_deploy_plan:format_step(Step), $\n] || Step <- Steps]
        end
     || {Family, Steps} <- Plans
    ]).
