%% SPDX-License-Identifier: Apache-2.0
%% @doc A subscriber service in MySQL and in Mnesia, by how its emulator is started: the matrix of Dervishi's thesis, as much of it as
%% a quarter of an hour holds, and all of it of the size `whole'.
-module(atoll_experiment_subscribers).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-import(atoll_experiments_judge, [cell/1, number/1]).

-define(PAPER, "Dervishi (2012)").
-define(BENCH, "subscribers").
-define(STARTS, 6).
%% A factor takes six starts; one is to spare, for what others disturb.
-define(FACTOR_STARTS, 7).
%% Requests of MySQL have a tenth of the thesis' 500 operations.
-define(OPERATIONS, 50).
-define(LOW, 4).
-define(MNESIA_OPERATIONS, 500).
-define(MNESIA_RATE, 20).
%% What Mnesia of then had, and what is set here.
-define(DUMP_WRITES, [100, 50000]).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => subscribers,
        title => "Subscribers in MySQL and in Mnesia",
        question => "What do more schedulers, and their waiting, bring to a service that does nothing but input and output?",
        minutes => 15,
        whole => 180,
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
asks(#{size := Size}) ->
    Of = fun(Sweep, Starts) -> {bench, ?BENCH, #{sweep => Sweep, rounds => Starts, starts => Starts}} end,
    Both = #{operation => [write, read], operations => [?OPERATIONS], rows => [2000]},
    Every = atoll_bench_emulator:words(),
    {Stores, Some, Many, Rates, Access} = case Size of
        full -> {[mysql], [all, one], Every -- [one_dirty_io], [?LOW], [transaction, async_dirty]};
        whole -> {[mysql, mnesia], Every, Every, [1, ?LOW, 16, 32], [transaction, sync_transaction, async_dirty, sync_dirty]}
    end,
    [
        #{key => saturation, do => Of(Both#{store => Stores, rate => [0], seconds => [0.7], emulator => Some}, ?STARTS)},
        #{key => low, do => Of(Both#{store => [mysql], rate => Rates, seconds => [1.5], emulator => Many}, ?STARTS)},
        #{key => mnesia, do => Of(#{
            store => [mnesia], operation => [write, read], operations => [?MNESIA_OPERATIONS], rate => [?MNESIA_RATE], seconds => [1.5],
            access => Access, emulator => Some
        }, ?FACTOR_STARTS)},
        #{key => dumps, do => Of(#{
            store => [mnesia], operation => [write], operations => [?MNESIA_OPERATIONS], rate => [?MNESIA_RATE], seconds => [1.5],
            dump_writes => ?DUMP_WRITES, emulator => [all]
        }, ?STARTS)}
    ].

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{
            caption => [Store, io_lib:format(": the most requests of ~b operations in a second that were followed, and the fewest that were not (a mean of three times that at ~b a second, or requests that did not end):", [?OPERATIONS, ?LOW])],
            from => saturation,
            kind => counted,
            head => ["operation", "emulator", "followed, 1/s", "not followed, 1/s", "operations followed, 1/s", "the thesis, operations, 1/s"],
            rows => fun(Answer) -> rows(Answer, #{store => Key}, [followed_per_s, saturated_per_s, operations_per_s], There) end
        }
     || {Store, Key, There} <- [{"MySQL", mysql, fun saturated_there/1}, {"Mnesia", mnesia, fun(_) -> "–" end}]
    ] ++ [
        #{
            caption => io_lib:format("MySQL, by how many requests of ~b operations begin in a second:", [?OPERATIONS]),
            from => low,
            kind => counted,
            head => ["1/s", "operation", "emulator", "mean, ms", "standard deviation, ms", "processors of the service, %", "of MySQL, %", "the thesis"],
            rows => fun(Answer) -> rows_by(rate, Answer, [mean_ms, sd_ms, service_cpu, database_cpu], fun low_there/1) end
        },
        #{
            caption => io_lib:format("Mnesia, ~b requests of ~b operations in a second:", [?MNESIA_RATE, ?MNESIA_OPERATIONS]),
            from => mnesia,
            kind => counted,
            head => ["access", "operation", "emulator", "mean, ms", "standard deviation, ms", "processors of the service, %", "the thesis"],
            rows => fun(Answer) -> rows_by(access, Answer, [mean_ms, sd_ms, service_cpu], fun mnesia_there/1) end
        },
        #{
            caption => io_lib:format("Mnesia, ~b requests of ~b writes in a second, by how many writes its log takes until it is dumped:", [?MNESIA_RATE, ?MNESIA_OPERATIONS]),
            from => dumps,
            kind => counted,
            head => ["writes", "operation", "emulator", "mean, ms", "standard deviation, ms", "processors of the service, %"],
            rows => fun(Answer) -> [lists:droplast(Row) || Row <- rows_by(dump_writes, Answer, [mean_ms, sd_ms, service_cpu], fun(_) -> "" end)] end
        }
    ].

%% A row for each operation and emulator that was measured there.
rows({run, Run}, At, Metrics, There) ->
    [
        [atom_to_list(Operation), atom_to_list(Emulator)] ++ Cells ++ [There(At#{operation => Operation, emulator => Emulator})]
     || Operation <- [write, read],
        Emulator <- atoll_bench_emulator:words(),
        Cells <- [[cell(atoll_experiments_samples:by_start(Metric, At#{operation => Operation, emulator => Emulator}, Run)) || Metric <- Metrics]],
        lists:any(fun(Cell) -> Cell =/= number(none) end, Cells)
    ].

%% The same for each value of a parameter.
rows_by(Parameter, {run, #{header := #{<<"points">> := Points}}} = Answer, Metrics, There) ->
    [
        [value(Value) | Row]
     || Value <- lists:uniq([value_of(Parameter, Point) || Point <- Points]),
        Row <- rows(Answer, #{Parameter => Value}, Metrics, There)
    ].

value_of(Parameter, Point) ->
    case maps:get(atom_to_binary(Parameter), Point) of
        Word when is_binary(Word) -> binary_to_atom(Word);
        Number -> Number
    end.

value(Value) when is_atom(Value) -> atom_to_list(Value);
value(Value) -> number(Value).

saturated_there(#{operation := write, emulator := all}) -> "4,000 (R15B, 16 schedulers), and not 5,000";
saturated_there(#{operation := write, emulator := one}) -> "not 2,000 (without SMP)";
saturated_there(#{operation := read, emulator := all}) -> "6,000 (R15B, 16 schedulers), and not 8,000";
saturated_there(#{operation := read, emulator := one}) -> "not 4,000 (without SMP)";
saturated_there(_) -> "–".

low_there(#{rate := ?LOW, emulator := all}) -> "all processors of the machine in use (R15B)";
low_there(#{rate := ?LOW, emulator := one}) -> "half of that time, a tenth of the processors (R15B without SMP)";
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
            by => (schedulers(followed_per_s, "With all schedulers as many times as many requests were followed"))#{at => [#{store => mysql, operation => Operation}]},
            why => "Of two processors MySQL and the requesting node take their part, so a second scheduler has little to win."
        }
     || {Figure, Operation, Says} <- [
            {"5.1", write, "4,000 writes a second and not 5,000; without SMP not 2,000."},
            {"5.2", read, "6,000 reads a second and not 8,000; without SMP not 4,000."}
        ]
    ] ++ [
        #{
            figure => [?PAPER, ", Figure ", Figure],
            says => ["At a low load of ", What, " a request takes longer with SMP (twice as long in R15B)."],
            kind => {differs, more},
            from => low,
            by => (schedulers(mean_ms, "With all schedulers a request took as many times as long as with one"))#{at => low(Operation)}
        }
     || {Figure, Operation, What} <- [{"5.1", write, "writes"}, {"5.2", read, "reads"}]
    ] ++ [
        #{
            figure => [?PAPER, ", Table ", Table],
            says => ["Schedulers that wait busily use processors that a low load of ", What, " does not need."],
            kind => {differs, more},
            from => low,
            by => #{
                quantity => service_cpu,
                called => "As erl waits the service used as many times the processor time as without waiting",
                first => #{emulator => all},
                over => #{emulator => no_wait},
                at => low(Operation)
            }
        }
     || {Table, Operation, What} <- [{"5.1", write, "writes"}, {"5.2", read, "reads"}]
    ] ++ [
        #{
            figure => [?PAPER, ", chapter 6"],
            says => "Schedulers that wait busily for longer answer sooner.",
            kind => {differs, less},
            from => low,
            by => #{
                quantity => mean_ms,
                called => "With a very long wait a request took as many times as long as without waiting",
                first => #{emulator => long_wait},
                over => #{emulator => no_wait},
                at => low(write) ++ low(read)
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
                at => [#{store => mysql, emulator => all}]
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
            figure => [?PAPER, ", Figures 5.3 and 5.4"],
            says => "And its time varies less than with one scheduler.",
            kind => {differs, less},
            from => mnesia,
            by => (schedulers(sd_ms, "With all schedulers the deviation was as many times that with one"))#{at => [#{operation => write, access => transaction}]}
        },
        #{
            figure => [?PAPER, ", section 4.4"],
            says => "Mnesia does not keep up where its log is dumped every 100 writes; a higher threshold helps.",
            kind => {differs, more},
            from => dumps,
            by => #{
                quantity => mean_ms,
                called => "With a dump every 100 writes a request took as many times as long as with one every 50,000",
                first => #{dump_writes => hd(?DUMP_WRITES)},
                over => #{dump_writes => lists:last(?DUMP_WRITES)},
                at => [#{emulator => all}]
            }
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
            from => none,
            why => "Of both there is no emulator that still runs."
        },
        #{
            figure => [?PAPER, ", section 5.1"],
            says => "One scheduler is slightly slower than no SMP.",
            kind => counted,
            from => none,
            why => "Every emulator of today has SMP."
        },
        #{
            figure => [?PAPER, ", section 5.1.3"],
            says => "A pool of more connections than 50 is asked for no more.",
            kind => counted,
            from => none,
            why => "It takes what there is no time for here: `bin/atoll bench run subscribers --pool 50,150 --emulator all --starts 6`."
        }
    ].

%% Where the rate is low.
low(Operation) -> [#{rate => ?LOW, operation => Operation}].

schedulers(Quantity, Called) -> #{quantity => Quantity, called => Called, first => #{emulator => all}, over => #{emulator => one}}.
