%% @doc One step of an experiment, in a process of its own that is ended at its deadline; and
%% the verdict of an experiment, which may be at fault like any program.
-module(atoll_experiments_step).

-export([run/3, judged/2]).
-export([do/3]).

%% @doc Runs a step, and keeps its result in a file. What is not done in time is ended, and what
%% a benchmark had measured until then is in its file.
-spec run(atoll_experiment:step(), file:filename_all(), Until :: integer()) -> ok | {error, unicode:chardata()}.
run(#{run := Run} = Step, File, Until) ->
    Left = max(0, Until - erlang:monotonic_time(millisecond)),
    {Pid, Ref} = spawn_monitor(?MODULE, do, [Run, Step, File]),
    receive
        {'DOWN', Ref, process, Pid, {done, Answer}} -> Answer;
        {'DOWN', Ref, process, Pid, Reason} -> {error, io_lib:format("it ended with ~0tP", [Reason, 20])}
    after Left ->
        exit(Pid, kill),
        receive
            {'DOWN', Ref, process, Pid, {done, Answer}} -> Answer;
            {'DOWN', Ref, process, Pid, _} -> {error, "it was not done when the time of the experiment was over"}
        end
    end.

%% @private
-spec do(Run :: term(), atoll_experiment:step(), file:filename_all()) -> no_return().
do(Run, Step, File) ->
    exit({done, done(Run, Step, File)}).

done({bench, Name, Options}, Step, File) ->
    case atoll_bench:find(Name) of
        {ok, Module} ->
            case atoll_bench_run:run(Module, Options#{file => File, command => command(Step)}) of
                {ok, #{failed := []}} -> ok;
                {ok, #{failed := [{_, Why} | _] = Failed}} -> {error, io_lib:format("~b points could not be measured: ~ts", [length(Failed), Why])};
                {error, Error} -> {error, atoll_bench_run:format_error(Error)}
            end;
        {error, Error} ->
            {error, atoll_bench:format_error(Error)}
    end;
done({job, Fun}, _Step, File) ->
    case Fun() of
        {ok, Result} ->
            case file:write_file(File, [atoll_bench_json:encode(Result), $\n]) of
                ok -> ok;
                {error, Reason} -> {error, io_lib:format("~ts: ~ts", [File, file:format_error(Reason)])}
            end;
        {error, _} = Error ->
            Error
    end.

command(#{says := Says}) -> Says.

%% @doc What an experiment says of its results; a sentence if it cannot.
-spec judged(module(), atoll_experiment:results()) -> {ok, atoll_experiment:verdict()} | {failed, unicode:chardata()}.
judged(Module, Results) ->
    try
        {ok, Module:verdict(Results)}
    catch
        error:Reason:Stack ->
            {failed, io_lib:format("the verdict could not be had: ~0tP in ~0tP", [Reason, 12, hd(Stack), 12])}
    end.
