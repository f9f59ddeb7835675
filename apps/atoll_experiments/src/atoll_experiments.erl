%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs experiments one after the other, keeps what they measured, and writes the page.
%%
%% Each ask runs in a process of its own, which owns all that it starts: what does not end in
%% the time of its experiment is ended, and its nodes with it. An ask that fails is a result too;
%% the others go on. Whatever ends this program ends the nodes (see atoll_cluster); results of
%% what was over are left in the folder.
%%
%% The folder has a file for each ask (that of a run, or rows as JSON), the page, `experiments.md',
%% and `run.json': of each experiment what was really run, with its parameters, on which machine,
%% from which commit, when, how long, what failed, and how many rounds were disturbed. The page is
%% made of these files alone, whatever a run of today would do.
-module(atoll_experiments).

-export([all/0, names/0, select/1, minutes/2, asks/2, check/2, run/2, draw/1, draw/2, format_error/1]).

-export_type([options/0, done/0, error/0]).

-type options() :: #{
    dir := file:filename_all(),
    context := atoll_experiment:context(),
    %% Told what is being done.
    say => fun((unicode:chardata()) -> _)
}.

%% Asks that failed or were cut short; and of the paper's statements how many were the same, not
%% so here, not shown, the same in simulation, and by arithmetic.
-type done() :: #{
    page := file:filename_all(),
    %% The files of runs.
    runs := [file:filename_all()],
    experiments := non_neg_integer(),
    seconds := float(),
    failed := non_neg_integer(),
    same := non_neg_integer(),
    not_so := non_neg_integer(),
    not_shown := non_neg_integer(),
    simulation := non_neg_integer(),
    arithmetic := non_neg_integer()
}.

-type error() ::
    {file, file:filename_all(), file:posix() | badarg | terminated | system_limit}
    | {no_results, file:filename_all()}
    %% What is stored is not what experiments write.
    | {garbled, file:filename_all(), Reason :: term()}
    %% The folder has results of another size, and a page says of one size only.
    | {other_size, file:filename_all(), Has :: binary()}.

