%% SPDX-License-Identifier: Apache-2.0
%% A protocol for the tests of the world: it does what it is told, and tells what
%% it hears.
-module(atoll_sim_echo).

-behaviour(atoll_protocol).

-export([init/2, handle/3]).

init(Node, _Now) ->
    {Node, []}.

handle({cast, {effects, Effects}}, _Now, Node) -> {Node, Effects};
handle({call, From, Question}, _Now, Node) -> {Node, [{reply, From, {Node, Question}}]};
handle(Event, _Now, Node) -> {Node, [{notify, Event}]}.
