%% SPDX-License-Identifier: Apache-2.0
%% @doc A watcher within the service, for its page: it plays a script on this node, as fast as is wanted, until it is stopped.
%%
%% Promised: one match at a time, of the first day from the script's own on that has none of these teams yet. An event that the store could not take
%% is registered again under its number. A match that is stopped is cancelled, so that its clients are told; while the store does not
%% answer it is tried again, and until then no other match begins. Not promised: that a match goes on when this node ends.
-module(matchstream_simulator).
-behaviour(gen_server).

-export([start_link/0, start/2, set_speed/1, stop/0, status/0, format_error/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([status/0, error/0]).

-type status() :: #{
    running := boolean(), scripts := [binary()],
    script => binary(), match => matchstream_match:id(), speed => number(),
    %% of so many events so many are registered
    events => pos_integer(), done => non_neg_integer(),
    %% why it has ended before its end
    error => binary()
}.

-type error() :: {unknown_script, string()} | running | not_running | no_free_day | matchstream:error().

-record(run, {
    %% of this run, and of no earlier one
    key :: reference(),
    script :: string(),
    id :: matchstream_match:id(),
    steps :: [matchstream_script:step()],
    speed :: number(),
    events :: pos_integer(),
    done = 0 :: non_neg_integer(),
    pause = none :: reference() | none,
    %% it is only to be cancelled
    is_stopped = false :: boolean(),
    why = none :: none | unicode:chardata()
}).

-define(AGAIN_MS, 200).
-define(DAYS, 1000).
-define(CALL_MS, 20000).

%% @doc Starts it. It plays nothing yet.
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Begins to play a script that comes with this case.
-spec start(Script :: string(), Speed :: number()) -> ok | {error, error()}.
start(Script, Speed) -> gen_server:call(?MODULE, {start, Script, Speed}, ?CALL_MS).

%% @doc From now on it is so fast.
-spec set_speed(number()) -> ok | {error, not_running}.
set_speed(Speed) -> gen_server:call(?MODULE, {speed, Speed}, ?CALL_MS).

%% @doc Stops it, and cancels the match.
-spec stop() -> ok | {error, error()}.
stop() -> gen_server:call(?MODULE, stop, ?CALL_MS).

%% @doc How far it is.
-spec status() -> status().
status() -> gen_server:call(?MODULE, status, ?CALL_MS).

%% @doc What went wrong, in a sentence.
-spec format_error(error()) -> unicode:chardata().
format_error({unknown_script, Name}) -> ["There is no script ", Name, "; there are: ", lists:join(", ", matchstream_script:names()), "."];
format_error(running) -> "A match is simulated already.";
format_error(not_running) -> "No match is simulated.";
format_error(no_free_day) -> io_lib:format("These teams play on each of ~b days already.", [?DAYS]);
format_error(unavailable) -> "The store does not answer: please try again later.";
format_error(Error) -> matchstream:format_error(Error).

%% @private
-spec init([]) -> {ok, none}.
init([]) -> {ok, none}.

%% @private
-spec handle_call({start, string(), number()} | {speed, number()} | stop | status, gen_server:from(), #run{} | none) -> {reply, term(), #run{} | none}.
handle_call(status, _, Run) -> {reply, shown(Run), Run};
handle_call({start, Name, Speed}, _, Run) ->
    case is_running(Run) of
        true -> {reply, {error, running}, Run};
        false ->
            case begun(Name, Speed) of
                {ok, Begun} -> {reply, ok, next(Begun)};
                {error, _} = Error -> {reply, Error, Run}
            end
    end;
handle_call(Request, _, Run) ->
    case is_running(Run) of
        true -> changed(Request, Run);
        false -> {reply, {error, not_running}, Run}
    end.

changed({speed, Speed}, #run{pause = none} = Run) -> {reply, ok, Run#run{speed = Speed}};
changed({speed, Speed}, #run{pause = Pause, speed = Before} = Run) ->
    %% What is left of the pause is as much longer or shorter.
    Left = case erlang:cancel_timer(Pause) of false -> 0; Ms -> Ms end,
    {reply, ok, paused(round(Left * Before / Speed), Run#run{speed = Speed})};
changed(stop, #run{id = Id} = Run) ->
    _ = [erlang:cancel_timer(Run#run.pause) || Run#run.pause =/= none],
    Answer = matchstream:cancel_match(Id),
    {reply, case Answer of {ok, _} -> ok; {error, _} -> Answer end, stopped(Answer, Run#run{key = make_ref(), pause = none, is_stopped = true})}.

stopped({error, unavailable}, Run) -> paused(?AGAIN_MS, Run#run{steps = [{cancel, []}], why = "It is stopped, and cancelled as soon as the store answers."});
%% It has ended by somebody else then.
stopped(_, Run) -> Run#run{steps = [], why = "It was stopped."}.

is_running(none) -> false;
is_running(#run{steps = Steps}) -> Steps =/= [].

shown(none) -> #{running => false, scripts => scripts()};
shown(#run{script = Script, id = Id, speed = Speed, events = Events, done = Done, why = Why} = Run) ->
    Shown = #{running => is_running(Run), scripts => scripts(), script => unicode:characters_to_binary(Script), match => Id, speed => Speed, events => Events, done => Done},
    case Why of
        none -> Shown;
        _ -> Shown#{error => unicode:characters_to_binary(Why)}
    end.

scripts() -> [unicode:characters_to_binary(Name) || Name <- matchstream_script:names()].

begun(Name, Speed) ->
    case matchstream_script:find(Name) of
        {ok, File} ->
            {ok, #{about := #{start_date := Date} = About, steps := Steps}} = matchstream_script:read(File),
            case created(About, calendar:date_to_gregorian_days(Date), ?DAYS) of
                {ok, Id} -> {ok, #run{key = make_ref(), script = Name, id = Id, steps = Steps, speed = Speed, events = length([Kind || {Kind, _} <- Steps, Kind =/= sleep])}};
                {error, _} = Error -> Error
            end;
        none -> {error, {unknown_script, Name}}
    end.

created(_, _, 0) -> {error, no_free_day};
created(About, Day, Tries) ->
    case matchstream:new_match(About#{start_date := calendar:gregorian_days_to_date(Day)}) of
        {error, exists} -> created(About, Day + 1, Tries - 1);
        Answer -> Answer
    end.

next(#run{steps = []} = Run) -> Run;
next(#run{steps = [{sleep, Ms} | Steps], speed = Speed} = Run) -> paused(round(Ms / Speed), Run#run{steps = Steps});
next(#run{is_stopped = true, key = Key, id = Id} = Run) ->
    _ = registered(Key, fun() -> matchstream:cancel_match(Id) end),
    Run;
next(#run{steps = [{Kind, Data} | _], key = Key, id = Id, done = Done} = Run) ->
    _ = registered(Key, fun() -> matchstream:register(Id, Kind, Data, Done + 1) end),
    Run.

%% The store may take long, and the page asks meanwhile.
registered(Key, Fun) ->
    Own = self(),
    spawn_link(fun() -> Own ! {registered, Key, Fun()} end).

paused(Ms, #run{key = Key} = Run) -> Run#run{pause = erlang:send_after(Ms, self(), {next, Key})}.

%% @private
-spec handle_cast(term(), term()) -> no_return().
handle_cast(Message, _) -> error({no_such_message, Message}).

%% @private
-spec handle_info({next, reference()} | {registered, reference(), {ok, matchstream_match:event()} | {error, matchstream:error()}}, #run{} | none) -> {noreply, #run{} | none}.
handle_info({next, Key}, #run{key = Key} = Run) -> {noreply, next(Run#run{pause = none})};
handle_info({registered, Key, Answer}, #run{key = Key, is_stopped = true} = Run) -> {noreply, stopped(Answer, Run)};
handle_info({registered, Key, Answer}, #run{key = Key, steps = [_ | Steps], done = Done} = Run) ->
    case Answer of
        {ok, _} -> {noreply, next(Run#run{steps = Steps, done = Done + 1})};
        {error, unavailable} -> {noreply, paused(?AGAIN_MS, Run)};
        {error, {conflict, _}} -> {noreply, Run#run{steps = [], why = "Somebody else has registered an event of this match."}};
        {error, unknown_match} -> {noreply, Run#run{steps = [], why = "The match is not there any more."}};
        {error, Error} -> {noreply, Run#run{steps = [], why = format_error(Error)}}
    end;
%% Of a run that was stopped.
handle_info({next, _}, Run) -> {noreply, Run};
handle_info({registered, _, _}, Run) -> {noreply, Run}.
