%% @doc `atoll links': the connections of a running cluster.
-module(atoll_cli_links).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, paired/1]).

-export_type([told/0, link/0]).

-type told() :: [{node(), [atoll_connections:connection()]}].
%% What each node says.

-type link() :: #{
    %% The end that connected; where nobody knows, the first by name.
    from := node(),
    to := node(),
    %% As the first of the two says it.
    kind := atoll_dist_kind:kind() | stock,
    rtt_us := non_neg_integer() | unknown,
    connected_by := node() | unknown,
    age_ms := non_neg_integer() | unknown,
    %% From the one to the other, and back.
    bytes_there := non_neg_integer() | unknown,
    bytes_back := non_neg_integer() | unknown
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
            show(Json, Name, paired(without(node(), Told)), Silent);
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
    (maps:with([kind, rtt_us, age_ms], Link))#{
        from => From, to => To, connected_by => By, bytes_there => There, bytes_back => Back
    }.

show(true, Name, Links, Silent) ->
    atoll_cli_io:print_json(
        {[{cluster, unicode:characters_to_binary(Name)}, {links, [json(L) || L <- Links]}, {silent, Silent}]}
    );
show(false, _Name, Links, Silent) ->
    Columns = [{left, "from"}, {left, "to"}, {left, "kind"}, {right, "round trip"}, {left, "connected by"},
               {right, "up for"}, {right, "bytes there"}, {right, "bytes back"}],
    ok = atoll_cli_io:print(
        case Links of
            [] -> "There is no connection.\n";
            _ -> atoll_cli_table:format(Columns, [row(L) || L <- Links])
        end
    ),
    case Silent of
        [] -> ok;
        _ -> {failed, ["these do not answer: ", lists:join(", ", [atom_to_list(Node) || Node <- Silent])]}
    end.

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
            #{Key := Value} -> Value
        end}
     || Key <- [from, to, kind, rtt_us, connected_by, age_ms, bytes_there, bytes_back]
    ]}.