-define(PAGE, "experiments.md").
-define(RUN, "run.json").
%% Of the form of `run.json'.
-define(VERSION, 2).
-define(INTERRUPTED, <<"it was interrupted">>).

%% @doc All experiments, in the order in which they run and stand on the page.
-spec all() -> [module(), ...].
all() ->
    [
        atoll_experiment_orbit,
        atoll_experiment_optimum,
        atoll_experiment_chaos,
        atoll_experiment_traffic,
        atoll_experiment_weak,
        atoll_experiment_debench,
        atoll_experiment_place,
        atoll_experiment_im,
        atoll_experiment_subscribers,
        atoll_experiment_matchstream,
        atoll_experiment_adcounter,
        atoll_experiment_ring,
        atoll_experiment_stores,
        atoll_experiment_io,
        atoll_experiment_beyond
    ].

%% @doc What they are called.
-spec names() -> [atom(), ...].
names() ->
    [name(Module) || Module <- all()].

name(Module) ->
    maps:get(name, Module:about()).

%% @doc Those with these names, in the order of all.
-spec select([atom()]) -> [module()].
select(Names) ->
    [Module || Module <- all(), lists:member(name(Module), Names)].

%% @doc How long they may take together.
-spec minutes([module()], atoll_experiment:size()) -> number().
minutes(Modules, Size) ->
    lists:sum([minutes_of(Module:about(), Size) || Module <- Modules]).

minutes_of(#{whole := Minutes}, whole) -> Minutes;
minutes_of(#{minutes := Minutes}, _Size) -> Minutes.

%% @doc What one asks; most have no more than they have in full.
-spec asks(module(), atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(Module, #{size := whole} = Context) ->
    case Module:about() of
        #{whole := _} -> Module:asks(Context);
        #{} -> Module:asks(Context#{size := full})
    end;
asks(Module, Context) ->
    Module:asks(Context).

%% @doc Whether a folder can take the results of experiments of a size, or `draw' those in it.
-spec check(file:filename_all(), atoll_experiment:size() | draw) -> ok | {error, error()}.
check(Dir, What) ->
    case stored(Dir) of
        {ok, _} when What =:= draw -> ok;
        {ok, #{<<"size">> := Size}} ->
            case atom_to_binary(What) of
                Size -> ok;
                _ -> {error, {other_size, Dir, Size}}
            end;
        none when What =:= draw -> {error, {no_results, Dir}};
        none -> folder(Dir)
    end.

folder(Dir) ->
    case filelib:ensure_dir(filename:join(Dir, ?RUN)) of
        ok -> ok;
        {error, Reason} -> {error, {file, Dir, Reason}}
    end.

%% @doc Runs them, and writes the page.
-spec run([module(), ...], options()) -> {ok, done()} | {error, error()}.
run(Modules, #{dir := Dir, context := #{size := Size}} = Options) ->
    Stored = case stored(Dir) of
        {ok, Before} -> Before;
        none -> #{<<"version">> => ?VERSION, <<"size">> => atom_to_binary(Size), <<"experiments">> => #{}}
    end,
    case folder(Dir) of
        ok ->
            case keep(Dir, Stored) of
                ok ->
                    _ = lists:foldl(fun(Module, Kept) -> experiment(Module, Kept, Options) end, Stored, Modules),
                    draw(lists:uniq(all() ++ Modules), Dir);
                {error, _} = Error ->
                    Error
            end;
        {error, _} = Error ->
            Error
    end.

%% What is stored with this one in it, written down after each ask: whatever interrupts it, what is
%% there says how far it came.
experiment(Module, Stored, #{dir := Dir, context := #{size := Size} = Context} = Options) ->
    #{name := Name, title := Title} = About = Module:about(),
    Minutes = minutes_of(About, Size),
    Say = maps:get(say, Options, fun(_) -> ok end),
    _ = Say(io_lib:format("~ts: ~ts (~b min at most)", [Name, Title, Minutes])),
    Asks = asks(Module, Context),
    _ = [file:delete(filename:join(Dir, file_of(Name, Ask))) || Ask <- Asks],
    Begun = now_ms(),
    Until = Begun + Minutes * 60000,
    Entry0 = #{
        <<"started">> => list_to_binary(calendar:system_time_to_rfc3339(erlang:system_time(second), [{offset, "Z"}])),
        <<"machine">> => atoll_bench_machine:describe(),
        <<"atoll">> => list_to_binary(atoll:version()),
        <<"commit">> => atoll_bench_commit:describe(),
        <<"seconds">> => null,
        <<"asks">> => [asked(Name, Ask, ?INTERRUPTED) || Ask <- Asks]
    },
    Entry = lists:foldl(
        fun(Ask, #{<<"asks">> := Before} = Acc) ->
            _ = keep(Dir, with(Name, Acc, Stored)),
            _ = Say(["  ", atoll_experiment:says(Ask)]),
            Error = case atoll_experiments_step:run(Ask, filename:join(Dir, file_of(Name, Ask)), Until) of
                ok -> null;
                {error, Why} ->
                    _ = Say(["    ", Why]),
                    unicode:characters_to_binary(Why)
            end,
            #{<<"key">> := Key} = Asked = asked(Name, Ask, Error),
            Counted = maps:merge(Asked, disturbed(Dir, Asked)),
            Acc#{<<"asks">> := [case A of #{<<"key">> := Key} -> Counted; _ -> A end || A <- Before]}
        end,
        Entry0,
        Asks
    ),
    Done = with(Name, Entry#{<<"seconds">> := (now_ms() - Begun) / 1000}, Stored),
    _ = keep(Dir, Done),
    Done.

with(Name, Entry, #{<<"experiments">> := Entries} = Stored) ->
    Stored#{<<"experiments">> := Entries#{atom_to_binary(Name) => Entry}}.

asked(Name, #{key := Key} = Ask, Error) ->
    #{
        <<"key">> => atom_to_binary(Key),
        <<"says">> => unicode:characters_to_binary(atoll_experiment:says(Ask)),
        <<"file">> => list_to_binary(file_of(Name, Ask)),
        <<"error">> => Error
    }.

file_of(Name, #{key := Key, do := {rows, _, _}}) -> lists:concat([Name, "-", Key, ".json"]);
file_of(Name, #{key := Key}) -> lists:concat([Name, "-", Key, ".jsonl"]).

disturbed(Dir, Asked) ->
    case answer(Dir, Asked) of
        {run, Run} ->
            {Disturbed, Rounds} = atoll_experiments_samples:disturbed(Run),
            #{<<"rounds">> => Rounds, <<"disturbed">> => Disturbed, <<"starts">> => atoll_experiments_samples:starts(Run)};
        _ ->
            #{}
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%% Whoever reads it finds the one before or this one.
keep(Dir, Stored) ->
    File = filename:join(Dir, ?RUN),
    New = File ++ ".new",
    case file:write_file(New, [atoll_bench_json:encode(Stored), $\n]) of
        ok -> renamed(New, File);
        {error, Reason} -> {error, {file, File, Reason}}
    end.

renamed(New, File) ->
    case file:rename(New, File) of
        ok -> ok;
        {error, Reason} -> {error, {file, File, Reason}}
    end.

%% One of an older form is as none: it does not say what was run.
stored(Dir) ->
    case json(filename:join(Dir, ?RUN)) of
        {ok, #{<<"version">> := ?VERSION, <<"size">> := <<_/binary>>, <<"experiments">> := #{}} = Stored} -> {ok, Stored};
        _ -> none
    end.

%% @doc Writes the page of the results that are in a folder.
-spec draw(file:filename_all()) -> {ok, done()} | {error, error()}.
draw(Dir) ->
    draw(all(), Dir).

%% @doc The same of some experiments.
-spec draw([module()], file:filename_all()) -> {ok, done()} | {error, error()}.
draw(Modules, Dir) ->
    Page = filename:join(Dir, ?PAGE),
    case stored(Dir) of
        {ok, Stored} ->
            case drawn(Modules, Stored, Dir) of
                {ok, Done, Text} ->
                    case file:write_file(Page, Text) of
                        ok -> {ok, Done#{page => Page}};
                        {error, Reason} -> {error, {file, Page, Reason}}
                    end;
                {error, _} = Error ->
                    Error
            end;
        none ->
            {error, {no_results, Dir}}
    end.

%% Pure functions of what is in the folder, which anybody may have changed, and in any way.
drawn(Modules, #{<<"experiments">> := Stored, <<"size">> := Size} = All, Dir) ->
    try
        Entries = [
            entry(Module, Entry, binary_to_existing_atom(Size), Dir)
         || Module <- Modules, {ok, Entry} <- [maps:find(atom_to_binary(name(Module)), Stored)]
        ],
        <<_/binary>> = Text = unicode:characters_to_binary(atoll_experiments_page:markdown(All, Entries)),
        {ok, done(Entries), Text}
    catch
        error:Reason -> {error, {garbled, Dir, Reason}}
    end.

done(Entries) ->
    maps:merge(atoll_experiment:counts(lists:append([Findings || #{findings := Findings} <- Entries])), #{
        runs => lists:append([Runs || #{runs := Runs} <- Entries]),
        experiments => length(Entries),
        seconds => lists:sum([0.0 | [Seconds || #{stored := #{<<"seconds">> := Seconds}} <- Entries, Seconds =/= null]]),
        failed => length([Why || #{stored := #{<<"asks">> := Asks}} <- Entries, #{<<"error">> := Why} <- Asks, Why =/= null])
    }).

%% What a run has measured counts, also when it was cut short.
entry(Module, #{<<"asks">> := Asks} = Stored, Size, Dir) ->
    About = Module:about(),
    Results = maps:from_list([{binary_to_atom(Key), answer(Dir, Asked)} || #{<<"key">> := Key} = Asked <- Asks]),
    #{
        about => About#{minutes := minutes_of(About, Size)},
        stored => Stored,
        tables => Module:tables(),
        results => Results,
        findings => atoll_experiments_judge:findings(Module:questions(), Results),
        runs => [File || {run, #{file := File}} <- maps:values(Results)]
    }.

answer(Dir, #{<<"file">> := Name}) ->
    File = filename:join(Dir, Name),
    case filename:extension(Name) of
        <<".jsonl">> -> case atoll_bench_file:read(File) of {ok, Run} -> {run, Run}; {error, _} -> none end;
        _ -> case json(File) of {ok, Rows} when is_list(Rows) -> {rows, Rows}; _ -> none end
    end.

json(File) ->
    case file:read_file(File) of
        {ok, Text} -> atoll_bench_json:decode(Text);
        {error, _} = Error -> Error
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({file, File, Reason}) -> io_lib:format("~ts: ~ts", [File, file:format_error(Reason)]);
format_error({no_results, Dir}) -> io_lib:format("there are no results of experiments in ~ts", [Dir]);
format_error({garbled, Dir, Reason}) ->
    io_lib:format("what is stored in ~ts is not what experiments write: ~0tP", [Dir, Reason, 12]);
format_error({other_size, Dir, Has}) ->
    io_lib:format("~ts has results of experiments of the size ~ts; another --out keeps them apart", [Dir, Has]).
