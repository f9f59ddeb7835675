%% SPDX-License-Identifier: Apache-2.0
%% @doc What those ask who follow matches, written to a file as it comes: a line has the milliseconds since 1970, who it was, and the kind of what was asked.
%% Of watchers in the stadium nothing is written.
%%
%% A web request is somebody's by its header `Match-Stream-User', or by the address that it comes from. There are so many lines at most, and
%% what comes while very many wait to be written is dropped; both are counted.
-module(matchstream_record).
-behaviour(gen_server).

-export([start_link/1, note/2, read/1, kinds/0]).
-export([init/1, handle_call/3, handle_cast/2, terminate/2]).

-export_type([entry/0, kind/0]).

-type kind() :: page | matches | match | history | port | simulator | watch | leave.
%% The last two are of connections: one follows a match, and has ended.

-type entry() :: {AtMs :: integer(), User :: binary(), kind()}.

-record(state, {file :: file:io_device(), lines = 0 :: non_neg_integer()}).

-define(KINDS, [page, matches, match, history, port, simulator, watch, leave]).
-define(LINES, 1000000).
-define(WAITING, 10000).

%% @doc Begins to write, after what the file has.
-spec start_link(file:filename()) -> gen_server:start_ret().
start_link(File) -> gen_server:start_link({local, ?MODULE}, ?MODULE, File, []).

%% @doc Somebody asks for that now. Where nothing is recorded that does nothing.
-spec note(User :: binary(), kind()) -> ok.
note(User, Kind) ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid -> gen_server:cast(Pid, {note, erlang:system_time(millisecond), User, Kind})
    end.

%% @doc All kinds.
-spec kinds() -> [kind()].
kinds() -> ?KINDS.

%% @doc What a file says, by the time.
-spec read(file:filename_all()) -> {ok, [entry()]} | {error, unicode:chardata()}.
read(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            Lines = binary:split(Text, <<"\n">>, [global, trim]),
            Read = [entry(Line) || Line <- Lines],
            case [N || {N, wrong} <- lists:zip(lists:seq(1, length(Read)), Read)] of
                [] -> {ok, lists:sort(Read)};
                [N | _] -> {error, io_lib:format("~ts: line ~b is not a time, a user and one of ~ts.", [File, N, lists:join(", ", [atom_to_list(Kind) || Kind <- ?KINDS])])}
            end;
        {error, Reason} -> {error, [File, ": ", file:format_error(Reason)]}
    end.

entry(Line) ->
    case binary:split(Line, <<" ">>, [global]) of
        [At, User, Word] when User =/= <<>> ->
            case {string:to_integer(At), [Kind || Kind <- ?KINDS, atom_to_binary(Kind) =:= Word]} of
                {{Ms, <<>>}, [Kind]} -> {Ms, User, Kind};
                _ -> wrong
            end;
        _ -> wrong
    end.

%% @private
-spec init(file:filename()) -> {ok, #state{}} | {stop, {shutdown, {file:filename(), file:posix()}}}.
init(File) ->
    _ = process_flag(trap_exit, true),
    case file:open(File, [append, raw, {delayed_write, 65536, 1000}]) of
        {ok, Device} -> {ok, #state{file = Device}};
        {error, Why} -> {stop, {shutdown, {File, Why}}}
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> no_return().
handle_call(Request, _, _) -> error({no_such_call, Request}).

%% @private
-spec handle_cast({note, integer(), binary(), kind()}, #state{}) -> {noreply, #state{}}.
handle_cast({note, At, User, Kind}, #state{file = File, lines = Lines} = S) ->
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    case Waiting > ?WAITING orelse Lines >= ?LINES of
        true ->
            ok = matchstream_count:add(unrecorded, 1),
            {noreply, S};
        false ->
            ok = file:write(File, [integer_to_binary(At), $\s, User, $\s, atom_to_binary(Kind), $\n]),
            {noreply, S#state{lines = Lines + 1}}
    end.

%% @private
-spec terminate(term(), #state{}) -> ok | {error, term()}.
terminate(_, #state{file = File}) -> file:close(File).
