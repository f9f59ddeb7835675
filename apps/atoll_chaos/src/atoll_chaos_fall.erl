%% SPDX-License-Identifier: Apache-2.0
%% @doc What ends with a process of this node when it is killed, and whether that would
%% go further than it should.
%%
%% With it end those that are linked to it and do not trap exits, and those that do if
%% it has started them, since a behaviour ends with its parent; and so on from these. A
%% supervisor traps exits: there it stops, and the supervisor has as many children to
%% restart as it lost. So what is asked of it is room for all of them. A process may be
%% spared because of one that it is linked to, whether somebody supervises it or not.
%%
%% Not looked at: processes of other nodes; who ends of his own accord because he
%% monitored one of them; and whether a child that is restarted can start.
%%
%% How often a supervisor has restarted lately stands in its state, which is its own
%% business: if that looks otherwise than it does in OTP 25 to 29, none is spared for it.
%%
%% The module stands alone, see {@link atoll_chaos_agent}.
-module(atoll_chaos_fall).

-export([with/1, spared/1, childspec/2, room/2]).

-export_type([fall/0, key/0]).

-type key() :: {Supervisor :: pid() | none, Child :: term()}.

-type fall() :: #{
    %% The children that are lost, each with its supervisor; the process itself if
    %% nobody supervises any.
    keys := [key(), ...],
    %% One of those that are never to end is among them, or an application would end.
    is_fatal := boolean()
}.

-define(ANSWER_MS, 5000).

%% @doc What would end with that process.
-spec with(atoll_chaos_victims:victim()) -> fall().
with(#{pid := Pid, supervisor := Supervisor} = Victim) ->
    Fallen = fallen([Pid], #{Pid => []}),
    Own = [{Supervisor, child(Victim)} || is_pid(Supervisor)],
    Keys = lists:usort(Own ++ lists:append([keys(Fall, Fallen, Supervisor) || Fall <- maps:keys(Fallen)])),
    Others = maps:keys(maps:remove(Pid, Fallen)),
    #{
        keys =>
            case Keys of
                [] -> [{none, child(Victim)}];
                _ -> Keys
            end,
        is_fatal =>
            lists:any(fun atoll_chaos_victims:is_needed/1, Others) orelse
                %% A supervisor that an application hangs on may be asked for by its name.
                lists:any(fun is_application/1, Others ++ [Pid || not atoll_chaos_victims:is_supervisor(Pid)])
    }.

fallen([], Fallen) ->
    Fallen;
fallen([Pid | Pids], Fallen) ->
    New = [L || L <- links(Pid), not is_map_key(L, Fallen), ends_with(L, Pid)],
    fallen(New ++ Pids, maps:merge(Fallen, maps:from_keys(New, []))).

links(Pid) ->
    case process_info(Pid, links) of
        {links, Links} -> [L || L <- Links, is_pid(L), node(L) =:= node()];
        undefined -> []
    end.

ends_with(Linked, Pid) ->
    case process_info(Linked, [trap_exit, dictionary]) of
        [{trap_exit, false}, _] -> true;
        [{trap_exit, true}, {dictionary, Dictionary}] -> is_parent(lists:keyfind('$ancestors', 1, Dictionary), Pid);
        undefined -> false
    end.

is_parent({_, [Name | _]}, Pid) when is_atom(Name) -> whereis(Name) =:= Pid;
is_parent({_, [Parent | _]}, Pid) -> Parent =:= Pid;
is_parent(_, _) -> false.

%% That of the victim's own supervisor is known.
keys(Pid, Fallen, Known) ->
    [
        {Supervisor, Child}
     || Supervisor <- links(Pid),
        Supervisor =/= Known orelse map_size(Fallen) > 1,
        not is_map_key(Supervisor, Fallen),
        atoll_chaos_victims:is_supervisor(Supervisor),
        {Id, Found, _, _} <- atoll_chaos_victims:children(Supervisor),
        Found =:= Pid,
        Child <- [child(#{id => Id, pid => Pid})]
    ].

child(#{id := undefined, pid := Pid}) -> Pid;
child(#{id := Id}) -> Id.

is_application(Pid) ->
    lists:any(fun(L) -> element(1, proc_lib:translate_initial_call(L)) =:= application_master end, links(Pid)).

%% @doc Why it is not to be; its keys are taken already ({@link atoll_chaos_agent}), and
%% count.
-spec spared(fall()) -> none | intensity | significant | spared.
spared(#{is_fatal := true}) ->
    spared;
spared(#{keys := Keys}) ->
    Specs = [childspec(Supervisor, Child) || {Supervisor, Child} <- Keys, is_pid(Supervisor)],
    case [shuts_down || #{restart := temporary, significant := true} <- Specs] of
        [_ | _] ->
            significant;
        [] ->
            case lists:all(fun has_room/1, lists:usort([S || {S, _} <- Keys, is_pid(S)])) of
                true -> none;
                false -> intensity
            end
    end.

has_room(Supervisor) ->
    Taken = length([S || {S, _} <- atoll_chaos_agent:taken(), S =:= Supervisor]),
    try sys:get_state(Supervisor, ?ANSWER_MS) of
        State -> room(State, erlang:monotonic_time()) >= Taken
    catch
        exit:_ -> false
    end.

%% @doc How a supervisor restarts a child, as far as it says.
-spec childspec(pid(), Child :: term()) -> supervisor:child_spec() | unknown.
childspec(Supervisor, Child) ->
    try gen_server:call(Supervisor, {get_childspec, Child}, ?ANSWER_MS) of
        {ok, Spec} -> Spec;
        {error, _} -> unknown
    catch
        exit:_ -> unknown
    end.

%% @doc How many restarts a supervisor of this state has left at that time, in
%% native units; `infinity' if the state is of an unknown kind.
-spec room(State :: tuple(), integer()) -> integer() | infinity.
room(State, Now) when element(1, State) =:= state, tuple_size(State) >= 8 ->
    case {element(6, State), element(7, State), element(8, State)} of
        {Intensity, Period, Restarts} when is_integer(Intensity), is_integer(Period), is_list(Restarts) ->
            Intensity - length([At || At <- Restarts, is_recent(At, Period, Now)]);
        _ ->
            infinity
    end;
room(_, _) ->
    infinity.

%% Its times are of Erlang's monotonic clock, in seconds or in milliseconds by the
%% release. The clock begins far below 0, so that the one is never like the other.
is_recent(At, Period, Now) ->
    Seconds = erlang:convert_time_unit(Now, native, second),
    Ms = erlang:convert_time_unit(Now, native, millisecond),
    case abs(At - Seconds) < abs(At - Ms) of
        true -> Seconds - At =< Period;
        false -> Ms - At =< 1000 * Period
    end.
