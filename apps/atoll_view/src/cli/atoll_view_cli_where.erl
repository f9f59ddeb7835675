%% SPDX-License-Identifier: Apache-2.0
%% @doc Which cluster a command is about: the options that say so, what stands for them where they
%% are left out, and how it is reached.
%%
%% What is typed comes first, then the environment, then the context in use. Without any of them a
%% command that only looks takes the one cluster that runs here. One that changes something takes
%% none that was not named: only the cluster that `atoll up' calls so without a name. `all' stands for
%% those that run here, however many.
-module(atoll_view_cli_where).

-export([options/1, is_given/1, target/2, on/4, on_up/2, named/2, judged/1, tls/0, default_name/0]).

-type kind() :: looks | changes | all.
%% What it asks of the nodes: functions of OTP alone, or of the application atoll.
-type needs() :: otp | atoll.
-type wrong() :: {usage | unable, unicode:chardata()}.

%% @doc The options of a command of that kind; with a text, of one that does something else where
%% none of them is given.
-spec options(kind() | string()) -> [atoll_cli_options:option()].
options(looks) ->
    options("the context in use, or the only one that runs");
options(changes) ->
    options("the context in use, or the one called " ++ default_name());
options(Without) ->
    [
        #{name => cluster, short => $c, value => "NAME", read => atoll_cli_read:name(),
          help => ["in this cluster, which \"atoll up\" holds or \"atoll context add\" has named; without, ", Without]},
        #{name => node, value => "NODE", read => fun node_names/1,
          help => "in the cluster of this node, whoever started it; or several with commas between, as in a@host1,b@host2"},
        #{name => cookie_file, value => "FILE", is_read => true, help => "with --node, the file that the cluster's cookie is in; without, your own"},
        #{name => tls_options_file, value => "FILE", is_read => true,
          help => "with --node, a file as -ssl_dist_optfile takes it, for a cluster that takes TLS"}
    ].

node_names(Text) ->
    case atoll_view_join:node_names(Text) of
        {ok, _} -> {ok, Text};
        error -> {error, "must be the name of a node, as in a@host, or several with commas between"}
    end.

%% @doc What a cluster is called that is started without a name.
-spec default_name() -> string().
default_name() -> "atoll".

%% @doc Whether the command line says which cluster.
-spec is_given(atoll_cli_options:values()) -> boolean().
is_given(Values) ->
    maps:size(maps:with([cluster, node, cookie_file, tls_options_file], Values)) > 0.

%% @doc The cluster that is meant.
-spec target(looks | changes, atoll_cli_options:values()) -> {ok, atoll_view:target()} | wrong();
            (all, atoll_cli_options:values()) -> {ok, atoll_view:target() | all} | wrong().
