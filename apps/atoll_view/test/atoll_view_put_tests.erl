%% SPDX-License-Identifier: Apache-2.0
%% What takes modules away that were put into a node, on modules of this VM.
-module(atoll_view_put_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MODULES, [atoll_view_put_one, atoll_view_put_other]).

%% Of each there is old code too, as where one was killed before.
nothing_of_the_modules_is_left_test() ->
    Code = [{Module, Is} || Module <- ?MODULES, {ok, _, Is} <- [compile:forms([{attribute, 1, module, Module}])]],
    _ = [{module, Module} = code:load_binary(Module, "none", Is) || _ <- [once, again], {Module, Is} <- Code],
    ?assertEqual([true, true], [erlang:check_old_code(Module) || Module <- ?MODULES]),
    Self = self(),
    #{watcher := Self, leaves := Leaves} = atoll_view_put:guest(self(), ?MODULES),
    _ = apply(lists, zipwith3, [fun erlang:apply/3 | Leaves]),
    ?assertEqual([false, false, false, false], lists:append([[erlang:module_loaded(Module), erlang:check_old_code(Module)] || Module <- ?MODULES])).
