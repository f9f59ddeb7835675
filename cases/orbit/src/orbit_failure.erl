%% @doc What ends a run early, and the sentence that says so.
-module(orbit_failure).

-export([of_exit/2, format/1]).

-export_type([reason/0]).

-type reason() ::
    %% the connection of two processes of the run went, or the node with it
    {node_lost, node()}
    %% a process of the run ended there that should not have
    | {worker_failed, node(), Why :: term()}
    %% no process could be started there
    | {unreachable, node()}
    %% of the s_group that it should be in
    | {left_out, node()}
    %% both are in one group, and still there is no connection
    | {not_connected, node(), node()}
    %% new_s_group refused, on that node
    | {group_failed, node(), s_group:error() | s_group_not_runnig}
    %% whoever had called orbit:run/1 is gone
    | caller_gone.

%% @doc What the end of a linked process on that node means.
-spec of_exit(node(), term()) -> reason().
of_exit(Node, noconnection) -> {node_lost, Node};
of_exit(Node, Why) -> {worker_failed, Node, Why}.

%% @doc One plain sentence.
-spec format(reason() | orbit_run:reason()) -> unicode:chardata().
format({node_lost, Node}) ->
    say("Node ~ts was lost during the run.", [Node]);
format({worker_failed, Node, {undef, _}}) ->
    say("Node ~ts does not have the code of Orbit.", [Node]);
format({worker_failed, Node, Why}) ->
    say("A process of the run failed on node ~ts: ~0tp.", [Node, Why]);
format({unreachable, Node}) ->
    say("Node ~ts cannot be reached.", [Node]);
format({left_out, Node}) ->
    say("Node ~ts was left out of its group: it cannot be reached, or does not run Atoll.",
        [Node]);
format({not_connected, Node, Other}) ->
    say("Node ~ts has no connection with ~ts, which is in the same group.", [Node, Other]);
format({group_failed, Node, Why}) ->
    say("Node ~ts could not make a group: ~ts.", [Node, s_group:format_error(Why)]);
format(caller_gone) ->
    say("The process that had started the run is gone.", []);
format({missing_option, Key}) ->
    say("The option ~ts is missing.", [Key]);
format({unknown_option, Key}) ->
    say("There is no option ~0tp.", [Key]);
format({unknown_generators, Name}) ->
    say("There are no generators ~0tp; they are named g1 to g12345, digits ascending.", [Name]);
format({unknown_mode, Mode}) ->
    say("There is no mode ~0tp; the modes are seq, par, mesh, groups and ring.", [Mode]);
format({not_a_positive_number, Key, Value}) ->
    say("The option ~ts must be a whole number above 0, not ~0tp.", [Key, Value]);
format({not_a_boolean, Key, Value}) ->
    say("The option ~ts must be true or false, not ~0tp.", [Key, Value]);
format({not_a_list_of_nodes, Value}) ->
    say("The nodes must be a list of one node or more, not ~0tp.", [Value]);
format({node_given_twice, Node}) ->
    say("Node ~ts is given twice.", [Node]);
format({one_node_mode, Mode, Count}) ->
    say("The mode ~ts runs on one node, not on ~b.", [Mode, Count]);
format({not_the_first_node, Node, First}) ->
    say("The run must be started on ~ts, the first of its nodes, not on ~ts.", [First, Node]);
format({not_distributed, Node}) ->
    say("Node ~ts is not distributed, and the mode asks for a cluster.", [Node]);
format({group_too_large, Size, Count}) ->
    say("A group of ~b nodes cannot be made of ~b.", [Size, Count]).

say(Format, Args) ->
    io_lib:format(Format, Args).
