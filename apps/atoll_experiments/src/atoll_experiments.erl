%% @doc Runs experiments one after the other, keeps what they measured, and writes the page.
%%
%% Each step runs in a process of its own, which owns all that it starts: what does not end in
%% the time of its experiment is ended, and its nodes with it. A step that fails is a result too;
%% the others go on. Whatever ends this program ends the nodes (see atoll_cluster); results of
%% the steps that were over are left in the folder.
%%
%% The folder has a file for each step (the file of a run, or JSON), one for each experiment with
%% the time it took, `run.json' with what it all ran on, and the page, `experiments.md'. The page
%% is made of these files alone, and can be made again.
-module(atoll_experiments).

-export([all/0, names/0, select/1, minutes/1, check/2, run/2, draw/2, draw/3, format_error/1]).

-export_type([options/0, done/0, error/0]).

-type options() :: #{
    dir := file:filename_all(),
    context := atoll_experiment:context(),
    %% Told what is being done.
    say => fun((unicode:chardata()) -> _)
}.

%% Steps that failed or were cut short; of the paper's statements how many were the same, not so
%% here, and not shown.
-type done() :: #{
    page := file:filename_all(),
    %% The files of runs.
    runs := [file:filename_all()],
    experiments := non_neg_integer(),
    seconds := float(),
    failed := non_neg_integer(),
    same := non_neg_integer(),
    not_so := non_neg_integer(),
    not_shown := non_neg_integer()
}.

-type error() ::
    {file, file:filename_all(), file:posix() | badarg | terminated | system_limit}
    | {no_results, file:filename_all()}
    %% The folder has results of another size, and a page says of one size only.
    | {other_size, file:filename_all(), Has :: binary()}.

-define(PAGE, "experiments.md").
%% What it all ran on.
-define(HEADER, "run.json").
-define(NOT_RUN, "it was not run").

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
-spec minutes([module()]) -> number().
minutes(Modules) ->
    lists:sum([maps:get(minutes, Module:about()) || Module <- Modules]).

