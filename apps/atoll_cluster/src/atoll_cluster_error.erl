%% SPDX-License-Identifier: Apache-2.0
%% @doc What the errors of a cluster say to people: one plain sentence each.
-module(atoll_cluster_error).

-export([format/1]).

%% @doc The sentence for an error's reason.
-spec format(Reason :: term()) -> unicode:chardata().
format({bad_option, Key, Why}) ->
    text("Option ~0tp ~ts.", [Key, Why]);
format({name_in_use, Name}) ->
    text("A cluster named ~ts is already running.", [Name]);
format({not_running, Name}) ->
    text("No cluster named ~ts is running.", [Name]);
format({node_name_in_use, Node}) ->
    text("A node named ~ts is already running.", [Node]);
format({too_many_nodes, Count, Fits}) ->
    text("There is memory for about ~b nodes here, not for ~b.", [Fits, Count]);
format({path_too_long, Path}) ->
    text("The path ~ts is too long for a socket; use a shorter name or XDG_RUNTIME_DIR.", [Path]);
format({run_dir, Dir, Reason}) ->
    text("The run directory ~ts cannot be used: ~ts.", [Dir, file:format_error(Reason)]);
format({run_dir_unsafe, Dir}) ->
    text("The run directory ~ts belongs to, or is open to, another user.", [Dir]);
format({control, Path, Reason}) ->
    text("The socket ~ts does not work: ~ts.", [Path, inet:format_error(Reason)]);
format({no_answer, Name}) ->
    text("The owner of cluster ~ts does not answer.", [Name]);
format({watchdog, Reason}) ->
    text("The watchdog does not start: ~0tp.", [Reason]);
format({epmd, Reason}) ->
    text("The port mapper, epmd, does not start: ~0tp.", [Reason]);
format({cookie, no_home}) ->
    "HOME is not set: nodes find their cookie in it.";
format({cookie, {File, Reason}}) ->
    text("The nodes find their cookie in HOME, and its file ~ts cannot be made: ~ts.", [File, file:format_error(Reason)]);
format({node_failed, Node, Reason, Said}) ->
    text("Node ~ts did not start: ~ts~ts.", [Node, boot_reason(Reason), said(Said)]);
%% An application that says in a sentence why it did not.
format({app_failed, Node, App, {App, {[_ | _] = Said, {_, start, _}}}} = Error) ->
    case io_lib:char_list(Said) of
        true -> text("Application ~ts did not start on node ~ts: ~ts.", [App, Node, Said]);
        false -> app_failed(Error)
    end;
format({app_failed, _, _, _} = Error) ->
    app_failed(Error);
format({node_down, Node}) ->
    text("Node ~ts is down.", [Node]);
format({node_up, Node}) ->
    text("Node ~ts is not down.", [Node]);
format({unknown_node, Node}) ->
    text("Node ~ts is not of this cluster.", [Node]);
format({timeout, Node}) ->
    text("Node ~ts did not answer in time.", [Node]);
format({busy, Node}) ->
    text("Node ~ts has too many unanswered calls.", [Node]);
format({raised, Class, Reason}) ->
    text("The call ended with ~ts ~0tP.", [Class, Reason, 20]);
format({elsewhere, Why}) ->
    text("No cluster can be started there: ~ts.", [Why]);
format(stopped) ->
    "The cluster was stopped.";
format(Reason) ->
    text("The cluster failed: ~0tP.", [Reason, 20]).

app_failed({app_failed, Node, App, Reason}) ->
    text("Application ~ts did not start on node ~ts: ~0tP.", [App, Node, Reason, 20]).

boot_reason(boot_timeout) -> "it was not ready in time";
boot_reason({exit_status, Status}) -> text("it ended with status ~b", [Status]);
boot_reason(Reason) -> text("~0tP", [Reason, 20]).

%% The node's last words, on one line.
said(Said) ->
    case string:lexemes(printable(Said), [$\s, $\n, $\r, $\t, "\r\n"]) of
        [] -> "";
        Words -> [", saying: ", lists:join(" ", Words)]
    end.

printable(Bin) ->
    case unicode:characters_to_list(Bin) of
        Text when is_list(Text) -> Text;
        _ -> [C || <<C>> <= Bin, C < 128]
    end.

text(Format, Args) ->
    io_lib:format(Format, Args).
