%% SPDX-License-Identifier: Apache-2.0
%% @doc A subscriber service in MySQL and in Mnesia, by how its emulator is started: the matrix of Dervishi's thesis, as much of it as
%% a quarter of an hour holds.
-module(atoll_experiment_subscribers).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-import(atoll_experiments_judge, [number/1]).

-define(PAPER, "Dervishi (2012)").
-define(BENCH, "subscribers").
-define(STARTS, 6).
-define(EMULATORS, [all, one, no_wait, long_wait]).
%% Requests of MySQL have a tenth of the thesis' 500 operations.
-define(OPERATIONS, 50).
-define(LOW, 4).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => subscribers,
        title => "Subscribers in MySQL and in Mnesia",
        question => "What do more schedulers, and their waiting, bring to a service that does nothing but input and output?",
        minutes => 11,
        cannot => "what more than two processors bring, of which the requesting node and MySQL have their part; the emulators of then (R12B, R15B), and one without SMP, "
            "which there is none of any longer: one scheduler stands for it, of which the thesis says that it was slightly slower. The driver of then is not maintained, and poolboy with p1_mysql stands in its place. "
            "MySQL is MariaDB 10.11, which has each commit on the disc."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    Small = #{operations => [5], seconds => [0.2], rows => [100], operation => [read], pool => [4], emulator => [all, one]},
    [
        #{key => low, do => {bench, ?BENCH, #{sweep => Small#{store => [mnesia], rate => [?LOW]}, rounds => 1, starts => 1}}},
        #{key => saturation, do => {bench, ?BENCH, #{sweep => Small#{store => [mnesia], rate => [0]}, rounds => 1, starts => 1}}},
        #{key => mnesia, do => {bench, ?BENCH, #{sweep => Small#{store => [mnesia], rate => [20], access => [transaction, async_dirty]}, rounds => 1, starts => 1}}}
    ];
asks(#{size := full}) ->
    Of = fun(Sweep) -> {bench, ?BENCH, #{sweep => Sweep, rounds => ?STARTS, starts => ?STARTS}} end,
    MySql = #{store => [mysql], operation => [write, read], operations => [?OPERATIONS], rows => [2000]},
    [
        #{key => saturation, do => Of(MySql#{rate => [0], seconds => [0.7], emulator => [all, one]})},
        #{key => low, do => Of(MySql#{rate => [?LOW], seconds => [1.5], emulator => ?EMULATORS})},
        #{key => mnesia, do => Of(#{
            store => [mnesia], operation => [write, read], operations => [500], rate => [20], seconds => [1.5],
            access => [transaction, async_dirty], emulator => [all, one]
        })}
    ].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{
            caption => io_lib:format("MySQL: the most requests of ~b operations in a second that were followed, and the fewest that were not (a mean of three times that at ~b a second, or requests that did not end):", [?OPERATIONS, ?LOW]),
            from => saturation,
            kind => counted,
            head => ["operation", "emulator", "followed, 1/s", "not followed, 1/s", "operations followed, 1/s", "the thesis, operations, 1/s"],
            rows => fun(Answer) -> rows(Answer, [followed_per_s, saturated_per_s, operations_per_s], fun saturated_there/1) end
        },
        #{
            caption => io_lib:format("MySQL at a low load, ~b requests of ~b operations in a second:", [?LOW, ?OPERATIONS]),
            from => low,
            kind => counted,
            head => ["operation", "emulator", "mean, ms", "standard deviation, ms", "processors of the service, %", "of MySQL, %", "the thesis"],
            rows => fun(Answer) -> rows(Answer, [mean_ms, sd_ms, service_cpu, database_cpu], fun low_there/1) end
        },
        #{
            caption => "Mnesia, 20 requests of 500 operations in a second:",
            from => mnesia,
            kind => counted,
            head => ["access", "operation", "emulator", "mean, ms", "standard deviation, ms", "processors of the service, %", "the thesis"],
            rows => fun(Answer) ->
                lists:append([
                    [[atom_to_list(Access) | Row] || Row <- rows(Answer, #{access => Access}, [mean_ms, sd_ms, service_cpu], fun(Point) -> mnesia_there(Point#{access => Access}) end)]
                 || Access <- [transaction, async_dirty]
                ])
            end
        }
    ].