%% @doc Whether a folder can take the results of experiments of a size, or `draw' those in it.
-spec check(file:filename_all(), full | small | draw) -> ok | {error, error()}.
check(Dir, What) ->
    case json(filename:join(Dir, ?HEADER)) of
        {ok, #{<<"size">> := _}} when What =:= draw -> ok;
        {ok, #{<<"size">> := Size}} ->
            case atom_to_binary(What) of
                Size -> ok;
                _ -> {error, {other_size, Dir, Size}}
            end;
        _ when What =:= draw -> {error, {no_results, Dir}};
        _ -> folder(Dir)
    end.

folder(Dir) ->
    case filelib:ensure_dir(filename:join(Dir, ?HEADER)) of
        ok -> ok;
        {error, Reason} -> {error, {file, Dir, Reason}}
    end.

%% @doc Runs them, and writes the page.
-spec run([module(), ...], options()) -> {ok, done()} | {error, error()}.
run(Modules, #{dir := Dir, context := #{size := Size}} = Options) ->
    Header = #{
        machine => atoll_bench_machine:describe(),
        atoll => list_to_binary(atoll:version()),
        commit => atoll_bench_commit:describe(),
        size => Size
    },
    case folder(Dir) of
        ok ->
            case write(filename:join(Dir, ?HEADER), Header) of
                ok ->
                    lists:foreach(fun(Module) -> experiment(Module, Options) end, Modules),
                    draw(lists:uniq(all() ++ Modules), Dir, maps:get(context, Options));
                {error, _} = Error ->
                    Error
            end;
        {error, _} = Error ->
            Error
    end.

experiment(Module, #{dir := Dir, context := Context} = Options) ->
    #{name := Name, title := Title, minutes := Minutes} = Module:about(),
    Say = maps:get(say, Options, fun(_) -> ok end),
    _ = Say(io_lib:format("~ts: ~ts (~b min at most)", [Name, Title, Minutes])),
    Steps = Module:steps(Context),
    _ = [file:delete(File) || #{key := Key} <- Steps, File <- files(Dir, Name, Key)],
    %% If it is interrupted, this is what is left of it.
    _ = write(took_file(Dir, Name), #{seconds => null}),
    Begun = now_ms(),
    Until = Begun + Minutes * 60000,
    lists:foreach(
        fun(#{key := Key, says := Says} = Step) ->
            _ = Say(["  ", Says]),
            case atoll_experiments_step:run(Step, file_of(Dir, Name, Step), Until) of
                ok -> ok;
                {error, Why} ->
                    _ = Say(["    ", Why]),
                    _ = write(job_file(Dir, Name, Key), #{error => unicode:characters_to_binary(Why)}),
                    ok
            end
        end,
        Steps
    ),
    Seconds = (now_ms() - Begun) / 1000,
    _ = write(took_file(Dir, Name), #{seconds => Seconds}),
    ok.

now_ms() -> erlang:monotonic_time(millisecond).

file_of(Dir, Name, #{key := Key, run := {bench, _, _}}) -> bench_file(Dir, Name, Key);
file_of(Dir, Name, #{key := Key, run := {job, _}}) -> job_file(Dir, Name, Key).

files(Dir, Name, Key) -> [bench_file(Dir, Name, Key), job_file(Dir, Name, Key)].

took_file(Dir, Name) -> filename:join(Dir, lists:concat([Name, ".json"])).

bench_file(Dir, Name, Key) -> filename:join(Dir, lists:concat([Name, "-", Key, ".jsonl"])).

job_file(Dir, Name, Key) -> filename:join(Dir, lists:concat([Name, "-", Key, ".json"])).

write(File, Term) ->
    case file:write_file(File, [atoll_bench_json:encode(Term), $\n]) of
        ok -> ok;
        {error, Reason} -> {error, {file, File, Reason}}
    end.

%% @doc Writes the page of the results that are in a folder; they are of the size that they are of.
-spec draw(file:filename_all(), atoll_experiment:context()) -> {ok, done()} | {error, error()}.
draw(Dir, Context) ->
    draw(all(), Dir, Context).

%% @doc The same of some experiments.
-spec draw([module()], file:filename_all(), atoll_experiment:context()) -> {ok, done()} | {error, error()}.
draw(Modules, Dir, Given) ->
    Page = filename:join(Dir, ?PAGE),
    case json(filename:join(Dir, ?HEADER)) of
        {ok, #{<<"size">> := Size} = Header} ->
            Context = Given#{size => binary_to_existing_atom(Size)},
            Entries = [
                entry(Module, Seconds, Dir, Context)
             || Module <- Modules, {ok, #{<<"seconds">> := Seconds}} <- [json(took_file(Dir, name(Module)))]
            ],
            case file:write_file(Page, unicode:characters_to_binary(atoll_experiments_page:markdown(Header, Entries))) of
                ok -> {ok, (done(Entries))#{page => Page}};
                {error, Reason} -> {error, {file, Page, Reason}}
            end;
        _ ->
            {error, {no_results, Dir}}
    end.

done(Entries) ->
    maps:merge(atoll_experiment:counts(lists:append([Claims || #{verdict := {ok, #{claims := Claims}}} <- Entries])), #{
        runs => lists:append([Runs || #{runs := Runs} <- Entries]),
        experiments => length(Entries),
        seconds => lists:sum([0.0 | [Seconds || #{seconds := Seconds} <- Entries, Seconds =/= none]]),
        failed => lists:sum([map_size(Failed) || #{failed := Failed} <- Entries]) + length([1 || #{verdict := {failed, _}} <- Entries])
    }).

entry(Module, Seconds, Dir, Context) ->
    #{name := Name} = About = Module:about(),
    Steps = Module:steps(Context),
    Results = maps:from_list([{Key, result(Dir, Name, Step)} || #{key := Key} = Step <- Steps]),
    #{
        about => About,
        seconds => case Seconds of null -> none; _ -> Seconds end,
        steps => Steps,
        failed => maps:from_list([{Key, Why} || #{key := Key} <- Steps, {failed, Why} <- [failure(maps:get(Key, Results), job_file(Dir, Name, Key))]]),
        runs => [File || {ok, #{header := _, file := File}} <- maps:values(Results)],
        verdict => atoll_experiments_step:judged(Module, Results)
    }.

%% Of a run that has measured something it stands beside that.
failure({error, Why}, _File) ->
    {failed, Why};
failure({ok, #{header := _, status := Status}}, File) ->
    case said(json(File)) of
        {error, Why} when Status =:= complete, Why =:= ?NOT_RUN -> none;
        {error, ?NOT_RUN} -> {failed, "it was interrupted"};
        {error, Why} -> {failed, Why}
    end;
failure({ok, _}, _File) ->
    none.

%% What a run has measured counts, also when it was cut short.
result(Dir, Name, #{key := Key, run := {bench, _, _}}) ->
    case atoll_bench_file:read(bench_file(Dir, Name, Key)) of
        {ok, Run} -> {ok, Run};
        {error, _} -> said(json(job_file(Dir, Name, Key)))
    end;
result(Dir, Name, #{key := Key}) ->
    said(json(job_file(Dir, Name, Key))).

said({ok, #{<<"error">> := Why}}) -> {error, Why};
said({ok, Result}) -> {ok, Result};
said({error, _}) -> {error, ?NOT_RUN}.

json(File) ->
    case file:read_file(File) of
        {ok, Text} -> atoll_bench_json:decode(Text);
        {error, _} = Error -> Error
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({file, File, Reason}) -> io_lib:format("~ts: ~ts", [File, file:format_error(Reason)]);
format_error({no_results, Dir}) -> io_lib:format("there are no results of experiments in ~ts", [Dir]);
format_error({other_size, Dir, Has}) ->
    io_lib:format("~ts has results of experiments of the size ~ts; another --out keeps them apart", [Dir, Has]).
