%% @doc What runs in the VM of a job: some EUnit modules one after the other, or one suite
%% of Common Test. The results are surefire files, written by the hooks of OTP. The VM
%% ends with 0 if all went well, 1 if a test failed; with anything else it broke.
-module(atoll_test_vm).

-export([main/0]).

%% @doc The entry point. Plain arguments: eunit or ct, the directory for results, the
%% modules divided by commas, and a case or nothing.
-spec main() -> no_return().
main() ->
    Status =
        try init:get_plain_arguments() of
            ["eunit", Dir, Modules, Case] -> eunit(Dir, names(Modules), Case);
            ["ct", Dir, Suite, Case] -> ct(Dir, list_to_atom(Suite), Case)
        catch
            Class:Reason:Stack ->
                io:format(standard_error, "~p: ~p~n~p~n", [Class, Reason, Stack]),
                3
        end,
    %% At once: a port or a process that hangs does not keep a finished job.
    erlang:halt(Status).

names(Text) -> [list_to_atom(Name) || Name <- string:lexemes(Text, ",")].

eunit(Dir, Modules, Case) ->
    Options = [no_tty, {report, {eunit_surefire, [{dir, Dir}]}}],
    case [M || M <- Modules, eunit:test(chosen(M, Case), Options) =/= ok] of
        [] -> 0;
        _ -> 1
    end.

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

ct(Dir, Suite, Case) ->
    Options = [
        {dir, filename:dirname(code:which(Suite))},
        {auto_compile, false},
        {logdir, Dir},
        {suite, Suite},
        {ct_hooks, [{cth_surefire, [{path, filename:join(Dir, "surefire.xml")}]}]},
        {no_esc_chars, true}
        | cases(Suite, Case)
    ],
    case ct:run_test(Options) of
        {_Passed, 0, {_Skipped, 0}} -> 0;
        {_Passed, _Failed, {_Skipped, _AutoSkipped}} -> 1;
        {error, Reason} -> error(Reason)
    end.

cases(_Suite, "") ->
    [];
cases(Suite, Case) ->
    Name = list_to_atom(Case),
    case lists:member(Name, Suite:all()) of
        true -> [{testcase, Name}];
        false -> [{group, all}, {testcase, Name}]
    end.