target(_Kind, #{cluster := _, node := _}) ->
    {usage, "--cluster and --node both say which cluster: not both"};
target(_Kind, #{cluster := Name} = Values) ->
    case of_a_node(Values) of
        [] -> called(Name);
        [Key | _] -> {usage, [atoll_cli_options:flag(Key), " is for --node; the cluster ", Name, " is reached as it was named"]}
    end;
target(_Kind, #{node := Typed} = Values) ->
    {ok, of_node(Typed, maps:merge(environment(), Values))};
target(Kind, Values) ->
    case {of_a_node(Values), environment()} of
        {_, #{node := Typed} = Environment} ->
            case node_names(Typed) of
                {ok, _} -> {ok, of_node(Typed, maps:merge(Environment, Values))};
                {error, Must} -> {usage, ["ATOLL_NODE ", Must, ", not \"", Typed, $"]}
            end;
        {[Key | _], _} ->
            {usage, [atoll_cli_options:flag(Key), " is for --node, which is missing"]};
        {[], _} ->
            unsaid(Kind)
    end.

%% What was typed that says how a node is reached.
of_a_node(Values) -> maps:keys(maps:with([cookie_file, tls_options_file], Values)).

called(Name) ->
    case atoll_view_context:find(Name) of
        {ok, _} = Found -> Found;
        {error, Sentence} -> {unable, Sentence}
    end.

of_node(Typed, Values) ->
    {ok, Nodes} = atoll_view_join:node_names(Typed),
    {joined, Typed, (maps:with([cookie_file, tls_options_file], Values))#{nodes => Nodes}}.

environment() ->
    maps:from_list([
        {Key, Value}
     || {Key, Variable} <- [{node, "ATOLL_NODE"}, {cookie_file, "ATOLL_COOKIE_FILE"}, {tls_options_file, "ATOLL_TLS_OPTIONS_FILE"}],
        Value <- [os:getenv(Variable, "")], Value =/= ""
    ]).

unsaid(Kind) ->
    case {atoll_view_context:all(), Kind, lists:sort([Name || #{name := Name} <- atoll_cluster:running()])} of
        {{error, Sentence}, _, _} -> {unable, Sentence};
        {{ok, #{in_use := Name}}, _, _} when Name =/= none -> called(Name);
        {_, all, _} -> {ok, all};
        {_, changes, _} -> {ok, {held, default_name()}};
        {_, looks, [Name]} -> {ok, {held, Name}};
        {_, looks, [_, _ | _] = Names} -> {usage, ["several clusters are running: ", lists:join(", ", Names), "; --cluster says which is meant"]};
        {_, looks, []} ->
            case atoll_cluster:check() of
                ok -> {unable, "No cluster is running here; --node names one elsewhere, and \"atoll context add\" gives it a name."};
                {error, Reason} -> {unable, atoll_cluster:format_error(Reason)}
            end
    end.

%% @doc Calls Fun with the cluster.
-spec on(kind(), needs(), atoll_cli_options:values(), fun((atoll_view:view()) -> Outcome)) -> Outcome | wrong().
on(Kind, Needs, Values, Fun) ->
    case target(Kind, Values) of
        {ok, Target} ->
            case atoll_view:open(Target) of
                {ok, View} -> opened(Needs, View, Fun);
                {error, Sentence} -> {unable, Sentence}
            end;
        Wrong ->
            Wrong
    end.

opened(otp, View, Fun) ->
    Fun(View);
opened(atoll, View, Fun) ->
    case atoll_view:absent(View) of
        none -> Fun(View);
        Sentence -> {unable, Sentence}
    end.

%% @doc Calls Fun with those nodes of the cluster that are up, of which something is done that needs
%% OTP alone; the others are left out, which is said.
-spec on_up(atoll_cli_options:values(), fun(([node(), ...]) -> Outcome)) -> Outcome | wrong().
on_up(Values, Fun) ->
    on(changes, otp, Values, fun(View) ->
        _ = [
            atoll_cli_io:say([atom_to_list(Node), " is ", atom_to_list(State), ", and left out"])
         || {Node, State} <- atoll_view:nodes(View), State =/= up
        ],
        case atoll_view:up(View) of
            [] -> {unable, ["No node of ", atoll_view:name(View), " is up."]};
            Up -> Fun(Up)
        end
    end).

%% @doc The nodes that were typed, whole or without what follows the `@'.
-spec named([string()], atoll_view:view()) -> {ok, [node()]} | {error, unicode:chardata()}.
named(Typed, View) ->
    Nodes = [Node || {Node, _} <- atoll_view:nodes(View)],
    Found = [{Text, [Node || Node <- Nodes, is_called(Text, atom_to_list(Node))]} || Text <- Typed],
    case {[Text || {Text, []} <- Found], [Many || {_, [_, _ | _]} = Many <- Found]} of
        {[], []} ->
            {ok, lists:usort([Node || {_, [Node]} <- Found])};
        {[Text | _], _} ->
            Short = [hd(string:split(atom_to_list(Node), "@")) || Node <- Nodes],
            Near =
                case atoll_cli_nearest:of_words(Text, Short) of
                    {ok, Word} -> ["; did you mean ", Word, "?"];
                    none -> [", or no other of its nodes is connected with it" || lists:member($@, Text)]
                end,
            {error, ["the cluster has no node ", Text, Near]};
        {[], [{Text, Several} | _]} ->
            {error, [Text, " may be any of ", lists:join(", ", [atom_to_list(Node) || Node <- Several])]}
    end.

is_called(Text, Name) ->
    Text =:= Name orelse Text =:= hd(string:split(Name, "@")).

%% @doc What came of looking at a cluster in which these nodes do not answer.
-spec judged(Silent :: [node() | binary()]) -> ok | {failed, unicode:chardata()}.
judged([]) -> ok;
judged(Silent) -> {failed, ["these do not answer: ", lists:join(", ", [io_lib:format("~ts", [Node]) || Node <- Silent])]}.

%% @doc For `bin/atoll': prints the file with the options of TLS for the cluster of the command line,
%% if it takes TLS. A VM speaks it if it was started so, and would look for a mere name in the code path.
-spec tls() -> no_return().
tls() ->
    _ =
        case atoll_cli:values(init:get_plain_arguments()) of
            {ok, Module, Values} -> [ok = atoll_cli_io:print(tls(Values)) || #{name := node} <- Module:options()];
            none -> nothing_is_reached
        end,
    halt(0).

tls(Values) ->
    case target(looks, Values) of
        {ok, {joined, _, #{tls_options_file := File}}} -> filename:absname(File);
        _ -> ""
    end.
