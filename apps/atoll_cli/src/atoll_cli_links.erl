%% @doc `atoll links': the connections of a running cluster.
-module(atoll_cli_links).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, paired/1, table/1]).

-export_type([told/0, link/0]).

-type told() :: [{node(), [atoll_connections:connection()]}].
%% What each node says.

-type link() :: #{
    %% The end that connected; where nobody knows, the first by name.
    from := node(),
    to := node(),
    %% As the first of the two says it.
    kind := atoll_dist_kind:kind() | stock | relay,
    rtt_us := non_neg_integer() | unknown,
    connected_by := node() | unknown,
    age_ms := non_neg_integer() | unknown,
    %% From the one to the other, and back.
    bytes_there := non_neg_integer() | unknown,
    bytes_back := non_neg_integer() | unknown,
    %% Of a circuit over other nodes: all of them, from the one end to the other, and whether
    %% it is sealed.
    path => [node() | binary()],
    sealed => boolean()
}.

-spec summary() -> string().
summary() -> "show the connections of a running cluster".

-spec options() -> [atoll_cli_options:option()].
options() -> [atoll_cli_json:switch()].

-spec operands() -> [string()].
operands() -> ["[CLUSTER]"].

-spec examples() -> [string()].
examples() -> ["atoll links", "atoll links reef --json"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    run(Values, [atoll_cli_up:default_name()]);
run(#{json := Json}, [Name]) ->
    case atoll_cli_held:reach(Name) of
        {ok, Held} ->
            {Told, Silent} = atoll_cli_group:ask_all({atoll, links, []}, Held),
            %% This program is connected with all of them for the moment.
            {Relays, _} = atoll_cli_group:ask_all({atoll_dist, relay, []}, Held),
            show(Json, Name, paired(without(node(), Told)), relaying(Relays), Silent);
        {error, Sentence} ->
            {failed, Sentence}
    end.

without(Own, Told) ->
    [{Node, [Link || #{node := Peer} = Link <- Links, Peer =/= Own]} || {Node, Links} <- Told].

%% @doc Each connection once, by the names of its ends.
-spec paired(told()) -> [link()].
paired(Told) ->
    Ends = [{lists:sort([Node, Peer]), Node, Link} || {Node, Links} <- Told, #{node := Peer} = Link <- Links],
    Pairs = maps:groups_from_list(fun({Pair, _, _}) -> Pair end, fun({_, Node, Link}) -> {Node, Link} end, Ends),
    [Link || {_, Link} <- lists:sort([{{From, To}, L} || Said <- maps:values(Pairs), #{from := From, to := To} = L <- [one(Said)]])].

%% Of two ends that of the one that connected; the other end's may be all that is said.
one(Said) ->
    case [End || {_, #{started := here}} = End <- Said] of
        [End | _] -> seen(End);
        [] -> seen(hd(lists:sort(Said)))
    end.

seen({Node, #{node := Peer, started := there, bytes_in := In, bytes_out := Out} = Link}) ->
    seen(Peer, Node, Peer, In, Out, Link);
seen({Node, #{node := Peer, started := here, bytes_in := In, bytes_out := Out} = Link}) ->
    seen(Node, Peer, Node, Out, In, Link);
seen({Node, #{node := Peer, started := unknown, bytes_in := In, bytes_out := Out} = Link}) when Node < Peer ->
    seen(Node, Peer, unknown, Out, In, Link);
seen({Node, #{node := Peer, started := unknown, bytes_in := In, bytes_out := Out} = Link}) ->
    seen(Peer, Node, unknown, In, Out, Link).

seen(From, To, By, There, Back, Link) ->
    (maps:with([kind, rtt_us, age_ms, path, sealed], Link))#{
        from => From, to => To, connected_by => By, bytes_there => There, bytes_back => Back
    }.

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
            {relays, [{[{node, Node} | figures(Figures)]} || {Node, Figures} <- Relays]},
            {silent, Silent}
        ]}
    );
show(false, _Name, Links, Relays, Silent) ->
    ok = atoll_cli_io:print([table(Links), relays(Relays)]),
    case Silent of
        [] -> ok;
        _ -> {failed, ["these do not answer: ", lists:join(", ", [atom_to_list(Node) || Node <- Silent])]}
    end.

%% @doc A table for people.
-spec table([link()]) -> unicode:chardata().
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
    [atom_to_list(From), atom_to_list(To), atoll_cli_carrier:shown(Kind),
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
            #{kind := Kind} when Key =:= kind -> list_to_binary(atoll_cli_carrier:shown(Kind));
            #{Key := unknown} -> null;
            #{Key := Value} -> Value;
            #{} -> null
        end}
     || Key <- [from, to, kind, rtt_us, connected_by, age_ms, bytes_there, bytes_back, path, sealed]
    ]}.
