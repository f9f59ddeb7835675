%% SPDX-License-Identifier: Apache-2.0
%% A set that only grows, and that all members have: an element is its own id. Who wants to know what
%% is in it subscribes.
-module(atoll_handler_set).

-behaviour(atoll_handler).

-export([add/1]).
-export([init/1, merge/3, digest/1, since/2]).

add(Element) ->
    atoll_handler:put(?MODULE, Element, in).

init(Elements) ->
    ordsets:from_list(Elements).

merge(Element, in, Set) ->
    case ordsets:is_element(Element, Set) of
        true -> {stale, Set};
        false -> {new, ordsets:add_element(Element, Set)}
    end.

digest(Set) -> Set.

since(Theirs, Set) ->
    [{Element, in} || Element <- ordsets:subtract(Set, Theirs)].
