%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on a watched node, asked of its agent: see {@link atoll_watch_agent_explore:explore/1}. Why there is no answer is
%% a word, and a sentence for people.
-module(atoll_watch_explore).

-export([ask/3, format_error/2]).

-export_type([reason/0]).

-type reason() :: not_found | timeout | not_connected | failed | too_large.

-define(MS, 6000).

%% @doc Asks a node that is up.
-spec ask(Watch :: pid(), node(), atoll_watch_agent_explore:question()) -> {ok, map()} | {error, reason()}.
ask(Watch, Node, Question) ->
    try atoll_watch:call(Watch, Node, atoll_watch_agent_explore, explore, [Question], ?MS) of
        not_found -> {error, not_found};
        Told -> {ok, Told}
    catch
        error:{erpc, timeout} -> {error, timeout};
        error:{erpc, _} -> {error, not_connected};
        error:{exception, _, _} -> {error, failed};
        exit:{exception, _} -> {error, too_large};
        exit:{signal, _} -> {error, too_large}
    end.

%% @doc The sentence.
-spec format_error(node(), reason()) -> unicode:chardata().
format_error(_, not_found) -> "There is no such process there.";
format_error(Node, timeout) -> [atom_to_list(Node), " did not answer in time."];
format_error(Node, not_connected) -> [atom_to_list(Node), " is not connected."];
format_error(Node, failed) -> [atom_to_list(Node), " could not answer."];
format_error(Node, too_large) -> [atom_to_list(Node), " gave up: the answer would take too much memory."].
