%% SPDX-License-Identifier: Apache-2.0
%% @doc What is known of a family and what its hosts say, and what is to be done for it to have so many nodes. Asks hosts, and
%% changes nothing.
-module(atoll_deploy_family).

-export([known/3, prepared/3, seen/2, restored/1, cookie/2, forget_cookie/2]).

-export_type([family/0, prepared/0, secret/0]).

-type family() :: {hosts, atoll_deploy_work:context()} | {kubernetes, atoll_deploy_kubectl:family()}.

-type secret() :: fun(() -> binary()).
%% In whatever is said of a fault there is a function, and not what it gives.

-type prepared() :: #{
    context := atoll_deploy_work:context(),
    count := non_neg_integer(),
    steps := [atoll_deploy_plan:step()],
    %% As the hosts say.
    rows := [atoll_deploy_plan:row()],
    unreached := unreached()
}.

-type unreached() :: #{{Domain :: string(), Host :: string()} => Why :: unicode:chardata()}.

%% @doc What is known of a family; of what a store has, or would have.
-spec known(atoll_deploy_store:store(), All :: [{term(), term()}], Name :: string()) -> {ok, family()} | {error, unicode:chardata()}.
known(Store, All, Name) ->
    Of = fun(Kind) -> maps:from_list([{Is, Thing} || {{K, Is}, Thing} <- All, K =:= Kind]) end,
    case Of(family) of
        #{Name := #{domains := Domains} = Family} ->
            Known = atoll_deploy_cloud:with_machines(Of(domain), All),
            Providers = Of(provider),
            Context = #{
                store => Store, id => proplists:get_value(id, All), releases => Of(release), domains => Known, providers => Providers,
                family => Family, contacts => [], cookie => hidden(<<>>), tell => fun(_, _) -> ok end
            },
            case lists:usort([Driver =:= kubernetes || Domain <- Domains, #{Domain := #{provider := Provider}} <- [Known], #{Provider := #{driver := Driver}} <- [Providers]]) of
                [true] when length(Domains) =:= 1 -> {ok, {kubernetes, Context#{count => proplists:get_value({count, Name}, All, 0)}}};
                [false] -> with_release(Family, Context);
                _ -> {error, ["The family ", Name, " has a domain of Kubernetes and another one: it can have one of Kubernetes, or several of others."]}
            end;
        _ ->
            {error, ["There is no family ", Name, $.]}
    end.

with_release(#{release := Release, name := Name}, #{releases := Releases} = Context) ->
    case Releases of
        #{Release := Of} when is_map_key(path, Of); is_map_key(sha256, Of) -> {ok, {hosts, Context}};
        #{} -> {error, ["The release ", Release, " of the family ", Name, " has no path, and is for Kubernetes alone."]}
    end.

%% @doc What is to be done for the family to have so many nodes, or as many as it was to have.
-spec prepared(family(), All :: [{term(), term()}], Count :: non_neg_integer() | kept) -> {ok, prepared()} | {error, unicode:chardata()}.
prepared({hosts, #{family := #{name := Name, release := Release, needs := Needs, domains := Domains}, domains := Hosted} = Context}, All, Count) ->
    case {Count, proplists:get_value({count, Name}, All)} of
        {kept, undefined} ->
            {error, ["It was never said how many nodes the family ", Name, " shall have."]};
        {_, Kept} ->
            N = case Count of kept -> Kept; _ -> Count end,
            {Known, Others} = lists:partition(fun(#{family := Of}) -> Of =:= Name end, [Row || {{row, _}, Row} <- All]),
            Rows = [restored(Row) || Row <- Known],
            {Seen, Strays, Unreached} = seen(Rows, atoll_deploy_work:look(Rows, Context)),
            Places = [{Domain, Host} || Domain <- Domains, #{Domain := #{hosts := Hosts}} <- [Hosted], Host <- Hosts],
            case atoll_deploy_plan:plan(#{family => Name, count => N, release => Release, needs => Needs, places => Places}, Seen, Others) of
                {ok, Steps} -> {ok, #{context => Context, count => N, steps => [{stop, Row} || Row <- Strays] ++ Steps, rows => Seen, unreached => Unreached}};
                {error, Sentence} -> {error, atoll_deploy_register:sentence(Sentence)}
            end
    end.

%% @doc A node as it is to be: a roll that was broken off is not gone on with, and its nodes are to have back what they had.
-spec restored(atoll_deploy_plan:row()) -> atoll_deploy_plan:row().
restored(#{before := Same, release := Same} = Row) -> maps:remove(before, Row);
restored(#{before := Before, release := Given, state := State} = Row) ->
    (maps:remove(before, Row))#{release := Before, rolled => Given, state := case State of stopping -> stopping; _ -> starting end};
restored(Row) -> Row.

%% @doc The nodes as their hosts say, which counts more than what was written down; nodes that hosts have and nobody knows; hosts that
%% say nothing.
-spec seen([atoll_deploy_plan:row()], [{{Domain :: string(), Host :: string()}, {ok, atoll_deploy_host:running()} | {error, unicode:chardata()}}]) ->
    {[atoll_deploy_plan:row()], Strays :: [atoll_deploy_plan:row()], unreached()}.
seen(Rows, Told) ->
    Running = maps:from_list([{Key, Nodes} || {Key, {ok, Nodes}} <- Told]),
    Seen = [
        case {State, Running} of
            {up, #{{Domain, Host} := Nodes}} ->
                case lists:member({Node, up}, Nodes) of
                    true -> Row;
                    false -> Row#{state := failed, why => <<"it does not run">>}
                end;
            _ -> Row
        end
     || #{state := State, domain := Domain, host := Host, node := Node} = Row <- Rows
    ],
    Names = [Node || #{node := Node} <- Rows],
    Strays = [
        Like#{node := Node, state := stopping, number := number(Node)}
     || {{Domain, Host}, Nodes} <- maps:to_list(Running), {Node, _} <- Nodes, not lists:member(Node, Names),
        Like <- lists:sublist([Row || #{domain := D, host := H} = Row <- Rows, D =:= Domain, H =:= Host], 1)
    ],
    {Seen, Strays, maps:from_list([{Key, Why} || {Key, {error, Why}} <- Told])}.

number(Node) ->
    case re:run(Node, "([1-9][0-9]*)@", [{capture, [1], list}]) of
        {match, [Number]} -> list_to_integer(Number);
        nomatch -> 1
    end.

%% @doc The cookie of a family. Of one that has no file one is made, and kept where nobody else may read.
-spec cookie(atoll_deploy_store:store(), atoll_deploy_thing:thing()) -> {ok, secret()} | {error, unicode:chardata()}.
cookie(_, #{cookie_file := File}) ->
    case file:read_file(File) of
        {ok, Text} ->
            case string:trim(Text) of
                <<>> -> {error, ["the cookie's file ", File, " is empty"]};
                Cookie -> {ok, hidden(Cookie)}
            end;
        {error, Reason} -> {error, [File, ": ", file:format_error(Reason)]}
    end;
cookie(#{dir := Dir}, #{name := Name}) ->
    File = cookie_file(Dir, Name),
    case file:read_file(File) of
        {ok, <<_, _/binary>> = Cookie} ->
            {ok, hidden(Cookie)};
        _ ->
            %% It has its mode before it has the cookie.
            Cookie = binary:encode_hex(crypto:strong_rand_bytes(16)),
            ok = filelib:ensure_dir(File),
            ok = file:write_file(File, <<>>),
            ok = file:change_mode(File, 8#600),
            ok = file:write_file(File, Cookie),
            {ok, hidden(Cookie)}
    end.

hidden(Secret) -> fun() -> Secret end.

cookie_file(Dir, Name) -> filename:join([Dir, "cookies", Name]).

%% @doc Forgets the one that was made.
-spec forget_cookie(atoll_deploy_store:store(), Family :: string()) -> ok.
forget_cookie(#{dir := Dir}, Name) ->
    _ = file:delete(cookie_file(Dir, Name)),
    ok.
