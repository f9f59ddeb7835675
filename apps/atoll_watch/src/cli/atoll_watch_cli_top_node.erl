%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll top NODE': the processes of one node that have most of something.
-module(atoll_watch_cli_top_node).

-export([keys/0, ask/4, screen/4, json/2]).

-export_type([asked/0]).

%% What was asked at a time of the clock that only goes on, in milliseconds.
-type asked() :: {ok, AtMs :: integer(), #{items := [map()], total := non_neg_integer(), looked_at := non_neg_integer()}} | {error, unicode:chardata()}.

%% @doc What they can be sorted by.
-spec keys() -> [atom(), ...].
keys() -> [memory, reductions, mailbox].

%% @doc So many processes of a node with most of that.
-spec ask(Watch :: pid(), node(), atom(), Most :: pos_integer()) -> asked().
ask(Watch, Node, Key, Most) ->
    Item = case Key of mailbox -> message_queue_len; _ -> Key end,
    case atoll_watch_explore:ask(Watch, Node, {processes, Item, Most}) of
        {ok, Told} -> {ok, erlang:monotonic_time(millisecond), Told};
        {error, Reason} -> {error, atoll_watch_explore:format_error(Node, Reason)}
    end.

%% @doc They as a table, with what each has reduced in a second since the answer before.
-spec screen(node(), atom(), asked() | none, asked()) -> iolist().
screen(Node, _, _, {error, Sentence}) ->
    [atom_to_list(Node), ": ", Sentence, $\n];
screen(Node, Key, Before, {ok, _, #{items := Items, total := Total}} = Now) ->
    Columns = [{left, "process"}, {left, "name or first call"}, {right, "memory"}, {right, "reductions"}, {right, "in a second"}, {right, "mailbox"}, {left, "status"}, {left, "is in"}],
    [
        atom_to_list(Node), ": ", atoll_cli_table:count(Total), " processes, by ", atom_to_list(Key), $\n,
        atoll_cli_table:format(Columns, [
            [Pid, named(Item), [atoll_cli_table:count(Memory div 1000), " kB"], atoll_cli_table:count(Reductions), since(Item, Before, Now), atoll_cli_table:count(Queue), Status, Current]
         || #{pid := Pid, memory := Memory, reductions := Reductions, message_queue := Queue, status := Status, current := Current} = Item <- Items
        ])
    ].

named(#{name := null, initial_call := Call}) -> Call;
named(#{name := Name}) -> Name.

since(#{pid := Pid, reductions := Reductions}, {ok, Then, #{items := Items}}, {ok, Now, _}) when Now > Then ->
    case [Was || #{pid := Is, reductions := Was} <- Items, Is =:= Pid, Was =< Reductions] of
        [Was] -> atoll_cli_table:count(round((Reductions - Was) * 1000 / (Now - Then)));
        [] -> "-"
    end;
since(_, _, _) ->
    "-".

%% @doc They as an object.
-spec json(node(), asked()) -> {ok, atoll_cli_json:object()} | {error, unicode:chardata()}.
json(Node, {ok, _, #{items := Items, total := Total}}) ->
    {ok, {[{node, Node}, {total, Total}, {processes, [{maps:to_list(Item)} || Item <- Items]}]}};
json(_, {error, _} = Error) ->
    Error.
