%% SPDX-License-Identifier: Apache-2.0
%% A reporter that keeps what it is told: in this VM, and in one of its own. It tells once, when it is asked, and is gone with its VM.
-module(atoll_view_reporter_SUITE).

-behaviour(atoll_view_reporter).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([
    what_is_new_is_told_once_and_soon/1,
    one_in_a_vm_of_its_own_goes_with_it/1,
    one_that_cannot_begin_says_so/1
]).
-export([begun/2, came/2, has_news/1, report/1, gathers/0, ended/1]).

-define(LATE_MS, 60000).
-define(GATHER_MS, 50).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [what_is_new_is_told_once_and_soon, one_in_a_vm_of_its_own_goes_with_it, one_that_cannot_begin_says_so].

init_per_suite(Config) ->
    Dir = atoll_cli_os:new_dir(),
    Cookie = filename:join(Dir, "cookie"),
    ok = file:write_file(Cookie, "tell-tale"),
    [{dir, Dir}, {options, #{way => #{nodes => ['nobody@127.0.0.1'], cookie_file => Cookie}}} | Config].

end_per_suite(Config) -> atoll_cli_os:remove_dir(proplists:get_value(dir, Config)).

%% What it is for

begun(#{way := _}, {ok, 'tell-tale'}) -> [].

came({'EXIT', _, Reason}, Kept) -> {stop, Reason, Kept};
came(Message, Kept) -> {ok, [Message | Kept]}.

has_news(Kept) -> Kept =/= [].

report(Kept) -> {#{kept => lists:reverse(Kept), os_pid => os:getpid()}, []}.

gathers() -> ?GATHER_MS.

ended(_) -> ok.

%% The cases

asked(Reporter) ->
    Reporter ! {next, self()},
    fun() -> receive {report, Reporter, #{kept := Kept} = Report} -> {Kept, Report} after ?LATE_MS -> error(late) end end.

told(Reporter) -> element(1, (asked(Reporter))()).

ms(Fun) -> {Us, Is} = timer:tc(Fun), {Us div 1000, Is}.

what_is_new_is_told_once_and_soon(Config) ->
    atoll_cli_line:as_node(fun() ->
        {ok, Reporter} = atoll_view_reporter:start_link(?MODULE, proplists:get_value(options, Config)),
        %% Nothing is new for a second.
        {Empty, []} = ms(fun() -> told(Reporter) end),
        ?assert(Empty >= 950),
        [Reporter ! N || N <- [1, 2, 3]],
        ?assertEqual([1, 2, 3], told(Reporter)),
        %% Who waits already is told a moment after the first, with what comes meanwhile.
        Told = asked(Reporter),
        true = erlang:suspend_process(Reporter),
        [Reporter ! N || N <- [4, 5]],
        true = erlang:resume_process(Reporter),
        {Moment, {[4, 5], _}} = ms(Told),
        ?assert(Moment < 900),
        Reporter ! 6,
        ?assertEqual([6], told(Reporter)),
        ok = gen_server:stop(Reporter)
    end).

one_in_a_vm_of_its_own_goes_with_it(Config) ->
    Before = process_flag(trap_exit, true),
    Start = fun() -> {ok, Pid} = atoll_view_reporter_vm:start_link(#{reporter => ?MODULE, options => proplists:get_value(options, Config), called => "a reporter"}), Pid end,
    Gone = fun(Process) -> atoll_cli_os:await(fun() -> atoll_cluster_os:state(Process) =:= gone end, ?LATE_MS) end,
    Lost = fun(Pid) -> receive {'EXIT', Pid, Reason} -> Reason after ?LATE_MS -> error(late) end end,
    One = Start(),
    One ! order,
    {[order], #{os_pid := Text}} = (asked(One))(),
    ?assertNotEqual(os:getpid(), Text),
    {ok, Begun} = atoll_cluster_os:start_time(list_to_integer(Text)),
    ?assertError({erpc, noconnection}, atoll_view_reporter_vm:call(One, 'nobody@127.0.0.1', erlang, node, [], 5000)),
    ok = gen_server:stop(One, shutdown, ?LATE_MS),
    shutdown = Lost(One),
    ok = Gone({list_to_integer(Text), Begun}),
    Other = Start(),
    {[], #{os_pid := Killed}} = (asked(Other))(),
    _ = os:cmd("kill -9 " ++ Killed),
    {shutdown, lost} = Lost(Other),
    true = process_flag(trap_exit, Before).

one_that_cannot_begin_says_so(Config) ->
    #{way := Way} = Options = proplists:get_value(options, Config),
    None = filename:join(proplists:get_value(dir, Config), "none"),
    atoll_cli_line:as_node(fun() ->
        {error, {unable, Sentence}} = in_peace(fun() -> atoll_view_reporter:start_link(?MODULE, Options#{way := Way#{cookie_file => None}}) end),
        ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Sentence), <<" cannot be read: no such file or directory.">>))
    end).

in_peace(Fun) ->
    Before = process_flag(trap_exit, true),
    try Fun() after process_flag(trap_exit, Before) end.
