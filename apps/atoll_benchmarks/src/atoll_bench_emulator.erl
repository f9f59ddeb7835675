%% SPDX-License-Identifier: Apache-2.0
%% @doc How an emulator is started, as a thing to be compared.
%% <dl>
%% <dt>`all'</dt><dd>as `erl' does it: as many schedulers as processors (two at least), each of which waits busily for a while, and ten
%%   for dirty I/O. In the thesis of Dervishi (KTH, 2012) that is SMP auto</dd>
%% <dt>`one'</dt><dd>one scheduler (`+S 1:1'), which is as near as an emulator of today comes to one without SMP</dd>
%% <dt>`one_online'</dt><dd>as many, of which one is online (`+S n:1')</dd>
%% <dt>`no_wait', `long_wait'</dt><dd>as many, which never wait busily, or for very long (`+sbwt')</dd>
%% <dt>`one_dirty_io'</dt><dd>as many, and one for dirty I/O (`+SDio 1')</dd>
%% </dl>
%% The pool of asynchronous threads (`+A') is not among them: since OTP 21 files have nothing to do with it, and neither have
%% sockets.
-module(atoll_bench_emulator).

-export([words/0, flags/1]).

-export_type([word/0]).

-type word() :: all | one | one_online | no_wait | long_wait | one_dirty_io.

%% @doc All of them.
-spec words() -> [word(), ...].
words() -> [all, one, one_online, no_wait, long_wait, one_dirty_io].

%% @doc What erl is given.
-spec flags(word()) -> [string()].
flags(all) -> flags(n(), n(), ["medium", "short", "short"], "10");
flags(one) -> flags(1, 1, ["medium", "short", "short"], "10");
flags(one_online) -> flags(n(), 1, ["medium", "short", "short"], "10");
flags(no_wait) -> flags(n(), n(), ["none", "none", "none"], "10");
flags(long_wait) -> flags(n(), n(), ["very_long", "very_long", "very_long"], "10");
flags(one_dirty_io) -> flags(n(), n(), ["medium", "short", "short"], "1").

n() -> max(2, erlang:system_info(logical_processors_available)).

flags(All, Online, Waits, DirtyIo) ->
    ["+S", lists:concat([All, ":", Online]), "+SDio", DirtyIo | lists:append([[Flag, Wait] || {Flag, Wait} <- lists:zip(["+sbwt", "+sbwtdcpu", "+sbwtdio"], Waits)])].
