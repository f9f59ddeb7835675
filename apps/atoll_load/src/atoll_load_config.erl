%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of a load: Basho Bench's keys, as Erlang terms in a file.
%% ```
%% {mode, max}.
%% {duration, 1}.
%% {concurrent, 8}.
%% {driver, ring}.
%% {key_generator, {int_to_bin_bigendian, {uniform_int, 10000}}}.
%% {value_generator, {fixed_bin, 1000}}.
%% {operations, [{get, 4}, {put, 1}]}.
%% '''
%% Each key is checked, with its line. What is missing has the default that stands with its rule. One key is ours, `offered_load': so many operations begin
%% in a second, of all workers together, whatever becomes of the others, and their time counts from when they were to begin. A driver may have
%% further keys ({@link atoll_load_driver}).
-module(atoll_load_config).

-export([read/1, check/1, format_error/1]).

-export_type([config/0, error/0]).

-type config() :: #{
    %% One operation of a worker begins when its last has ended, or after a pause: then a worker begins so many in a second.
    mode := max | {rate, number()},
    %% Operations in a second of all workers, whatever becomes of them; or none, and the mode says it.
    offered_load := pos_integer() | closed,
    %% Minutes.
    duration := number(),
    concurrent := pos_integer(),
    driver := module(),
    operations := [{Label :: atom(), Operation :: term(), Weight :: pos_integer()}, ...],
    key_generator := term(),
    value_generator := term(),
    %% Seconds.
    report_interval := number(),
    rng_seed := now | {integer(), integer(), integer()},
    code_paths := [file:filename()],
    %% That the first error ends it.
    shutdown_on_error := boolean(),
    pre_hook := none | {module(), Function :: atom()},
    post_hook := none | {module(), Function :: atom()},
    %% Keys of the driver.
    settings := #{atom() => term()}
}.

-type error() :: {file:filename_all() | none, debench_terms:error() | {line, pos_integer(), unicode:chardata()} | {missing, atom()} | {intervals, pos_integer()}}.

-define(MOST_INTERVALS, 10_000).
-define(MOST_MINUTES, 1440).

%% @doc Reads and checks a file.
-spec read(file:filename_all()) -> {ok, config()} | {error, error()}.
read(File) ->
    case debench_terms:read(File) of
        {ok, Terms} ->
            case check(Terms) of
                {ok, Config} -> {ok, Config};
                {error, {none, Reason}} -> {error, {File, Reason}}
            end;
        {error, Reason} -> {error, {File, Reason}}
    end.

