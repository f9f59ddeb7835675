%% SPDX-License-Identifier: Apache-2.0
%% @doc What deployments are told by and say in JSON: the same on the command line and over HTTP. Pure.
-module(atoll_deploy_json).

-export([given/1, thing/2, row/1, steps/1, outcome/1, told/1]).

%% @doc The keys of a thing as they come from outside, as {@link atoll_deploy_thing:check/3} takes them. A key that nobody knows
%% stays a text, which is no key of any thing.
-spec given(#{binary() => term()}) -> map().
given(Object) -> maps:from_list([{key(Key), value(key(Key), Value)} || {Key, Value} <- maps:to_list(Object)]).

key(Key) ->
    Known = [Is || Kind <- atoll_deploy_thing:kinds(), {Is, _, _, _} <- atoll_deploy_thing:keys(Kind)] ++ [cores, memory_mb, attributes],
    case [Is || Is <- Known, atom_to_binary(Is) =:= Key] of
        [Is | _] -> Is;
        [] -> text(Key)
    end.

value(driver, Text) when is_binary(Text) ->
    case [Driver || Driver <- [local, ssh, kubernetes, cloud], atom_to_binary(Driver) =:= Text] of
        [Driver] -> Driver;
        [] -> text(Text)
    end;
value(hosts, Hosts) when is_list(Hosts) ->
    [case Host of
        #{<<"host">> := Name} when is_binary(Name) -> {text(Name), given(maps:remove(<<"host">>, Host))};
        _ -> value(host, Host)
    end || Host <- Hosts];
value(_, #{} = Object) -> given(Object);
value(Key, List) when is_list(List) -> [value(Key, One) || One <- List];
value(_, Text) when is_binary(Text) -> text(Text);
value(_, Value) -> Value.

text(Text) -> unicode:characters_to_list(Text).

%% @doc A thing, by its kind, its name and what it refers to.
-spec thing(atoll_deploy_thing:kind(), atoll_deploy_thing:thing()) -> atoll_cli_json:object().
thing(Kind, #{name := Name} = Thing) ->
    {[{kind, Kind}, {name, bin(Name)}, {refers_to, [bin(To) || {_, To} <- atoll_deploy_thing:references(Kind, Thing)]}]}.

%% @doc A node, as it was written down.
-spec row(atoll_deploy_plan:row()) -> atoll_cli_json:object().
row(#{node := Node, family := Family, host := Host, release := Release, state := State} = Row) ->
    {[{node, bin(Node)}, {family, bin(Family)}, {host, bin(Host)}, {release, bin(Release)}, {state, State}, {why, bin(maps:get(why, Row, ""))}]}.

%% @doc What would be done.
-spec steps([atoll_deploy_plan:step()]) -> [atoll_cli_json:object()].
steps(Steps) -> [{[{do, What}, {node, bin(Node)}, {release, bin(Release)}]} || {What, #{node := Node, release := Release}} <- Steps].

%% @doc What came of it.
-spec outcome(atoll_deploy:outcome()) -> atoll_cli_json:object().
outcome(#{family := Family, up := Up, failed := Failed, said := Said, done := Done, phases := Phases, ms := Ms}) ->
    {[
        {family, bin(Family)}, {up, [bin(Node) || Node <- Up]}, {failed, [{[{node, bin(Node)}, {why, bin(Why)}]} || {Node, Why} <- Failed]},
        {said, [{[{node, bin(Node)}, {text, bin(Text)}]} || {Node, Text} <- Said]}, {done, Done}, {ms, Ms},
        {phases, [
            {[{host, bin(Host)} | [{Key, maps:get(Phase, Of, 0)} || {Phase, Key} <- [{connect, connect_ms}, {upload, upload_ms}, {nodes, nodes_ms}]]]}
         || {Host, Of} <- lists:sort(maps:to_list(Phases))
        ]}
    ]}.

%% @doc What a family is like now.
-spec told(atoll_deploy:told()) -> atoll_cli_json:object().
told(#{family := Name, wanted := Wanted, nodes := Nodes}) ->
    {[{family, bin(Name)}, {wanted, Wanted}, {nodes, [
        {[{node, bin(Node)}, {host, bin(Host)}, {release, bin(Release)}, {state, State}, {why, bin(Why)}]}
     || #{node := Node, host := Host, release := Release, state := State, why := Why} <- Nodes
    ]}]}.

bin(Text) -> unicode:characters_to_binary(Text).
