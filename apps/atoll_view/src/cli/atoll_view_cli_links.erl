%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll links': the connections of a running cluster.
-module(atoll_view_cli_links).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, table/1, channel_table/1]).

-spec summary() -> string().
summary() -> "show the connections of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> atoll_view_cli_where:options(looks) ++ [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() -> ["atoll links", "atoll links -c reef --json", "atoll links --node shop@10.0.0.7 --cookie-file prod.cookie"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(#{json := Json} = Values, []) ->
    atoll_view_cli_where:on(looks, otp, Values, fun(View) ->
        #{links := Links, relays := Relays, silent := Silent} = atoll_view:links(View),
        ok = show(Json, atoll_view:name(View), Links, relaying(Relays), Silent),
        atoll_view_cli_where:judged(Silent)
    end).

%% Those that have relayed something, or were asked to.
relaying(Told) ->
    [
        {Node, Figures}
     || {Node, #{opened := Opened, refused := Refused} = Figures} <- lists:sort(Told), Opened > 0 orelse map_size(Refused) > 0
    ].

show(true, Name, Links, Relays, Silent) ->
    atoll_cli_io:print_json(
        {[
            {cluster, unicode:characters_to_binary(Name)},
            {links, [json(L) || L <- Links]},
            {channels, [{[{Key, map_get(Key, C)} || Key <- [from, to, channel, lanes, packets, bytes, waiting, dropped]]} || C <- channels(Links)]},
            {relays, [{[{node, Node} | figures(Figures)]} || {Node, Figures} <- Relays]},
            {silent, Silent}
        ]}
    );
show(false, _Name, Links, Relays, _Silent) ->
    atoll_cli_io:print([table(Links), channel_table(channels(Links)), relays(Relays)]).

channels(Links) -> lists:append([Channels || #{channels := Channels} <- Links]).

%% @doc A table of what is written in channels, for people.
-spec channel_table([atoll_view_links:channel()]) -> unicode:chardata().
channel_table([]) ->
    [];
channel_table(Channels) ->
    Columns = [{left, "from"}, {left, "to"}, {left, "channel"}, {right, "lanes"}, {right, "packets"}, {right, "bytes"},
               {right, "waiting"}, {right, "dropped"}],
    Rows = [
        [atom_to_list(From), atom_to_list(To), atom_to_list(Name) | [atoll_cli_table:count(map_get(Key, C)) || Key <- [lanes, packets, bytes, waiting, dropped]]]
     || #{from := From, to := To, channel := Name} = C <- Channels
    ],
    [$\n, atoll_cli_table:format(Columns, Rows)].

%% @doc A table for people.
-spec table([atoll_view_links:link()]) -> unicode:chardata().
table([]) ->
    "There is no connection.\n";
table(Links) ->
    Columns = [{left, "from"}, {left, "to"}, {left, "kind"}, {right, "round trip"}, {left, "connected by"},
               {right, "up for"}, {right, "bytes there"}, {right, "bytes back"}],
    %% Where there are circuits.
    Over = [{left, "over"} || lists:any(fun(Link) -> is_map_key(path, Link) end, Links)],
    atoll_cli_table:format(Columns ++ Over, [row(L) ++ [over(L) || Over =/= []] || L <- Links]).

over(#{path := [_, _], sealed := Sealed}) ->
    %% A connection of its own.
    ["own", [", sealed" || Sealed]];
over(#{path := [_ | Path], sealed := Sealed}) ->
    [lists:join($\s, [name(Node) || Node <- lists:droplast(Path)]), [", sealed" || Sealed]];
over(#{}) ->
    "-".

name(Node) when is_atom(Node) -> atom_to_list(Node);
name(Node) -> Node.

relays([]) ->
    [];
relays(Relays) ->
    Columns = [{left, "relay"}, {right, "circuits"}, {right, "opened"}, {right, "refused"}, {right, "lost"}, {right, "dropped"},
               {right, "bytes held"}, {right, "of"}, {right, "forwarded"}],
    Rows = [
        [atom_to_list(Node), Count(circuits), Count(opened), Sum(refused), Sum(lost), Sum(dropped), Count(held), Count(budget),
         Count(bytes)]
     || {Node, Figures} <- Relays,
        Count <- [fun(Key) -> atoll_cli_table:count(map_get(Key, Figures)) end],
        Sum <- [fun(Key) -> atoll_cli_table:count(lists:sum(maps:values(map_get(Key, Figures)))) end]
    ],
    [$\n, atoll_cli_table:format(Columns, Rows)].

%% Counts by reason stay so.
figures(Figures) ->
    [{Key, figure(Value)} || {Key, Value} <- lists:sort(maps:to_list(Figures))].

figure(#{} = ByReason) -> {lists:sort(maps:to_list(ByReason))};
figure(Value) -> Value.

row(#{from := From, to := To, kind := Kind, rtt_us := Rtt, connected_by := By, age_ms := Age} = Link) ->
    #{bytes_there := There, bytes_back := Back} = Link,
    [atom_to_list(From), atom_to_list(To), atoll_view_kind:shown(Kind),
     known(Rtt, fun round_trip/1),
     known(By, fun atom_to_list/1),
     known(Age, fun atoll_cli_table:seconds/1),
     known(There, fun atoll_cli_table:count/1), known(Back, fun atoll_cli_table:count/1)].

%% On a short path a millisecond says nothing.
round_trip(Us) when Us < 1000 -> [integer_to_list(Us), " \x{b5}s"];
round_trip(Us) -> [atoll_cli_table:decimal(Us / 1000), " ms"].

known(unknown, _) -> "-";
known(Value, Write) -> Write(Value).

json(#{kind := Kind} = Link) ->
    {[
        {Key, case Link of
            #{kind := Kind} when Key =:= kind -> list_to_binary(atoll_view_kind:shown(Kind));
            #{Key := unknown} -> null;
            #{Key := Value} -> Value;
            #{} -> null
        end}
     || Key <- [from, to, kind, rtt_us, connected_by, age_ms, bytes_there, bytes_back, path, sealed]
    ]}.
