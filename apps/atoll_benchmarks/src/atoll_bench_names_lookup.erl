%% SPDX-License-Identifier: Apache-2.0
%% @doc How long a look-up takes on a node, and how long a bare `ets:lookup/2' of as many
%% names in a table that holds nothing else: in turns of some milliseconds, so that
%% whatever else happens on the machine happens to both. The times are medians of the
%% turns.
-module(atoll_bench_names_lookup).

-export([measure/2]).

-define(TURNS, 41).
-define(READS, 5000).
%% Of more the table would not be in the processor's caches, which is another question.
-define(NAMES, 1000).

%% @doc Nanoseconds for a look-up and for a bare read. The names are registered.
-spec measure(atoll_bench_names_system:here(), [Name :: term(), ...]) -> {LookUpNs :: float(), BareNs :: float()}.
measure(Here, Registered) ->
    Names = lists:sublist(Registered, ?NAMES),
    Table = ets:new(?MODULE, [{read_concurrency, true}]),
    Rows = [row(Here, Name) || Name <- Names],
    true = ets:insert(Table, Rows),
    Keys = [element(1, Row) || Row <- Rows],
    Repeat = max(1, ?READS div length(Names)),
    Reads = Repeat * length(Names),
    Turns = [{look_up(Repeat, Here, Names), read(Repeat, Table, Keys)} || _ <- lists:seq(1, ?TURNS)],
    true = ets:delete(Table),
    {LookUps, Bare} = lists:unzip(Turns),
    {atoll_bench_stats:median(LookUps) / Reads, atoll_bench_stats:median(Bare) / Reads}.

row(Here, Name) ->
    Pid = atoll_bench_names_system:whereis(Here, Name),
    true = is_pid(Pid),
    atoll_bench_names_system:row(Here, Name, Pid).

look_up(Repeat, Here, Names) ->
    Begin = erlang:monotonic_time(nanosecond),
    ok = look_up_all(Repeat, Here, Names, Names),
    erlang:monotonic_time(nanosecond) - Begin.

look_up_all(0, _Here, _Names, _All) ->
    ok;
look_up_all(Repeat, Here, [], All) ->
    look_up_all(Repeat - 1, Here, All, All);
look_up_all(Repeat, Here, [Name | Names], All) ->
    true = is_pid(atoll_bench_names_system:whereis(Here, Name)),
    look_up_all(Repeat, Here, Names, All).

read(Repeat, Table, Keys) ->
    Begin = erlang:monotonic_time(nanosecond),
    ok = read_all(Repeat, Table, Keys, Keys),
    erlang:monotonic_time(nanosecond) - Begin.

read_all(0, _Table, _Keys, _All) ->
    ok;
read_all(Repeat, Table, [], All) ->
    read_all(Repeat - 1, Table, All, All);
read_all(Repeat, Table, [Key | Keys], All) ->
    [{_, _}] = ets:lookup(Table, Key),
    read_all(Repeat, Table, Keys, All).
