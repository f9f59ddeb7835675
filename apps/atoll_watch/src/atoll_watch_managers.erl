%% SPDX-License-Identifier: Apache-2.0
%% @doc The managers of a watch, as the process that watches has them: started, told which nodes are theirs, and replaced when they
%% are lost. {@link atoll_watch_shares} decides who has which node.
%%
%% The process that calls new/4 calls the others too. It traps exits, and gets `{report, Line, Report}', `{'EXIT', Line, Reason}' and
%% `{start, Id}', each of which a function here takes.
-module(atoll_watch_managers).

-export([new/4, met/3, gone/2, reported/3, lost/2, started/3, stop/1, line/2, list/1, counts/1]).

-export_type([managers/0, manager/0, place/0]).

%% They are processes of this VM, or each has a VM of its own.
-type place() :: here | apart.

%% One, and how it is; `starting' until it has said something.
-type manager() :: #{
    id := atoll_watch_shares:manager(),
    state := starting | up,
    %% Of the state, as of {@link atoll_watch_core:seen()}.
    since := integer(),
    %% How many were lost before it.
    lost := non_neg_integer(),
    os_pid := none | string(),
    %% Bytes that its VM has allocated.
    memory := none | pos_integer(),
    nodes := [node()]
}.

%% What was said last of a node, to another manager.
-type before() :: fun((node()) -> none | atoll_watch_agent:sample()).

-record(manager, {
    %% Who takes its messages; none while it is not started again yet.
    line = none :: pid() | none,
    state = starting :: starting | up,
    since :: integer(),
    lost = 0 :: non_neg_integer(),
    os_pid = none :: none | string(),
    memory = none :: none | pos_integer()
}).

-record(managers, {
    place :: place(),
    options :: atoll_watch_manager:options(),
    shares :: atoll_watch_shares:shares(),
    all = #{} :: #{atoll_watch_shares:manager() => #manager{}},
    %% Of all reports.
    missed = 0 :: non_neg_integer(),
    overtaken = 0 :: non_neg_integer()
}).

-opaque managers() :: #managers{}.

%% One that could not begin is tried again after so long.
-define(AGAIN_MS, 1000).
-define(STOP_MS, 5000).

%% @doc None is started yet. They run as that module says.
-spec new(place(), atoll_watch_manager:options(), HowMany :: auto | pos_integer(), Groups :: [[node()]]) -> managers().
new(Place, Options, HowMany, Groups) -> #managers{place = Place, options = Options, shares = atoll_watch_shares:new(HowMany, Groups)}.

