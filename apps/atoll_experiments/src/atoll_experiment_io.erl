%% SPDX-License-Identifier: Apache-2.0
%% @doc What one emulator gets done of input and output: where Dervishi's thesis looked for what its service could not pass, measured
%% by itself and without a database.
-module(atoll_experiment_io).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-import(atoll_experiments_judge, [cell/1]).

-define(PAPER, "Dervishi (2012)").
-define(BENCH, "io").
-define(STARTS, 6).
-define(MANY, 8).
%% What goes through a process beside what does not, and Mnesia.
-define(KINDS, [file, file_raw, file_info, prim_file_info, send_one, send, disk_log, mnesia_dump, mnesia_transaction]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => io,
        title => "Input and output of one emulator",
        question => "What is done one at a time, however many processes and schedulers there are?",
        minutes => 3,
        cannot => "what more than two processors bring; the emulators of then, of which one global poll set was the narrowest place; asynchronous threads (`+A`), which files and "
            "sockets have not used since OTP 21; and what a disc takes: what is written is in the system's memory first."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := Size}) ->
    {Starts, Ms, Kinds} = case Size of small -> {1, 20, [file_info, prim_file_info, send_one, send]}; full -> {?STARTS, 200, ?KINDS} end,
    Of = fun(Sweep) -> {bench, ?BENCH, #{sweep => Sweep#{ms => [Ms], size => [256]}, rounds => Starts, starts => Starts}} end,
    [
        #{key => schedulers, do => Of(#{kind => [accept, send], callers => [?MANY], emulator => [all, one]})},
        #{key => callers, do => Of(#{kind => Kinds, callers => [1, ?MANY], emulator => [all]})}
    ].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{
            caption => io_lib:format("Done in a second by one process, and by ~b together:", [?MANY]),
            from => callers,
            kind => counted,
            head => ["kind", "one", io_lib:format("~b", [?MANY]), "times as many"],
            rows => fun(Answer) -> rows(Answer, #{callers => ?MANY}, #{callers => 1}) end
        },
        #{
            caption => io_lib:format("Done in a second by ~b processes, with one scheduler and as `erl` starts it:", [?MANY]),
            from => schedulers,
            kind => counted,
            head => ["kind", "one scheduler", "all", "times as many"],
            rows => fun(Answer) -> rows(Answer, #{emulator => all}, #{emulator => one}) end
        }
    ].

%% Of each kind both, and how many times as many in the same start.
rows({run, Run}, More, Fewer) ->
    [
        [atom_to_list(Kind) | [cell(Samples) || Samples <- [Few, Many, Of({times, per_s, Fewer}, More)]]]
     || Kind <- [accept | ?KINDS],
        Of <- [fun(Quantity, At) -> atoll_experiments_samples:by_start(Quantity, At#{kind => Kind}, Run) end],
        [_ | _] = Few <- [Of(per_s, Fewer)],
        [_ | _] = Many <- [Of(per_s, More)]
    ].

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    [
        #{
            figure => [?PAPER, ", section 5.1.3"],
            says => "One scheduler at a time does input and output, since there is one poll set: more schedulers get no more of it done.",
            kind => {at_most, 1.1},
            from => schedulers,
            by => #{
                quantity => per_s,
                called => "With all schedulers as many times as much was done as with one",
                first => #{emulator => all},
                over => #{emulator => one},
                at => [#{kind => Kind} || Kind <- [accept, send]]
            },
            why => "Since OTP 21 there are poll sets and threads for them apart from the schedulers. Both ends of a connection are in this emulator."
        },
        #{
            figure => [?PAPER, ", chapter 6"],
            says => "Asynchronous threads (+A) are to be considered for local files.",
            kind => counted,
            from => none,
            why => "Files have had dirty schedulers in their place since OTP 21."
        }
    ] ++ [
        #{
            figure => none,
            says => Says,
            kind => {differs, less},
            from => callers,
            by => #{
                quantity => per_s,
                called => io_lib:format("~b processes got as many times as much done", [?MANY]),
                first => #{kind => Through},
                over => #{kind => Straight},
                at => [#{callers => ?MANY}]
            }
        }
     || {Through, Straight, Says} <- [
            {file_info, prim_file_info, "The file server is one process, so less is done over it than without it."},
            {file, file_raw, "The same of a file that is not opened with `raw`: a process stands between."},
            {send_one, send, "Over one connection fewer are answered than over one for each."}
        ]
    ].
