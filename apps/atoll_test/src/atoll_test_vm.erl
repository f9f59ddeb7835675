%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs in the VM of a job: some EUnit modules one after the other, or some suites
%% of Common Test. The results are surefire files, written by the hooks of OTP. Beside them
%% stands the file `ended', with a line for each module that came to its end, or for all suites:
%% `{Modules, Passed, Cancelled}', as the runner itself has counted, with the reasons as text: a term
%% may hold a fun, which cannot be read again. So a module that ends the VM, or of which nothing has
%% run, is missed.
-module(atoll_test_vm).

-export([main/0]).
%% For spawn_monitor/3.
-export([run_test/1]).

%% @doc The entry point. Plain arguments: eunit or ct, the directory for results, the
%% modules divided by commas, and a case or nothing.
-spec main() -> no_return().
main() ->
    Status =
        try init:get_plain_arguments() of
            ["eunit", Dir, Modules, Case] -> eunit(Dir, names(Modules), Case);
            ["ct", Dir, Suites, Case] -> ct(Dir, names(Suites), Case)
        catch
            Class:Reason:Stack ->
                io:format(standard_error, "~p: ~p~n~p~n", [Class, Reason, Stack]),
                3
        end,
    %% At once: a port or a process that hangs does not keep a finished job.
    erlang:halt(Status).

names(Text) -> [list_to_atom(Name) || Name <- string:lexemes(Text, ",")].

eunit(Dir, Modules, Case) ->
    case [M || M <- Modules, one(Dir, M, Case) =/= ok] of
        [] -> 0;
        _ -> 1
    end.

one(Dir, Module, Case) ->
    Reports = [{eunit_surefire, [{dir, Dir}]}, {atoll_test_listener, [{to, self()}, {module, Module}, {dir, Dir}]}],
    Result = eunit:test(chosen(Module, Case), [no_tty | [{report, Report} || Report <- Reports]]),
    receive
        {heard, Module, Passed, Cancelled} -> ended(Dir, {[Module], Passed, [lists:flatten(io_lib:format("~0tp", [Why])) || Why <- Cancelled]})
    end,
    Result.

ended(Dir, Line) ->
    ok = file:write_file(filename:join(Dir, "ended"), io_lib:format("~0p.~n", [Line]), [append]).

chosen(Module, "") ->
    Module;
chosen(Module, Case) ->
    Function = list_to_atom(Case),
    Test =
        case lists:suffix("_test_", Case) of
            true -> {generator, Module, Function};
            false -> {Module, Function}
        end,
    %% The file is named by the group.
    {atom_to_list(Module), [Test]}.

ct(Dir, Suites, Case) ->
    Surefire = filename:join(Dir, "surefire.xml"),
    Options = [
        {dir, filename:dirname(code:which(hd(Suites)))},
        {auto_compile, false},
        {logdir, Dir},
        {suite, Suites},
        {event_handler, {atoll_test_running, Dir}},
        {ct_hooks, [{cth_surefire, [{path, Surefire}]}, {atoll_test_written, {?MODULE, Surefire}, ctlast}]},
        {no_esc_chars, true}
        | cases(Suites, Case)
    ],
    %% Common Test writes its options to a file and reads them again: no pid stands there.
    true = register(?MODULE, self()),
    {_, Ref} = spawn_monitor(?MODULE, run_test, [Options]),
    receive
        %% Of what is green nobody reads the pages that Common Test makes at its end.
        {written, {Passed, 0, 0}} ->
            ok = ended(Dir, {Suites, Passed, []}),
            0;
        {'DOWN', Ref, process, _, {ran, {Passed, Failed, {_Skipped, Missed}}}} ->
            ok = ended(Dir, {Suites, Passed, []}),
            case Failed + Missed of
                0 -> 0;
                _ -> 1
            end;
        {'DOWN', Ref, process, _, Reason} ->
            error(Reason)
    end.

%% @private
-spec run_test([{atom(), term()}]) -> no_return().
run_test(Options) -> exit({ran, ct:run_test(Options)}).

%% A case may stand in several groups: `outer.inner:case' is that of one.
cases(_Suites, "") ->
    [];
cases([Suite], Text) ->
    case string:split(Text, ":") of
        [Groups, Case] ->
            [{group, [[list_to_atom(G) || G <- string:lexemes(Groups, ".")]]}, {testcase, list_to_atom(Case)}];
        [Case] ->
            Name = list_to_atom(Case),
            [{group, all} || not lists:member(Name, Suite:all())] ++ [{testcase, Name}]
    end.
