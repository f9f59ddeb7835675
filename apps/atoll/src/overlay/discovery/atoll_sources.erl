%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Reads the discovery sources, now and again, and hands on what they give.
%%
%% Promises:
%% <ul>
%% <li>Discovery only adds contacts. Nothing is taken back when a source drops a
%%   record, does not answer, or answers garbage ({@link atoll_sources_book}).</li>
%% <li>It says so: once in the log, and to `fault', when a source begins to be in
%%   trouble, and once in the log when it is well again.</li>
%% <li>All sources are read at once at the start, and each for itself afterwards, an
%%   interval after its last read ended, a quarter more or less. A source has one
%%   reader at a time, which is given up at a deadline. So one that hangs delays neither
%%   another nor this process.</li>
%% <li>The names it takes are bounded ({@link atoll_source_names}).</li>
%% </ul>
%% It does not know which contacts are alive, nor whether they are of this cluster: a
%% contact is a place to ask. The reader of a file that hangs is left to it (see {@link
%% atoll_source_file}), and no other is started until it ends.
-module(atoll_sources).

-behaviour(gen_server).

-export([start_link/1, summary/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0]).

%% A reader ends with exit/1 by design.
-dialyzer({nowarn_function, spawn_reader/2}).

-type options() :: #{
    sources := [atoll_source:source()],
    interval_ms := pos_integer(),
    %% The most names from all sources together.
    max := pos_integer(),
    %% Gets what is found. These two are called here: they must not wait.
    deliver := fun(([node(), ...]) -> ok),
    %% Hears when a source begins to be in trouble.
    fault := fun((atoll_source:source(), atoll_source:trouble()) -> ok)
}.

-record(reader, {
    pid :: pid(),
    monitor :: reference(),
    %% What is to be done at the deadline, and its timer.
    deadline :: atoll_source:deadline(),
    timer :: reference(),
    %% Its answer has this tag: what it is linked with may end it with any reason.
    tag :: reference()
}).

-record(state, {
    options :: options(),
    book :: atoll_sources_book:book(),
    sources :: #{atoll_sources_book:index() => atoll_source:source()},
    %% The source of each reader's monitor. There is one for each source at most.
    readers = #{} :: #{reference() => {atoll_sources_book:index(), #reader{}}}
}).

%% @doc Starts to read. The sources are right ({@link atoll_source:check/1}).
-spec start_link(options()) -> gen_server:start_ret().
start_link(Options) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc For people: what came of each source so far.
-spec summary() -> [atoll_sources_book:summary()].
summary() ->
    gen_server:call(?MODULE, summary).

%% @private
-spec init(options()) -> {ok, #state{}}.
init(#{sources := Sources, max := Max} = Options) ->
    %% Readers are linked, so that none is left when this process ends; that a reader
    %% ends is said by its monitor.
    _ = process_flag(trap_exit, true),
    Indexed = maps:from_list(lists:zip(lists:seq(1, length(Sources)), Sources)),
    State = #state{
        options = Options,
        book = atoll_sources_book:new(Sources, Max, atoll_epmd:in_use()),
        sources = Indexed
    },
    {ok, lists:foldl(fun start_reader/2, State, lists:sort(maps:keys(Indexed)))}.

%% @private
-spec handle_call(summary, gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(summary, _From, #state{book = Book} = State) ->
    {reply, atoll_sources_book:summary(Book), State}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Message, _State) ->
    error({unknown_cast, Message}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({timeout, _Timer, {read, Index}}, State) ->
    {noreply, start_reader(Index, State)};
handle_info({timeout, _Timer, {late, Monitor}}, #state{readers = Readers} = State) ->
    case Readers of
        #{Monitor := {Index, Reader}} -> {noreply, late(Index, Reader, State)};
        #{} -> {noreply, State}
    end;
handle_info({'DOWN', Monitor, process, _Pid, Reason}, #state{readers = Readers} = State0) ->
    {{Index, #reader{timer = Timer, tag = Tag}}, Rest} = maps:take(Monitor, Readers),
    _ = erlang:cancel_timer(Timer),
    State = State0#state{readers = Rest},
    {noreply, wait(Index, result(Index, reading(Tag, Reason), State))};
handle_info({'EXIT', Pid, _Reason}, State) when is_pid(Pid) ->
    {noreply, State}.

reading(Tag, {answer, Tag, Reading}) -> Reading;
reading(_Tag, Crash) -> {error, {crashed, Crash}}.

%% Readers

start_reader(Index, #state{sources = Sources, readers = Readers} = State) ->
    #{Index := Source} = Sources,
    {_, Ms} = Deadline = atoll_source:deadline(Source),
    Tag = make_ref(),
    {Pid, Monitor} = spawn_reader(Source, Tag),
    Reader = #reader{
        pid = Pid,
        monitor = Monitor,
        deadline = Deadline,
        timer = erlang:start_timer(Ms, self(), {late, Monitor}),
        tag = Tag
    },
    State#state{readers = Readers#{Monitor => {Index, Reader}}}.

spawn_reader(Source, Tag) ->
    spawn_opt(fun() -> exit({answer, Tag, atoll_source:read(Source)}) end, [link, monitor]).

late(Index, #reader{deadline = {leave, Ms}}, State) ->
    result(Index, {error, {late, Ms}}, State);
late(Index, #reader{deadline = {kill, Ms}, pid = Pid, monitor = Monitor}, #state{readers = Readers} = State0) ->
    true = erlang:demonitor(Monitor, [flush]),
    true = exit(Pid, kill),
    State = State0#state{readers = maps:remove(Monitor, Readers)},
    wait(Index, result(Index, {error, {late, Ms}}, State)).

%% Nodes that started together do not go on asking together.
wait(Index, #state{options = #{interval_ms := Interval}} = State) ->
    Ms = Interval - Interval div 4 + rand:uniform(Interval div 2 + 1) - 1,
    _ = erlang:start_timer(Ms, self(), {read, Index}),
    State.

%% What comes of it

result(Index, Reading, #state{book = Book0} = State) ->
    {Book, Effects} = atoll_sources_book:result(Index, Reading, Book0),
    lists:foreach(fun(Effect) -> ok = act(Effect, State#state.options) end, Effects),
    State#state{book = Book}.

act({deliver, Nodes}, #{deliver := Deliver}) ->
    Deliver(Nodes);
act({learn, Ways}, #{max := Max}) ->
    atoll_epmd:learn(Ways, Max);
act({begins, Source, Trouble}, #{fault := Fault}) ->
    Why = sentence(Source, [atoll_source:format_trouble(Source, Trouble), "; what was found before stays"]),
    logger:warning(#{what => discovery_failed, source => Source, why => Why}),
    Fault(Source, Trouble);
act({works, Source}, _Options) ->
    Why = sentence(Source, "is read as it should be again"),
    logger:notice(#{what => discovery_works, source => Source, why => Why});
act({unused_ways, Source}, _Options) ->
    Why = sentence(Source, "gives addresses or ports, which are used with -epmd_module atoll_epmd only"),
    logger:warning(#{what => discovery_addresses_unused, source => Source, why => Why}).

sentence(Source, Text) ->
    unicode:characters_to_list([atoll_source:label(Source), " ", Text]).
