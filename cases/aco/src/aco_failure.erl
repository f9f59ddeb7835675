%% @doc What ends a run early, and the sentence that says so.
-module(aco_failure).

-export([format/1]).

-export_type([reason/0]).

-type reason() ::
    aco_branch:reason()
    %% where nothing is reliable
    | {ant_lost, aco_colony:id(), node()}
    %% started again so many times there without getting anything done in between
    | {in_vain, aco_tree:id(), node(), pos_integer()}
    %% so many ants one after the other
    | {ants_in_vain, aco_colony:id(), node(), pos_integer()}
    %% not by a kill
    | {crashed, aco_tree:id(), node(), Why :: term()}
    | {ant_crashed, aco_colony:id(), node(), Why :: term()}
    %% of a group that it should be in
    | {left_out, node()}
    %% new_s_group or add_nodes refused, on that node
    | {group_failed, node(), s_group:error() | s_group_not_runnig}
    %% the host of that node could not get its name
    | {name_failed, node(), atoll_name:reason()}
    | {no_code, node()}
    %% the process that stands for the run on that node
    | {host_failed, node(), Why :: term()}
    | {master_failed, node(), Why :: term()}
    %% in so many seconds
    | {not_built, pos_integer()}
    | caller_gone.

%% @doc One plain sentence.
-spec format(reason() | aco_run:reason()) -> unicode:chardata().
format({process_lost, Id, Node}) ->
    say("~ts on node ~ts was lost, and nothing replaces it in this mode.", [role(Id), Node]);
format({node_lost, Id, Node}) ->
    say("Node ~ts was lost, and ~ts with it, which cannot go on elsewhere.", [Node, in_sentence(role(Id))]);
format({unreachable, Node}) ->
    say("Node ~ts cannot be reached.", [Node]);
format({in_vain, Id, Node, Count}) ->
    say("~ts on node ~ts was lost more than ~b times without getting anything done in between.",
        [role(Id), Node, Count]);
format({ants_in_vain, Id, Node, Count}) ->
    say("Colony ~b on node ~ts lost more than ~b ants without one that came to its end in between.", [Id, Node, Count]);
format({crashed, Id, Node, Why}) ->
    say("~ts on node ~ts failed: ~0tP.", [role(Id), Node, Why, 12]);
format({ant_crashed, Id, Node, Why}) ->
    say("An ant of colony ~b on node ~ts failed: ~0tP.", [Id, Node, Why, 12]);
format({ant_lost, Id, Node}) ->
    say("An ant of colony ~b on node ~ts was lost, and nothing replaces it in this mode.", [Id, Node]);
format({left_out, Node}) ->
    say("Node ~ts was left out of its group: it cannot be reached, or does not run Atoll.", [Node]);
format({group_failed, Node, Why}) ->
    say("Node ~ts could not make a group: ~ts.", [Node, s_group:format_error(Why)]);
format({name_failed, Node, Why}) ->
    say("Node ~ts could not register a name: ~ts.", [Node, s_group:format_error(Why)]);
format({no_code, Node}) ->
    say("Node ~ts does not have the code of ACO.", [Node]);
format({host_failed, Node, Why}) ->
    say("The host of the run on node ~ts failed: ~0tP.", [Node, Why, 12]);
format({master_failed, Node, Why}) ->
    say("The master on node ~ts failed: ~0tP.", [Node, Why, 12]);
format({not_built, Seconds}) ->
    say("The processes of the run were not all there within ~b s.", [Seconds]);
format(caller_gone) ->
    say("The process that had started the run is gone.", []);
format(Reason) ->
    aco_run:format_error(Reason).

role([]) -> "The master";
role(Id) when is_integer(Id) -> io_lib:format("Colony ~b", [Id]);
role(Path) -> ["Submaster ", lists:join(".", [integer_to_list(I) || I <- Path])].

in_sentence([First | Rest]) -> [string:lowercase([First]) | Rest].

say(Format, Args) ->
    io_lib:format(Format, Args).
