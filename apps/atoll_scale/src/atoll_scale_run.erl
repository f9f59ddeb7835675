%% SPDX-License-Identifier: Apache-2.0
%% @doc One run: the service under its load at a level, with what was measured meanwhile and whether the run has
%% passed. What a command prints is read here; `judged/2', `figures/1' and `failed/2' are pure.
-module(atoll_scale_run).

-export([check/1, run/3, judged/2, figures/1, failed/2]).

-export_type([run/0]).

%% The process of a load ends with what it has to tell, by design.
-dialyzer({nowarn_function, [loaded/4, apart/3]}).

-type run() :: #{
    level := pos_integer(),
    passed := boolean(),
    %% Why it has failed.
    why := [binary()],
    load := atoll_scale_driver:load(),
    machine := atoll_scale_meter:seen(),
    node := atoll_scale_node:seen() | none
}.

%% How much longer than it was told a load may take.
-define(LONGER, 3).
-define(MORE_MS, 60000).

-define(FIGURES, [requests, failures, refused, p50_ms, p99_ms, per_second]).

%% @doc What can be known to be wrong with the load of a description before anything is started.
-spec check(atoll_scale_plan:plan()) -> ok | {error, unicode:chardata()}.
check(#{load := {driver, Module, Options}, dir := Dir} = Plan) ->
    _ = [true = code:add_pathz(filename:join(Dir, Code)) || #{code := Code} <- [Plan]],
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case erlang:function_exported(Module, check, 1) andalso erlang:function_exported(Module, run, 3) of
                true -> Module:check(Options);
                false -> {error, ["the module ", atom_to_list(Module), " of the key load has not the functions check/1 and run/3 of a driver"]}
            end;
        {error, _} ->
            {error, ["the module ", atom_to_list(Module), " of the key load is not there; the key code names the folder of its beam file"]}
    end;
check(#{load := {tsung, _}} = Plan) ->
    atoll_scale_tsung:check(Plan);
check(#{load := {command, _}}) ->
    ok.

%% @doc Runs a service that was started. An error is of the service before the load, or of the load itself, and says nothing of the level.
-spec run(pos_integer(), pos_integer(), atoll_scale_system:system()) -> {ok, run()} | {error, unicode:chardata()}.
run(Level, Seconds, System) ->
    case atoll_scale_system:ready(System) of
        ok -> measured(Level, Seconds, System);
        {error, _} = Error -> Error
    end.

measured(Level, Seconds, System) ->
    #{load := Load} = Plan = atoll_scale_system:plan(System),
    Meter = atoll_scale_meter:start(atoll_scale_system:pids(System)),
    Asking = [atoll_scale_node:start(Node) || #{node := Node} <- [Plan]],
    Loaded = loaded(Load, Level, Seconds, System),
    Machine0 = atoll_scale_meter:stop(Meter),
    Node = case [atoll_scale_node:stop(Is) || Is <- Asking] of [Seen] -> Seen; [] -> none end,
    Machine = case atoll_scale_system:ended(System) of {true, Said} -> Machine0#{ended => Said}; false -> Machine0 end,
    case Loaded of
        {ok, Told} ->
            Whole = maps:merge(#{reasons => #{}}, Told),
            Why = judged(Plan, Whole) ++ [<<"the service ended">> || is_map_key(ended, Machine)],
            {ok, #{level => Level, passed => Why =:= [], why => Why, load => Whole, machine => Machine, node => Node}};
        {error, _} = Error ->
            Error
    end.

loaded({command, Command}, Level, Seconds, System) ->
    #{dir := Dir} = atoll_scale_system:plan(System),
    Values = (atoll_scale_system:settings(System))#{level => Level, seconds => Seconds},
    case atoll_scale_programs:run(atoll_scale_plan:filled(Command, Values), Dir, ms(Seconds), atoll_scale_system:session(System)) of
        {0, Said} -> read(Said);
        {late, _} -> {ok, none_of("the command of the load took too long")};
        %% The shell's own status.
        {127, Said} -> {error, ["the command of the load is not there: ", last_line(Said)]};
        {Status, Said} -> {ok, failed(Status, Said)}
    end;
loaded({tsung, _}, Level, Seconds, System) ->
    apart(fun() -> atoll_scale_tsung:run(Level, Seconds, System) end, ms(Seconds), "Tsung");
loaded({driver, Module, Options}, Level, Seconds, _) ->
    apart(fun() -> Module:run(Level, Seconds, Options) end, ms(Seconds), ["the driver ", atom_to_list(Module)]).

apart(Fun, Ms, Called) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({told, Fun()}) end),
    receive
        {'DOWN', Ref, process, Pid, {told, Told}} -> Told;
        {'DOWN', Ref, process, Pid, Reason} -> {error, io_lib:format("~ts has crashed: ~0tP", [Called, Reason, 20])}
    after Ms ->
        true = demonitor(Ref, [flush]),
        true = exit(Pid, kill),
        {ok, none_of([Called, " took too long"])}
    end.

ms(Seconds) -> ?LONGER * 1000 * Seconds + ?MORE_MS.

%% @doc What came of a command that has ended so, and whether it has said that it had no file left.
-spec failed(Status :: pos_integer(), Said :: binary()) -> atoll_scale_driver:load().
failed(Status, Said) ->
    #{reasons := Reasons} = Load = none_of(io_lib:format("the command of the load ended with ~b: ~ts", [Status, last_line(Said)])),
    case re:run(Said, "too many open files|emfile", [caseless, {capture, none}]) of
        match -> Load#{reasons := Reasons#{<<"emfile">> => 1}};
        nomatch -> Load
    end.

%% One request, which is the load itself.
none_of(Why) -> #{requests => 1, failures => 1, reasons => #{unicode:characters_to_binary(Why) => 1}}.

last_line(Said) -> lists:last([<<"it said nothing">> | [Line || Line <- string:lexemes(Said, "\r\n"), string:trim(Line) =/= <<>>]]).

read(Said) ->
    case figures(Said) of
        #{requests := _, failures := _} = Load -> {ok, Load};
        #{} -> {error, ["the command of the load must print its requests and its failures, as ab does or as \"requests 100\" and \"failures 0\"; it said: ", last_line(Said)]}
    end.

%% @doc The figures in what a command printed: lines of a key and a number, or those of ab.
-spec figures(binary()) -> #{atom() => number()}.
figures(Said) ->
    Own = [{Key, [atom_to_list(Key), "\\s*[ =:]"]} || Key <- ?FIGURES],
    Ab = [
        {requests, "Complete requests:"}, {failures, "Failed requests:"}, {per_second, "Requests per second:"},
        {p50_ms, " +50%"}, {p99_ms, " +99%"}, {other_status, "Non-2xx responses:"}
    ],
    Found = maps:from_list([{Key, N} || {Key, Line} <- Ab ++ Own, {ok, N} <- [figure(Line, Said)]]),
    %% To ab an answer of any status is one.
    case maps:take(other_status, Found) of
        {N, #{failures := Failures} = Others} -> Others#{failures := Failures + N};
        _ -> Found
    end.

figure(Line, Said) ->
    case re:run(Said, ["^", Line, "\\s*([0-9]+(?:\\.[0-9]+)?)\\b"], [multiline, {capture, [1], list}]) of
        {match, [Text]} -> atoll_cli_read:to_number(Text);
        nomatch -> error
    end.

%% @doc Why a load counts as failed, by the bounds of its description.
-spec judged(atoll_scale_plan:plan(), atoll_scale_driver:load()) -> [binary()].
judged(#{failures := Share} = Plan, #{requests := Requests, failures := Failures} = Load) ->
    [<<"nothing was requested">> || Requests =:= 0] ++
        [said("~ts of the requests failed~ts", [atoll_cli_table:percent(Failures / Requests), reasons(Load)]) || Requests > 0, Failures / Requests > Share] ++
        [said("99 % of the requests took up to ~ts ms", [atoll_cli_table:decimal(Ms)]) || #{p99_ms := Bound} <- [Plan], #{p99_ms := Ms} <- [Load], Ms > Bound] ++
        [said("~ts connections were refused", [atoll_cli_table:count(Refused)]) || #{refused := Bound} <- [Plan], #{refused := Refused} <- [Load], Refused > Bound].

said(Format, Args) -> unicode:characters_to_binary(io_lib:format(Format, Args)).

%% The most frequent one.
reasons(#{reasons := Reasons}) when map_size(Reasons) > 0 ->
    {N, Reason} = lists:max([{N, Reason} || {Reason, N} <- maps:to_list(Reasons)]),
    [" (", atoll_cli_table:count(N), $\s, Reason, $)];
reasons(_) ->
    "".