rows(Answer, Metrics, There) -> rows(Answer, #{}, Metrics, There).

rows({run, Run}, At, Metrics, There) ->
    [
        [atom_to_list(Operation), atom_to_list(Emulator)] ++ Cells ++ [There(#{operation => Operation, emulator => Emulator})]
     || Operation <- [write, read],
        Emulator <- ?EMULATORS,
        Cells <- [[cell(atoll_experiments_samples:by_start(Metric, At#{operation => Operation, emulator => Emulator}, Run)) || Metric <- Metrics]],
        lists:any(fun(Cell) -> Cell =/= number(none) end, Cells)
    ].

cell([]) ->
    number(none);
cell(Samples) ->
    {Median, Low, High} = atoll_experiments_judge:interval([V || {_, V} <- Samples]),
    [number(Median), " [", number(Low), "–", number(High), "]"].

saturated_there(#{operation := write, emulator := all}) -> "4,000 (R15B, 16 schedulers), and not 5,000";
saturated_there(#{operation := write, emulator := one}) -> "not 2,000 (without SMP)";
saturated_there(#{operation := read, emulator := all}) -> "6,000 (R15B, 16 schedulers), and not 8,000";
saturated_there(#{operation := read, emulator := one}) -> "not 4,000 (without SMP)";
saturated_there(_) -> "–".

low_there(#{emulator := all}) -> "all processors of the machine in use (R15B)";
low_there(#{emulator := one}) -> "half of that time, a tenth of the processors (R15B without SMP)";
low_there(_) -> "–".

mnesia_there(#{access := transaction, operation := write, emulator := all}) -> "36 ms (R15B)";
mnesia_there(#{access := transaction, operation := write, emulator := one}) -> "slower, and ever more so";
mnesia_there(#{access := async_dirty, operation := read}) -> "a 20th of a transaction";
mnesia_there(_) -> "–".

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    [
        #{
            figure => [?PAPER, ", Figure ", Figure],
            says => ["With more schedulers MySQL can be asked for more: ", Says],
            kind => {differs, more},
            from => saturation,
            by => (schedulers(followed_per_s, "With all schedulers as many times as many requests were followed"))#{at => [#{operation => Operation}]},
            why => "Of two processors MySQL and the requesting node take their part, so a second scheduler has little to win."
        }
     || {Figure, Operation, Says} <- [
            {"5.1", write, "4,000 writes a second and not 5,000; without SMP not 2,000."},
            {"5.2", read, "6,000 reads a second and not 8,000; without SMP not 4,000."}
        ]
    ] ++ [
        #{
            figure => [?PAPER, ", Figures 5.1 and 5.2"],
            says => "At a low load a request takes longer with SMP (twice as long in R15B).",
            kind => {differs, more},
            from => low,
            by => (schedulers(mean_ms, "With all schedulers a request took as many times as long as with one"))#{at => [#{operation => Operation} || Operation <- [write, read]]}
        },
        #{
            figure => [?PAPER, ", Tables 5.1 and 5.2"],
            says => "Schedulers that wait busily use processors that the load does not need.",
            kind => {differs, more},
            from => low,
            by => #{
                quantity => service_cpu,
                called => "As erl waits the service used as many times the processor time as without waiting",
                first => #{emulator => all},
                over => #{emulator => no_wait},
                at => [#{operation => Operation} || Operation <- [write, read]]
            }
        },
        #{
            figure => [?PAPER, ", section 5.1.2"],
            says => "It can be asked for more reads than writes.",
            kind => {differs, more},
            from => saturation,
            by => #{
                quantity => followed_per_s,
                called => "Of reads as many times as many requests were followed",
                first => #{operation => read},
                over => #{operation => write},
                at => [#{emulator => all}]
            }
        },
        #{
            figure => [?PAPER, ", Figures 5.3 and 5.4"],
            says => "In Mnesia a request is faster with SMP, at 10,000 writes a second.",
            kind => {differs, less},
            from => mnesia,
            by => (schedulers(mean_ms, "With all schedulers a request took as many times as long as with one"))#{at => [#{operation => write, access => transaction}]}
        },
        #{
            figure => [?PAPER, ", section 5.2"],
            says => "Dirty reads of Mnesia take a 20th of the time of transactions.",
            kind => {near, 20, 0.5},
            from => mnesia,
            by => #{
                quantity => mean_ms,
                called => "With transactions a request took as many times as long",
                first => #{access => transaction},
                over => #{access => async_dirty},
                at => [#{operation => read, emulator => all}]
            },
            why => "The time of a request holds its way to the service and back, which is the same for both."
        },
        #{
            figure => [?PAPER, ", section 5.1"],
            says => "The newer emulator (R15B) is slower at a low load and can be asked for more than R12B.",
            kind => counted,
            from => none
        }
    ].

schedulers(Quantity, Called) -> #{quantity => Quantity, called => Called, first => #{emulator => all}, over => #{emulator => one}}.
