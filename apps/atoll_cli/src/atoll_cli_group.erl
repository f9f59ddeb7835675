%% @doc What the commands of `atoll group' have in common: how the nodes of a held
%% cluster are named and reached, and which groups they are in.
-module(atoll_cli_group).

-export([options/0, at/0, closing/0, group_name/1, on/2, named/2, member/4, here/1, ask_all/2, show/4]).

-export_type([held/0, here/0]).

-type held() :: [{node(), State :: term()}].

-type here() :: #{
    %% Sorted by name; two that know nothing of each other may have the same.
    groups := [atoll_topology:group()],
    %% The nodes in no group, and those that do not answer.
    free := [node()],
    silent := [node()]
}.

-define(ASK_MS, 5000).
%% An operation on a group bounds itself, and sooner.
-define(OPERATION_MS, 60000).

%% @doc The option that says in which cluster.
-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => name, value => "CLUSTER", default => atoll_cli_up:default_name(), read => atoll_cli_read:name(),
          help => "in this cluster, which \"atoll up\" holds"}
    ].

%% @doc The option that says which group is meant, where several have the name.
-spec at() -> [atoll_cli_options:option()].
at() ->
    [#{name => at, value => "NODE", help => "the group that this node is in, should several have the name"}].

%% @doc The options that stand last.
-spec closing() -> [atoll_cli_options:option()].
closing() ->
    [atoll_cli_json:switch()].

%% @doc A group's name as it is typed.
-spec group_name(string()) -> {ok, s_group:name()} | {error, unicode:chardata()}.
group_name(Text) when Text =:= []; length(Text) > 255 ->
    {error, "GROUP must have one letter at least and 255 at most"};
group_name(Text) ->
    {ok, list_to_atom(Text)}.

%% @doc Calls Fun with the nodes of the cluster.
-spec on(atoll_cli_options:values(), fun((held()) -> Outcome)) -> Outcome | atoll_cli_command:outcome().
on(#{name := Name}, Fun) ->
    case atoll_cli_held:reach(Name) of
        {ok, Held} -> Fun(Held);
        {error, Sentence} -> {failed, Sentence}
    end.

%% @doc The nodes that were typed, whole or without what follows the `@'.
-spec named([string()], held()) -> {ok, [node()]} | {error, unicode:chardata()}.
named(Typed, Held) ->
    Found = [{Text, [Node || {Node, _} <- Held, is_called(Text, atom_to_list(Node))]} || Text <- Typed],
    case [Text || {Text, []} <- Found] of
        [] ->
            {ok, lists:usort([Node || {_, [Node]} <- Found])};
        [Text | _] ->
            Short = [hd(string:split(atom_to_list(Node), "@")) || {Node, _} <- Held],
            Near =
                case atoll_cli_nearest:of_words(Text, Short) of
                    {ok, Word} -> ["; did you mean ", Word, "?"];
                    none -> ""
                end,
            {error, ["the cluster has no node ", Text, Near]}
    end.

is_called(Text, Name) ->
    Text =:= Name orelse Text =:= hd(string:split(Name, "@")).

%% @doc A node in the group of that name that is none of these, to do something with
%% the group from, and all its members.
-spec member(s_group:name(), Except :: [node()], held(), atoll_cli_options:values()) ->
    {ok, node(), [node()]} | {error, unicode:chardata()}.
member(Group, Except, Held, #{at := Typed}) ->
    case named([Typed], Held) of
        {ok, [At]} -> meant(Group, Except, Held, fun(Nodes) -> lists:member(At, Nodes) end);
        {error, _} = Error -> Error
    end;
member(Group, Except, Held, #{}) ->
    meant(Group, Except, Held, fun(_Nodes) -> true end).

meant(Group, Except, Held, IsMeant) ->
    #{groups := Groups} = here(Held),
    case [Nodes || {Name, Nodes} <- Groups, Name =:= Group, IsMeant(Nodes)] of
        [] ->
            {error, ["no node that answers is in a group ", atom_to_list(Group)]};
        [Nodes] ->
            case [Node || Node <- Nodes -- Except, lists:member(Node, answering(Held))] of
                [Node | _] -> {ok, Node, Nodes};
                [] -> {error, ["every node of ", atom_to_list(Group), " that answers is to be removed; delete the group"]}
            end;
        [_, _ | _] ->
            {error, ["several groups are called ", atom_to_list(Group), "; --at NODE says which is meant"]}
    end.

answering(Held) ->
    [Node || {Node, up} <- Held].

ask(Node, Function, Args) ->
    try
        {ok, erpc:call(Node, s_group, Function, Args, ?OPERATION_MS)}
    catch
        error:{erpc, _} -> {error, [atom_to_list(Node), " does not answer"]}
    end.

%% @doc The groups of the cluster, as its nodes tell.
-spec here(held()) -> here().
here(Held) ->
    {Told, Silent} = ask_all({s_group, own_s_groups, []}, Held),
    #{
        groups => lists:usort([Group || {_, Groups} <- Told, Group <- Groups]),
        free => lists:sort([Node || {Node, []} <- Told]),
        silent => Silent
    }.

%% @doc What the nodes of the cluster answer, all asked at once, and those that do not answer.
-spec ask_all({module(), Function :: atom(), Args :: [term()]}, held()) -> {[{node(), Answer :: term()}], Silent :: [node()]}.
ask_all({Module, Function, Args}, Held) ->
    Asked = answering(Held),
    Answers = lists:zip(Asked, erpc:multicall(Asked, Module, Function, Args, ?ASK_MS)),
    Told = [{Node, Answer} || {Node, {ok, Answer}} <- Answers],
    {Told, lists:sort([Node || {Node, _} <- Held, not lists:keymember(Node, 1, Told)])}.

%% @doc Does something with a group from one of its nodes, and shows what came of it
%% as facts: what the function makes of the answer, and what is wrong with that.
-spec show(
    {node(), Function :: atom(), Args :: [term()]},
    s_group:name(),
    fun((Answer :: term()) -> {[{Key :: atom(), [node()]}], none | unicode:chardata()}),
    atoll_cli_options:values()
) -> atoll_cli_command:outcome().
show({Node, Function, Args}, Group, Facts, #{json := Json}) ->
    case ask(Node, Function, Args) of
        {ok, {error, Reason}} ->
            {failed, [atom_to_list(Node), ": ", s_group:format_error(Reason)]};
        {ok, Answer} ->
            {Known, Wrong} = Facts(Answer),
            ok = print(Json, Group, Known),
            case Wrong of
                none -> ok;
                Sentence -> {failed, Sentence}
            end;
        {error, Sentence} ->
            {failed, Sentence}
    end.

print(true, Group, Facts) ->
    atoll_cli_io:print_json({[{group, Group} | Facts]});
print(false, Group, Facts) ->
    Rows = [["group", atom_to_list(Group)] | [[words(Key), listed(Nodes)] || {Key, Nodes} <- Facts, Nodes =/= []]],
    atoll_cli_io:print(atoll_cli_table:lines([left, left], Rows)).

words(Key) -> string:replace(atom_to_list(Key), "_", " ").

listed(Nodes) -> lists:join($\s, [atom_to_list(Node) || Node <- Nodes]).
