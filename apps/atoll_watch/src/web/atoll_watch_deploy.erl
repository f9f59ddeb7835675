%% SPDX-License-Identifier: Apache-2.0
%% @doc Deployments over HTTP, at /api/v1/deploy: what is registered and deployed, and the five steps. What takes long is begun,
%% and answered at once; how far it is stands in what is read. The archive of a release is sent, or is a file of the machine of the watch.
-module(atoll_watch_deploy).

-export([read/0, archive/2, register/2, forget/2, start/3]).

-export_type([answer/0]).

-type answer() :: {ok, 200..299, atoll_cli_json:object() | none} | {error, 400..599, unicode:chardata()}.

-define(MOST, 10000).

%% @doc All that there is, and what is under way or was last.
-spec read() -> answer().
read() ->
    Operation = case atoll_deploy_server:operation() of none -> null; Is -> operation(Is) end,
    asked(200, fun(Deployment) ->
        {ok, {[
            {things, [atoll_deploy_json:thing(Kind, Thing) || Kind <- atoll_deploy_thing:kinds(), Thing <- atoll_deploy_store:things(Deployment, Kind)]},
            {nodes, [atoll_deploy_json:row(Row) || Row <- atoll_deploy_store:rows(Deployment)]},
            {operation, Operation}
        ]}}
    end).

operation(#{what := What, family := Family, done := Done, total := Total, result := Result}) ->
    {State, Error, Outcome, Steps} =
        case Result of
            none -> {running, null, null, null};
            {ok, #{failed := []} = Of} -> {done, null, atoll_deploy_json:outcome(Of), null};
            {ok, #{failed := [{Node, Why} | _]} = Of} -> {failed, bin([Node, ": ", Why]), atoll_deploy_json:outcome(Of), null};
            {planned, Planned} -> {done, null, null, atoll_deploy_json:steps(Planned)};
            {back, Why, #{failed := Failed} = Of} -> {failed, bin(atoll_deploy_register:sentence(atoll_deploy_roll:format_back(Why, Failed))), atoll_deploy_json:outcome(Of), null};
            {error, Sentence} -> {failed, bin(Sentence), null, null}
        end,
    {[{what, What}, {family, bin(Family)}, {state, State}, {done, Done}, {total, Total}, {error, Error}, {outcome, Outcome}, {steps, Steps}]}.

%% @doc Keeps an archive that was sent, under its checksum.
-spec archive(Sum :: binary(), Body :: binary() | {file, file:filename()}) -> answer().
archive(Sum, {file, File}) ->
    case atoll_watch_upload:keep(Sum, File) of
        {ok, Bytes} -> {ok, 201, {[{sha256, Sum}, {bytes, Bytes}]}};
        {error, Sentence} -> {error, 400, Sentence}
    end;
archive(_, _) ->
    {error, 400, "The body is to be an archive, as a .tar.gz."}.

%% @doc Registers a thing: its name, and its settings.
-spec register(Kind :: binary(), Body :: term()) -> answer().
register(Kind, #{<<"name">> := Name, <<"settings">> := #{} = Settings} = Body) when is_binary(Name), map_size(Body) =:= 2 ->
    of_kind(Kind, fun(Is) ->
        asked(201, fun(Deployment) ->
            case atoll_deploy:put(Deployment, Is, unicode:characters_to_list(Name), atoll_deploy_json:given(Settings)) of
                ok -> {ok, {[{kind, Is}, {name, Name}]}};
                {error, Sentence} -> {error, 400, Sentence}
            end
        end)
    end);
register(_, _) ->
    {error, 400, "The body is to have a name, which is a text, and settings, which are an object, and nothing else."}.

%% @doc Forgets one.
-spec forget(Kind :: binary(), Name :: binary()) -> answer().
forget(Kind, Name) ->
    of_kind(Kind, fun(Is) ->
        asked(204, fun(Deployment) ->
            Named = unicode:characters_to_list(Name),
            case {atoll_deploy_store:thing(Deployment, Is, Named), atoll_deploy:forget(Deployment, Is, Named)} of
                {{error, Sentence}, _} -> {error, 404, Sentence};
                {_, {error, Sentence}} -> {error, 409, Sentence};
                {_, ok} -> {ok, none}
            end
        end)
    end).

of_kind(Kind, Do) ->
    case [Is || Is <- atoll_deploy_thing:kinds(), atom_to_binary(Is) =:= Kind] of
        [Is] -> Do(Is);
        [] -> {error, 404, "There are provider, release, domain and family."}
    end.

%% @doc Begins something with a family: run and plan have a count, roll a release and a batch, terminate nothing.
-spec start(What :: binary(), Family :: binary(), Body :: term()) -> answer().
start(What, Family, Body) ->
    Name = unicode:characters_to_list(Family),
    case {What, Body} of
        {<<"run">>, #{<<"count">> := Count}} when map_size(Body) =:= 1, is_integer(Count), Count >= 0, Count =< ?MOST ->
            begun(run, Name, fun(Deployment, Tell) -> atoll_deploy:run(Deployment, Name, Count, Tell) end);
        {<<"plan">>, #{<<"count">> := Count}} when map_size(Body) =:= 1, is_integer(Count), Count >= 0, Count =< ?MOST ->
            begun(plan, Name, fun(Deployment, _) ->
                case atoll_deploy:plan(Deployment, Name, Count) of
                    {ok, Steps} -> {planned, Steps};
                    {error, _} = Error -> Error
                end
            end);
        {<<"roll">>, #{<<"release">> := Release, <<"batch">> := Batch}} when map_size(Body) =:= 2, is_binary(Release), is_integer(Batch), Batch > 0, Batch =< ?MOST ->
            begun(roll, Name, fun(Deployment, Tell) -> atoll_deploy:roll(Deployment, Name, {unicode:characters_to_list(Release), Batch}, Tell) end);
        {<<"terminate">>, #{}} when map_size(Body) =:= 0 ->
            begun(terminate, Name, fun(Deployment, Tell) -> atoll_deploy:terminate(Deployment, Name, Tell) end);
        {_, _} ->
            {error, 400, "The body is {\"count\": N} for run and plan, {\"release\": NAME, \"batch\": N} for roll, {} for terminate."}
    end.

begun(What, Name, Work) ->
    case atoll_deploy_server:ask(fun(Deployment) -> atoll_deploy_store:thing(Deployment, family, Name) end) of
        {ok, {ok, _}} ->
            case atoll_deploy_server:begin_operation(What, Name, Work) of
                {ok, Operation} -> {ok, 202, operation(Operation)};
                {error, Sentence} -> {error, 409, Sentence}
            end;
        {ok, {error, Sentence}} -> {error, 404, Sentence};
        {error, Sentence} -> {error, 409, Sentence}
    end.

asked(Status, Fun) ->
    case atoll_deploy_server:ask(Fun) of
        {ok, {ok, Object}} -> {ok, Status, Object};
        {ok, {error, _, _} = Error} -> Error;
        %% Another program has the state.
        {error, Sentence} -> {error, 409, Sentence}
    end.

bin(Text) -> unicode:characters_to_binary(Text).
