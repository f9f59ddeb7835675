%% SPDX-License-Identifier: Apache-2.0
%% @doc What the commands of the ring have in common: how it is started, which node of a cluster is asked, and how answers are shown.
-module(atoll_cases_ring).

-export([options/0, check/1, shape/1, columns/0, row/2, with_node/4, member/4, values/2, settled/2]).

-define(READY_MS, 30_000).

%% @doc The options that say what is started.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => nodes, short => $n, value => "N", default => "3", read => atoll_cli_read:whole(1, 100), help => "nodes of the ring"},
        #{name => spare, value => "N", default => "0", read => atoll_cli_read:whole(0, 100), help => "nodes beside it, which may join it later"},
        #{name => partitions, value => "N", default => "64", read => fun partitions/1, help => "partitions, a power of two"},
        #{name => copies, value => "N", default => "3", read => atoll_cli_read:whole(1, 16), help => "copies of a key"},
        #{name => read, value => "R", default => "2", read => atoll_cli_read:whole(1, 16), help => "copies that must answer a read"},
        #{name => write, value => "W", default => "2", read => atoll_cli_read:whole(1, 16), help => "copies that must have a write"},
        #{name => store, value => "STORE", default => "ets", read => atoll_cli_read:one_of([ets, dets]), help => "where values are: in memory, or on the disk in a folder that goes with the nodes"},
        #{name => versions, value => "KIND", default => "all", read => atoll_cli_read:one_of([all, last]), help => "whether values of writers that knew nothing of each other all stay, or the last one"},
        #{name => carrier, value => "KIND", default => "stock", read => atoll_cli_read:one_of([stock, lanes]), help => "Erlang's own distribution, or Atoll's with 16 lanes for the messages of partitions"}
    ].

partitions(Text) ->
    case atoll_cli_read:to_number(Text) of
        {ok, N} -> case ring_hash:is_count(N) of true -> {ok, N}; false -> {error, must()} end;
        error -> {error, must()}
    end.

must() -> "must be a power of two, 65536 at most".

%% @doc What is wrong with them together.
-spec check(atoll_cli_options:values()) -> ok | {usage, unicode:chardata()}.
check(#{copies := Copies} = Values) ->
    case [Key || Key <- [read, write], map_get(Key, Values) > Copies] of
        [] -> ok;
        [Key | _] -> {usage, io_lib:format("--~ts must be at most --copies, which is ~b, not \"~b\"", [Key, Copies, map_get(Key, Values)])}
    end.

%% @doc What is started.
-spec shape(atoll_cli_options:values()) -> ring_cluster:shape().
shape(Values) ->
    (maps:with([nodes, spare, carrier], Values))#{settings => maps:with([partitions, copies, read, write, store, versions], Values)}.

%% @doc The table's head of what nodes say of themselves.
-spec columns() -> [{left | right, unicode:chardata()}].
columns() -> [{left, "node"}, {left, "is"} | [{right, Head} || Head <- ["partitions", "running", "handing over", "well"]]].

%% @doc A line of it, of what {@link ring:status/0} says, if the node answers.
-spec row(node(), {ok, ring:status()} | undefined) -> [unicode:chardata()].
row(Node, {ok, #{members := Members, owned := Owned, running := Running, handoffs := Handoffs, up := Up}}) ->
    Is = proplists:get_value(Node, Members, out),
    [atom_to_list(Node), atom_to_list(Is) | [atoll_cli_table:count(N) || N <- [maps:get(Node, Owned, 0), Running, Handoffs, length(Up)]]];
row(Node, undefined) -> [atom_to_list(Node) | ["-" || _ <- tl(columns())]].

%% @doc What a function answers that asks the first node of a ring of a cluster.
-spec with_node(looks | changes, atoll_cli_options:values(), {module(), atom(), [term()]}, fun((term()) -> atoll_cli_command:outcome())) -> atoll_cli_command:outcome().
with_node(Kind, Values, {Module, Function, Args}, Show) ->
    atoll_view_cli_where:on(Kind, otp, Values, fun(View) ->
        {Said, _} = atoll_view:ask_all(atoll_view:up(View), ring, status, []),
        case lists:sort([Node || {Node, {ok, #{epoch := Epoch}}} <- Said, Epoch > 0]) of
            [] -> {unable, ["No node of the cluster ", atoll_view:name(View), " has a ring."]};
            [Node | _] ->
                case atoll_view:ask(Node, Module, Function, Args) of
                    {ok, Answer} -> Show(Answer);
                    {error, Sentence} -> {unable, Sentence}
                end
        end
    end).

%% @doc Has a node of a cluster do that, and says so.
-spec member(atoll_cli_options:values(), string(), fun((node(), [node()]) -> {node(), atom(), [term()]}), string()) -> atoll_cli_command:outcome().
member(Values, Named, What, Says) ->
    atoll_view_cli_where:on(changes, otp, Values, fun(View) ->
        case atoll_view_cli_where:named([Named], View) of
            {ok, [Node]} ->
                {Said, _} = atoll_view:ask_all(atoll_view:up(View) -- [Node], ring, status, []),
                case lists:sort([Other || {Other, {ok, #{epoch := Epoch}}} <- Said, Epoch > 0]) of
                    [] -> {unable, ["No other node of the cluster ", atoll_view:name(View), " has a ring."]};
                    Others ->
                        {At, Function, Args} = What(Node, Others),
                        case atoll_view:ask(At, ring, Function, Args, ?READY_MS) of
                            {ok, ok} -> atoll_cli_io:print([atom_to_list(Node), $\s, Says, $\n]);
                            {ok, {error, Error}} -> {unable, ring:format_error(Error)};
                            {error, Sentence} -> {unable, Sentence}
                        end
                end;
            {error, Sentence} -> {usage, Sentence}
        end
    end).

%% @doc Shows the values of a key.
-spec values(Json :: boolean(), {ok, [term()], ring_kvs:context()} | {not_found, ring_kvs:context()} | {error, ring_kvs:error()}) -> atoll_cli_command:outcome().
values(Json, {ok, Values, _}) ->
    Texts = lists:sort([text(Value) || Value <- Values]),
    case Json of
        true -> atoll_cli_io:print_json({[{values, Texts}]});
        false -> atoll_cli_io:print([[Text, $\n] || Text <- Texts])
    end;
values(_, {not_found, _}) -> {failed, "there is no such key"};
values(_, {error, Error}) -> {unable, ring_kvs:format_error(Error)}.

text(Value) when is_binary(Value) -> case unicode:characters_to_list(Value) of Text when is_list(Text) -> Value; _ -> text({binary, Value}) end;
text(Value) -> unicode:characters_to_binary(io_lib:format("~0tP", [Value, 30])).

%% @doc Whether a write was taken.
-spec settled(string(), {ok, ring_kvs:seen()} | {error, ring_kvs:error()}) -> atoll_cli_command:outcome().
settled(Says, {ok, _}) -> atoll_cli_io:print([Says, $\n]);
settled(_, {error, Error}) -> {unable, ring_kvs:format_error(Error)}.