%% @doc These nodes are new.
-spec met([node()], before(), managers()) -> managers().
met(Nodes, Before, #managers{shares = Shares0, all = All} = Managers) ->
    {Given, Shares} = atoll_watch_shares:met(Nodes, Shares0),
    ok = give(Given, Before, Managers),
    New = [Id || Id <- atoll_watch_shares:managers(Shares), not is_map_key(Id, All)],
    lists:foldl(fun(Id, Acc) -> started(Id, Before, Acc) end, Managers#managers{shares = Shares}, New).

%% @doc A node is watched no more.
-spec gone(node(), managers()) -> managers().
gone(Node, #managers{shares = Shares0, all = All} = Managers) ->
    {Id, Shares} = atoll_watch_shares:gone(Node, Shares0),
    _ = [Line ! {take, Node} || #{Id := #manager{line = Line}} <- [All], is_pid(Line)],
    Managers#managers{shares = Shares}.

%% @doc What a report says that counts, and its manager is asked for the next one. A look of a lease that is over may have been
%% under way.
-spec reported(Line :: pid(), atoll_watch_report:report(), managers()) -> {[atoll_watch_report:look()], managers()}.
reported(Line, #{looks := Looks, missed := Missed, overtaken := Overtaken, os_pid := OsPid, memory := Memory}, #managers{all = All, shares = Shares} = Managers) ->
    case of_line(Line, Managers) of
        {Id, #manager{state = Was, since = Since} = Manager} ->
            Line ! {next, self()},
            {
                [Look || #{node := Node, lease := Lease} = Look <- Looks, atoll_watch_shares:has(Node, Lease, Shares)],
                Managers#managers{
                    all = All#{Id := Manager#manager{state = up, since = case Was of up -> Since; starting -> now_ms() end, os_pid = OsPid, memory = Memory}},
                    missed = Managers#managers.missed + Missed,
                    overtaken = Managers#managers.overtaken + Overtaken
                }
            };
        %% It was lost meanwhile.
        none ->
            {[], Managers}
    end.

%% @doc A process has ended. If a manager did, it says so to the caller when another one is to be started, see started/3.
-spec lost(pid(), managers()) -> {lost, atoll_watch_shares:manager(), managers()} | none.
lost(Line, #managers{all = All} = Managers) ->
    case of_line(Line, Managers) of
        {Id, #manager{state = Was, lost = Lost} = Manager} ->
            _ = erlang:send_after(case Was of up -> 0; starting -> ?AGAIN_MS end, self(), {start, Id}),
            {lost, Id, Managers#managers{all = All#{Id := Manager#manager{line = none, state = starting, since = now_ms(), lost = Lost + 1, os_pid = none, memory = none}}}};
        none ->
            none
    end.

of_line(Line, #managers{all = All}) ->
    case [Manager || {_, #manager{line = Is}} = Manager <- maps:to_list(All), Is =:= Line] of
        [Manager] -> Manager;
        [] -> none
    end.

%% @doc Starts one, with all that it is to have.
-spec started(atoll_watch_shares:manager(), before(), managers()) -> managers().
started(Id, Before, #managers{place = Place, options = Options, all = All} = Managers) ->
    case start_link(Place, Options) of
        {ok, Line} ->
            begun(Id, Line, Before, Managers);
        {error, {unable, Sentence}} ->
            logger:warning("atoll watch: a manager cannot begin: ~ts", [Sentence]),
            _ = erlang:send_after(?AGAIN_MS, self(), {start, Id}),
            Managers#managers{all = All#{Id => maps:get(Id, All, #manager{since = now_ms()})}}
    end.

start_link(here, Options) ->
    atoll_view_reporter:start_link(atoll_watch_manager, Options);
start_link(apart, Options) ->
    atoll_view_reporter_vm:start_link(#{reporter => atoll_watch_manager, options => Options, called => "A manager"}).

begun(Id, Line, Before, #managers{shares = Shares0, all = All} = Managers) ->
    Line ! {next, self()},
    {Given, Shares} = atoll_watch_shares:again(Id, Shares0),
    Started = Managers#managers{shares = Shares, all = All#{Id => (maps:get(Id, All, #manager{since = now_ms()}))#manager{line = Line}}},
    ok = give(Given, Before, Started),
    Started.

%% One that is not there gets them when it is started.
give(Given, Before, #managers{all = All}) ->
    maps:foreach(fun(Id, Its) ->
        _ = [Line ! {give, [{Node, Lease, Before(Node)} || {_, Node, Lease} <- Its]} || #{Id := #manager{line = Line}} <- [All], is_pid(Line)]
    end, maps:groups_from_list(fun({Id, _, _}) -> Id end, Given)).

%% @doc Ends all, and returns when they have ended.
-spec stop(managers()) -> ok.
stop(#managers{all = All}) ->
    Lines = [{monitor(process, Line), Line} || #manager{line = Line} <- maps:values(All), is_pid(Line)],
    lists:foreach(fun({_, Line}) -> exit(Line, shutdown) end, Lines),
    lists:foreach(fun({Ref, Line}) ->
        receive {'DOWN', Ref, process, Line, _} -> ok after ?STOP_MS -> exit(Line, kill) end
    end, Lines).

%% @doc By whom a node can be asked.
-spec line(node(), managers()) -> here | {vm, pid()} | none.
line(Node, #managers{place = Place, shares = Shares, all = All}) ->
    case atoll_watch_shares:manager(Node, Shares) of
        {ok, Id} ->
            #{Id := #manager{line = Line}} = All,
            case {Place, Line} of
                {_, none} -> none;
                {here, _} -> here;
                {apart, _} -> {vm, Line}
            end;
        error ->
            none
    end.

%% @doc All of them, by number.
-spec list(managers()) -> [manager()].
list(#managers{all = All, shares = Shares}) ->
    [
        #{id => Id, state => State, since => Since, lost => Lost, os_pid => OsPid, memory => Memory, nodes => atoll_watch_shares:share(Id, Shares)}
     || {Id, #manager{state = State, since = Since, lost = Lost, os_pid = OsPid, memory = Memory}} <- lists:sort(maps:to_list(All))
    ].

%% @doc What was counted: turns of nodes that were `missed', looks that were `overtaken' by others before they were told, and
%% managers that were lost.
-spec counts(managers()) -> #{missed := non_neg_integer(), overtaken := non_neg_integer(), managers_lost := non_neg_integer()}.
counts(#managers{all = All, missed = Missed, overtaken = Overtaken}) ->
    #{missed => Missed, overtaken => Overtaken, managers_lost => lists:sum([N || #manager{lost = N} <- maps:values(All)])}.

now_ms() -> erlang:monotonic_time(millisecond).