%% @doc Checks terms that were read, each with its line. The driver comes first: which further keys there are hangs on it.
-spec check([debench_terms:placed()]) -> {ok, config()} | {error, error()}.
check(Terms) ->
    Paths = [Path || {_, {code_paths, All}} <- Terms, is_list(All), Path <- All, is_list(Path)],
    ok = code:add_pathsz(Paths),
    case [Placed || {_, {driver, _}} = Placed <- Terms] of
        [{Line, {driver, Name}} | _] ->
            case atoll_load_driver:find(Name) of
                {ok, Driver} -> check(Terms, Driver, #{});
                {error, Why} -> bad(Line, ["driver ", Why])
            end;
        [] -> {error, {none, {missing, driver}}}
    end.

check([], Driver, Given) ->
    Rules = rules(),
    Further = atoll_load_driver:rules(Driver),
    case [Key || {Key, required, _, _} <- Rules, not is_map_key(Key, Given)] of
        [Key | _] -> {error, {none, {missing, Key}}};
        [] ->
            Full = maps:merge(maps:from_list([{Key, Default} || {Key, Default, _, _} <- Rules, Default =/= required]), maps:with([Key || {Key, _, _, _} <- Rules], Given)),
            Settings = maps:merge(maps:from_list([{Key, Default} || {Key, Default, _, _} <- Further]), maps:with([Key || {Key, _, _, _} <- Further], Given)),
            few_intervals(Full#{driver => Driver, settings => Settings})
    end;
check([{_, {driver, _}} | Terms], Driver, Given) when not is_map_key(driver, Given) ->
    check(Terms, Driver, Given#{driver => Driver});
check([{Line, {Key, Value}} | Terms], Driver, Given) ->
    case lists:keyfind(Key, 1, rules() ++ atoll_load_driver:rules(Driver)) of
        _ when is_map_key(Key, Given) -> bad(Line, io_lib:format("~ts stands there twice", [Key]));
        false -> bad(Line, io_lib:format("there is no key ~tp for this driver", [Key]));
        {Key, _, Read, Must} ->
            case Read(Value) of
                {ok, Is} -> check(Terms, Driver, Given#{Key => Is});
                {error, Why} -> bad(Line, io_lib:format("~ts ~ts", [Key, Why]));
                error -> bad(Line, io_lib:format("~ts must be ~ts, not ~0tP", [Key, Must, Value, 12]))
            end
    end;
check([{Line, Term} | _], _, _) ->
    bad(Line, io_lib:format("a term must be {Key, Value}, not ~0tP", [Term, 12])).

few_intervals(#{duration := Minutes, report_interval := Seconds} = Config) ->
    case 60 * Minutes / Seconds =< ?MOST_INTERVALS of
        true -> {ok, Config};
        false -> {error, {none, {intervals, ?MOST_INTERVALS}}}
    end.

bad(Line, What) -> {error, {none, {line, Line, What}}}.

rules() ->
    Kept = fun(Test) -> fun(Value) -> case Test(Value) of true -> {ok, Value}; false -> error end end end,
    Checked = fun(Check) -> fun(Value) -> case Check(Value) of ok -> {ok, Value}; {error, _} = Error -> Error end end end,
    Number = fun(Most) -> Kept(fun(N) -> is_number(N) andalso N > 0 andalso N =< Most end) end,
    Whole = fun(Most) -> Kept(fun(N) -> is_integer(N) andalso N > 0 andalso N =< Most end) end,
    Hook = Kept(fun({M, F}) -> is_atom(M) andalso is_atom(F); (_) -> false end),
    [
        {mode, max, Kept(fun(max) -> true; ({rate, max}) -> false; ({rate, N}) -> is_number(N) andalso N > 0; (_) -> false end), "max, or {rate, N} with operations in a second of each worker"},
        {offered_load, closed, fun(closed) -> {ok, closed}; (N) -> (Whole(1_000_000))(N) end, "a whole number of operations a second from 1 to 1000000, or closed"},
        {duration, 5, Number(?MOST_MINUTES), "a number of minutes above 0, at most a day"},
        {concurrent, 3, Whole(10_000), "a whole number from 1 to 10000"},
        {driver, required, Kept(fun is_atom/1), "a driver"},
        {operations, [{get, get, 4}, {put, put, 4}, {delete, delete, 1}], fun operations/1, "a list of {Operation, Weight} or {Label, Operation, Weight}"},
        {key_generator, {uniform_int, 100_000}, Checked(fun atoll_load_keys:check_key/1), "a generator"},
        {value_generator, {fixed_bin, 100}, Checked(fun atoll_load_keys:check_value/1), "a generator"},
        {report_interval, 10, Number(86_400), "a number of seconds above 0"},
        {rng_seed, {42, 23, 12}, Kept(fun(now) -> true; ({A, B, C}) -> is_integer(A) andalso is_integer(B) andalso is_integer(C); (_) -> false end), "now, or three whole numbers"},
        {code_paths, [], Kept(fun(L) -> is_list(L) andalso lists:all(fun io_lib:printable_unicode_list/1, L) end), "a list of folders"},
        {shutdown_on_error, false, Kept(fun is_boolean/1), "true or false"},
        {pre_hook, none, Hook, "{Module, Function}"},
        {post_hook, none, Hook, "{Module, Function}"}
    ].

operations([_ | _] = List) ->
    Full = [case One of {Operation, Weight} -> {label(Operation), Operation, Weight}; _ -> One end || One <- List],
    case [One || One <- Full, not is_operation(One)] of
        [] ->
            Labels = [Label || {Label, _, _} <- Full],
            case Labels -- lists:usort(Labels) of
                [] -> {ok, Full};
                [Twice | _] -> {error, io_lib:format("has the label ~ts twice", [Twice])}
            end;
        [Bad | _] -> {error, io_lib:format("has ~0tP, which is no operation with a weight above 0", [Bad, 9])}
    end;
operations(_) -> error.

label(Operation) when is_tuple(Operation), tuple_size(Operation) > 0 -> element(1, Operation);
label(Operation) -> Operation.

%% A label is part of a file's name.
is_operation({Label, _, Weight}) ->
    is_atom(Label) andalso is_integer(Weight) andalso Weight > 0 andalso Weight =< 10_000 andalso
        re:run(atom_to_list(Label), "^[a-zA-Z0-9_]{1,60}$", [dollar_endonly, {capture, none}]) =:= match;
is_operation(_) -> false.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({none, Reason}) -> reason(Reason);
format_error({File, Reason}) -> [File, ": ", reason(Reason)].

reason({missing, Key}) -> io_lib:format("it does not say which ~ts there is", [Key]);
reason({intervals, Most}) -> io_lib:format("its duration has more than ~b intervals of its report_interval", [Most]);
reason(Reason) -> debench_terms:format_error(Reason).
