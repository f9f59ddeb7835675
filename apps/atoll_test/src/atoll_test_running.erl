%% SPDX-License-Identifier: Apache-2.0
%% @doc Which cases are running in the VM of a job, in a file that is left when the VM is cut
%% short: `running', among its results, has a line for each that begins and each that ends.
%%
%% {@link atoll_test_listener} tells it of EUnit's tests. Of Common Test's cases it hears
%% itself, as an event handler; asked for `counts' it says how many cases Common Test has counted as
%% passed, as failed, and as skipped behind something that failed.
-module(atoll_test_running).
-behaviour(gen_event).

-export([begun/3, ended/3, left/1]).
-export([init/1, handle_event/2, handle_call/2]).

-include_lib("common_test/include/ct_event.hrl").

-type counts() :: {Passed :: non_neg_integer(), Failed :: non_neg_integer(), Missed :: non_neg_integer()}.

-record(heard, {dir :: file:filename(), groups = [] :: [atom()], counts = none :: counts() | none}).

%% @doc A case of a module has begun.
-spec begun(file:filename(), module(), string()) -> ok.
begun(Dir, Module, Case) -> note(Dir, {begun, {atom_to_list(Module), Case}}).

%% @doc It has ended.
-spec ended(file:filename(), module(), string()) -> ok.
ended(Dir, Module, Case) -> note(Dir, {ended, {atom_to_list(Module), Case}}).

note(Dir, Event) ->
    ok = file:write_file(file(Dir), io_lib:format("~0p.~n", [Event]), [append]).

%% @doc What has begun and not ended.
-spec left(file:filename()) -> [{Module :: string(), Case :: string()}].
left(Dir) ->
    case file:consult(file(Dir)) of
        {ok, Events} -> [Case || {begun, Case} <- Events] -- [Case || {ended, Case} <- Events];
        {error, _} -> []
    end.

file(Dir) -> filename:join(Dir, "running").

%% @private
-spec init(file:filename()) -> {ok, #heard{}}.
init(Dir) -> {ok, #heard{dir = Dir}}.

%% @private
-spec handle_event(#event{}, #heard{}) -> {ok, #heard{}}.
handle_event(#event{name = tc_start, data = {Suite, Function}}, #heard{dir = Dir} = Heard) ->
    Inside = left_group(Function, Heard),
    ok = begun(Dir, Suite, name(Function, Inside)),
    {ok, Inside};
handle_event(#event{name = tc_done, data = {Suite, Function, Result}}, #heard{dir = Dir} = Heard) ->
    ok = ended(Dir, Suite, name(Function, Heard)),
    {ok, entered_group(Function, Result, Heard)};
handle_event(#event{name = test_stats, data = {Passed, Failed, {_Skipped, Missed}}}, Heard) ->
    {ok, Heard#heard{counts = {Passed, Failed, Missed}}};
handle_event(_Event, Heard) ->
    {ok, Heard}.

left_group({end_per_group, _, _}, #heard{groups = [_ | Outer]} = Heard) -> Heard#heard{groups = Outer};
left_group(_, Heard) -> Heard.

entered_group({init_per_group, Group, _}, ok, #heard{groups = Outer} = Heard) -> Heard#heard{groups = [Group | Outer]};
entered_group(_, _, Heard) -> Heard.

%% As in the results, see atoll_test_result.
name({Function, Group, _}, #heard{groups = Outer}) -> atoll_test_result:name([Group | Outer], Function);
name(Function, #heard{groups = Groups}) -> atoll_test_result:name(Groups, Function).

%% @private
-spec handle_call(counts, #heard{}) -> {ok, counts() | none, #heard{}}.
handle_call(counts, #heard{counts = Counts} = Heard) -> {ok, Counts, Heard}.
