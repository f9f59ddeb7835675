%% SPDX-License-Identifier: Apache-2.0
%% @doc The one place that traces on a node: what is sent to other nodes, and which scheduler runs which process.
%%
%% Where OTP has trace sessions (27 and newer) it has one of its own, and no other tool is disturbed or disturbs it. Elsewhere a
%% process can have one tracer only, and patterns are the node's: so it does not begin where somebody else traces,
%% and takes back what it has set and nothing else.
%%
%% The VM itself leaves out what is sent within the node, by patterns: only what goes to other nodes costs anything.
-module(atoll_flow_tracing).

-export([start/1, open/1, close/1, delivered/1, stop/1]).

-export_type([tracing/0, what/0]).

-type what() :: #{sent := boolean(), schedulers := boolean()}.

-opaque tracing() :: {Session :: term() | none, what()}.

%% Of other processes than those that send: what they ask the VM to do to processes of other nodes.
-define(CALLS, [{erlang, monitor, 2}, {erlang, monitor, 3}, {erlang, link, 1}, {erlang, exit, 2}]).
-define(SENT, [send, call, monotonic_timestamp]).
-define(SCHEDULERS, [running, scheduler_id, monotonic_timestamp]).
-define(FLAGS, [send, call, running, scheduler_id, monotonic_timestamp]).

%% @doc Has the calling process be told of all processes, with the time, from {@link open/1} on; or says that somebody else traces.
-spec start(what()) -> {ok, tracing()} | {error, busy}.
start(What) ->
    case session() of
        none ->
            case is_traced() of
                true -> {error, busy};
                false -> {ok, begun({none, What})}
            end;
        Session ->
            {ok, begun({Session, What})}
    end.

session() ->
    _ = code:ensure_loaded(trace),
    case erlang:function_exported(trace, session_create, 3) of
        true -> called(trace, session_create, [?MODULE, self(), []]);
        false -> none
    end.

%% A function that not every OTP has, or of which OTP's own types do not say all.
called(M, F, A) -> apply(M, F, A).

%% Before OTP 27: whether a tool has set what this one would set, or traces a process, of which the pattern of what is sent would take
%% what it looks for.
is_traced() ->
    erlang:trace_info(new_processes, flags) =/= {flags, []}
        orelse erlang:trace_info(send, match_spec) =/= {match_spec, true}
        orelse lists:any(fun(Call) -> erlang:trace_info(Call, traced) =/= {traced, false} end, ?CALLS)
        orelse lists:any(fun(Pid) -> is_traced(erlang:trace_info(Pid, flags)) end, processes() -- [self()]).

is_traced({flags, [_ | _]}) -> true;
is_traced(_) -> false.

%% Patterns come first: without them all would be told.
begun({_, #{sent := Sent}} = Tracing) ->
    ok = patterns(false, Tracing),
    _ = [ok = flags(true, ?SENT, Tracing) || Sent],
    Tracing.

%% @doc Traces from now on.
-spec open(tracing()) -> ok.
open({_, #{sent := Sent, schedulers := Schedulers}} = Tracing) ->
    _ = [ok = patterns(true, Tracing) || Sent],
    _ = [ok = flags(true, ?SCHEDULERS, Tracing) || Schedulers],
    ok.

%% @doc Does not, until it is opened again.
-spec close(tracing()) -> ok.
close({_, #{sent := Sent, schedulers := Schedulers}} = Tracing) ->
    _ = [ok = patterns(false, Tracing) || Sent],
    _ = [ok = flags(false, ?SCHEDULERS -- [monotonic_timestamp || Sent], Tracing) || Schedulers],
    ok.

%% @doc When the caller gets `{trace_delivered, all, Ref}', nothing that was traced until now is under way.
-spec delivered(tracing()) -> reference().
delivered({none, _}) -> erlang:trace_delivered(all);
delivered({Session, _}) -> called(trace, delivered, [Session, all]).

%% @doc Takes back all that was set.
-spec stop(tracing()) -> ok.
stop({none, _} = Tracing) ->
    _ = erlang:trace(new_processes, false, ?FLAGS),
    Self = self(),
    lists:foreach(fun(Pid) -> _ = [untraced(Pid) || erlang:trace_info(Pid, tracer) =:= {tracer, Self}] end, processes()),
    _ = called(erlang, trace_pattern, [send, true, []]),
    patterns(false, Tracing, ?CALLS);
stop({Session, _}) ->
    _ = called(trace, session_destroy, [Session]),
    ok.

untraced(Pid) ->
    try erlang:trace(Pid, false, ?FLAGS)
    catch error:badarg -> 0
    end.

%% Flags of processes that somebody else traces stay as they are.
flags(How, Flags, {none, _}) ->
    _ = erlang:trace(processes, How, Flags),
    ok;
flags(How, Flags, {Session, _}) ->
    _ = called(trace, process, [Session, all, How, Flags]),
    ok.

patterns(How, Tracing) ->
    _ = pattern(send, case How of true -> sent(); false -> false end, Tracing),
    patterns(How, Tracing, ?CALLS).

patterns(How, Tracing, Calls) ->
    lists:foreach(fun(Call) -> pattern(Call, case How of true -> spec(Call); false -> false end, Tracing) end, Calls).

pattern(send, Spec, {none, _}) -> called(erlang, trace_pattern, [send, Spec, []]);
pattern(send, Spec, {Session, _}) -> called(trace, send, [Session, Spec, []]);
pattern(Call, Spec, {none, _}) -> erlang:trace_pattern(Call, Spec, []);
pattern(Call, Spec, {Session, _}) -> called(trace, function, [Session, Call, Spec, []]).

%% To a process or an alias of another node, or to a name there. A guard that cannot be answered does not hold.
sent() ->
    [{['$1', '_'], [{'=/=', {node, '$1'}, {node}}], []}, {[{'_', '$1'}, '_'], [{'=/=', '$1', {node}}], []}].

spec({erlang, monitor, 2}) -> [{[process | Of], Guards, []} || {Of, Guards} <- there([])];
spec({erlang, monitor, 3}) -> [{[process | Of], Guards, []} || {Of, Guards} <- there(['_'])];
spec({erlang, link, 1}) -> [{['$1'], [{'=/=', {node, '$1'}, {node}}], []}];
spec({erlang, exit, 2}) -> [{['$1', '_'], [{'=/=', {node, '$1'}, {node}}], []}].

there(More) ->
    [{['$1' | More], [{'=/=', {node, '$1'}, {node}}]}, {[{'_', '$1'} | More], [{'=/=', '$1', {node}}]}].
