%% SPDX-License-Identifier: Apache-2.0
%% @doc What the supervisor of a server node decides: which client monitors and chat sessions there are,
%% and which of them are to be started.
%%
%% One that dies is started again, and goes on from its row. When this node becomes the main one of a
%% shard, all that have a row there belong to it: those of lost nodes are started here at once. Those
%% of nodes that live are watched, and if the shard was handed over, started here too: the new process
%% asks the old one to end before it goes on. So many are being started at once at most, so that a whole
%% shard does not flood the databases; the rest waits in a queue. What clients ask for waits there too,
%% as long as it is not full: a client asks again.
%%
%% Whether this node is the main one of a process's shard is for the caller to know, who says `not_here'
%% in place of starting it. Then it is forgotten: the node that is, has the row.
-module(im_server_supervisor_core).

-export([new/0, handle/2, where/2, info/1, all/1]).

-export_type([core/0, key/0, how/0, event/0, effect/0]).

-type client() :: binary().
-type session() :: {client(), client()}.

-type key() :: {client, client()} | {session, session()}.

-type how() ::
    %% from its row; ends if there is none
    again
    %% asked for by this client process
    | {login | open, client(), pid()}
    | {chat, client(), pid()}.

-type event() ::
    %% a message for one, who is started in that way if it is not there
    {request, key(), how(), Message :: tuple()}
    %% those that were watched before, by the table of what is watched
    | {watched, [{key(), pid()}]}
    %% what has a row in a shard of which this node is the main one from now on: with the process, and
    %% whether it is to run here
    | {rows, [{key(), {keep, pid()} | move | lost}]}
    | {started, key(), pid()}
    | {not_here, key()}
    %% it goes on from its row, or has something to do
    | {up, key(), pid()}
    | {down, pid(), Reason :: term()}.

-type effect() ::
    {start, key(), how()}
    %% monitors it and writes it into the table
    | {watch, key(), pid()}
    | {unwatch, pid()}
    | {send, pid(), tuple()}.

-record(core, {
    pids = #{} :: #{key() => pid()},
    keys = #{} :: #{pid() => key()},
    %% those that are not up yet, and those that are to be started
    starting = #{} :: #{key() => how()},
    queue = queue:new() :: queue:queue(key()),
    queued = #{} :: #{key() => how()},
    out = [] :: [effect()],
    counters = #{started_again => 0, moved => 0, requests => 0, dropped => 0} :: #{atom() => non_neg_integer()}
}).

-opaque core() :: #core{}.

%% So many are being started at once.
-define(AT_ONCE, 100).
%% So many that clients ask for wait.
-define(QUEUE, 5000).

%% @doc Nobody is there.
-spec new() -> core().
new() -> #core{}.

%% @doc Who has that key, if anybody.
-spec where(key(), core()) -> pid() | undefined.
where(Key, #core{pids = Pids}) -> maps:get(Key, Pids, undefined).

%% @doc All that are watched.
-spec all(core()) -> [{key(), pid()}].
all(#core{pids = Pids}) -> maps:to_list(Pids).

%% @doc How many there are, and counters of what has happened.
-spec info(core()) -> #{atom() => non_neg_integer()}.
info(#core{pids = Pids, starting = Starting, queued = Queued, counters = Counters}) ->
    Clients = length([1 || {client, _} <- maps:keys(Pids)]),
    Counters#{client_monitors => Clients, chat_sessions => map_size(Pids) - Clients, starting => map_size(Starting),
              queued => map_size(Queued)}.

%% @doc What happens is answered by what is to be done, in this order.
-spec handle(event(), core()) -> {core(), [effect()]}.
handle(Event, S) ->
    #core{out = Out} = Next = next(event(Event, S)),
    {Next#core{out = []}, lists:reverse(Out)}.

event({request, Key, How, Message}, #core{pids = Pids} = S) ->
    case Pids of
        #{Key := Pid} -> effect({send, Pid, Message}, count(requests, S));
        #{} -> asked(Key, How, count(requests, S))
    end;
event({watched, Known}, S) ->
    lists:foldl(fun({Key, Pid}, Acc) -> known(Key, Pid, Acc) end, S, Known);
event({rows, Rows}, S) ->
    lists:foldl(fun row/2, S, Rows);
event({started, Key, Pid}, S) ->
    known(Key, Pid, S);
event({not_here, Key}, S) ->
    done(Key, S);
event({up, Key, Pid}, S) ->
    %% All that knew it may have died.
    known(Key, Pid, done(Key, S));
event({down, Pid, Reason}, #core{keys = Keys} = S) ->
    case Keys of
        #{Pid := Key} ->
            Without = done(Key, forgotten(Key, S)),
            case has_ended(Reason) of
                true -> Without;
                false -> queued(Key, again, count(started_again, Without))
            end;
        #{} ->
            S
    end.

%% By itself, or in favour of another.
has_ended(normal) -> true;
has_ended(shutdown) -> true;
has_ended({shutdown, _}) -> true;
has_ended(_) -> false.

%% Whoever has asked for one that is to be started already asks again.
asked(Key, How, #core{queued = Queued} = S) when map_size(Queued) < ?QUEUE -> queued(Key, How, S);
asked(_, _, S) -> count(dropped, S).

row({Key, lost}, S) -> queued(Key, again, count(started_again, forgotten(Key, S)));
row({Key, move}, S) -> queued(Key, again, count(moved, forgotten(Key, S)));
row({Key, {keep, Pid}}, S) -> known(Key, Pid, S).

queued(Key, How, #core{queued = Queued, queue = Queue, starting = Starting} = S) ->
    case is_map_key(Key, Queued) orelse is_map_key(Key, Starting) of
        true -> S;
        false -> S#core{queued = Queued#{Key => How}, queue = queue:in(Key, Queue)}
    end.

%% Starts as many as may be.
next(#core{starting = Starting, queue = Queue, queued = Queued} = S) when map_size(Queued) > 0, map_size(Starting) < ?AT_ONCE ->
    {{value, Key}, Rest} = queue:out(Queue),
    {How, Left} = maps:take(Key, Queued),
    next(effect({start, Key, How}, S#core{starting = Starting#{Key => How}, queue = Rest, queued = Left}));
next(S) -> S.

known(Key, Pid, #core{pids = Pids} = S) ->
    case Pids of
        #{Key := Pid} -> S;
        #{} ->
            #core{pids = Others, keys = Keys} = Without = forgotten(Key, S),
            effect({watch, Key, Pid}, Without#core{pids = Others#{Key => Pid}, keys = Keys#{Pid => Key}})
    end.

forgotten(Key, #core{pids = Pids, keys = Keys} = S) ->
    case Pids of
        #{Key := Pid} -> effect({unwatch, Pid}, S#core{pids = maps:remove(Key, Pids), keys = maps:remove(Pid, Keys)});
        #{} -> S
    end.

done(Key, #core{starting = Starting} = S) -> S#core{starting = maps:remove(Key, Starting)}.

count(What, #core{counters = Counters} = S) -> S#core{counters = maps:update_with(What, fun(N) -> N + 1 end, Counters)}.

effect(Effect, #core{out = Out} = S) -> S#core{out = [Effect | Out]}.
