%% SPDX-License-Identifier: Apache-2.0
%% @doc Names in groups on this node: `{via, atoll_name, {Group, Name}}', and the
%% process that runs `atoll_name_core'.
%%
%% Reading asks nobody: the names of this node's groups are in a table of the
%% supervisor, and a look-up is one read of it, in the caller. What is promised of
%% registering stands in the core. Of a group that this node is not in
%% {@link find/2}, {@link whereis_name/1} and {@link send/2} ask a member
%% (`atoll_name_remote'), for 3 seconds at most; the other functions are about
%% the groups of this node.
%%
%% Where the application does not run there are no names, and what would change them answers
%% `{no, s_group_not_runnig}' (the word of SD Erlang); `{no, restarting}' while the process is
%% being started anew.
%%
%% A clash of two parts that meet is told as the event `name_conflict', with the group,
%% the name, the loser and the winner. A node that acknowledges nothing of what it is told is
%% told as `names_silent', and as `names_heard' when it does again, with the node.
-module(atoll_name).

-behaviour(atoll_interpreter).

-export([create_table/0, start_link/1, defaults/0]).
-export([register/3, register/4, register_external/3, register_external/4, re_register/3, re_register/4, unregister/2]).
-export([whereis/2, find/2, lookup/2, deliver/3, names/0, names/1, entries/1, names_of/1, free_nodes/0, info/0, bye/0]).
%% For {via, atoll_name, {Group, Name}}.
-export([register_name/2, unregister_name/1, whereis_name/1, send/2]).
%% For other nodes.
-export([told/2]).
-export([open/1, act/2, event/2, notice/2]).
%% For spawn_monitor/3.
-export([look_for/3]).

-export_type([group/0, name/0, options/0, reason/0, error/0]).

-type group() :: atom().
-type name() :: term().
-type reason() :: atoll_name_core:reason() | s_group_not_runnig.
-type error() :: no_such_name | atoll_name_remote:error() | s_group_not_runnig.

-type options() :: #{atom() => term()}.
%% Those of `atoll_name_core' that are not as in {@link defaults/0}.

-record(world, {
    %% The processes that have names, with the monitors on them.
    monitors = #{} :: #{pid() => reference()},
    %% Clashes that functions decide now, and those that wait for it: one for each name at
    %% most.
    deciding = 0 :: non_neg_integer(),
    %% Who looks for the process of a silent node, and of which.
    looking = #{} :: #{reference() => node()},
    undecided = queue:new() :: queue:queue({atoll_name_clash:key(), mfa_args()})
}).

-type world() :: #world{}.
-type mfa_args() :: {module(), Function :: atom(), Args :: [term()]}.

%% A function that decides a clash and does not answer for so long has not decided.
-define(DECIDE_MS, 5000).
%% How many of them work at once.
-define(DECIDERS, 16).
%% How long a monitor on the process of a silent node has for its answer.
-define(LOOK_MS, 5000).
%% How often a name is asked for again whose process here is just dying.
-define(AGAIN, 5).

%% @doc Makes the table; the caller owns it. Its rows are `{{Group, Name}, Pid, Meta, Whose}', with
%% `{own, Id}' of the group where this node has the name in the world.
-spec create_table() -> ok.
create_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ok.

%% @doc Starts the process, which needs those of the groups and of the links. With `free'
%% as `mesh' a free node shares its names with the free nodes that it is connected
%% with, and is connected with all that these know; with `alone', or on a hidden node, its names
%% are its own.
-spec start_link(options()) -> gen_server:start_ret().
start_link(Given) ->
    Options = maps:merge(defaults(), Given),
    atoll_interpreter:start_link(#{
        name => ?MODULE,
        protocol => atoll_name_core,
        process => ?MODULE,
        config => #{
            self => node(),
            incarnation => erlang:system_time(microsecond),
            %% Who has waited for the process to start is answered as if it had always run.
            published => atoll_group:own(),
            held => [{Id, N, Pid, Meta} || {{_, N}, Pid, Meta, {own, Id}} <- ets:tab2list(?MODULE)],
            options =>
                case is_hidden() of
                    true -> Options#{free := alone};
                    false -> Options
                end
        }
    }).

%% How the distribution was started, by the arguments or by a call later, net_kernel
%% keeps for itself; without it the arguments have to do.
is_hidden() ->
    case persistent_term:get({net_kernel, publish_type}, unknown) of
        hidden -> true;
        normal -> false;
        unknown -> is_flag(hidden, true) orelse is_flag(dist_listen, false)
    end.

is_flag(Flag, Value) ->
    case init:get_argument(Flag) of
        {ok, [[] | _]} -> Value;
        {ok, [[Said | _] | _]} -> Said =:= atom_to_list(Value);
        error -> false
    end.

%% @doc Options that suit most.
-spec defaults() -> atoll_name_core:options().
defaults() ->
    #{
        answer_ms => 3000,
        operation_ms => 10000,
        tick_ms => 50,
        resend_ms => 500,
        batch => 200,
        window => 16,
        max_backlog => 100000,
        max_operations => 10000,
        max_names => 1000000,
        max_bytes => 4096,
        free => mesh,
        seek_ms => 10000,
        max_sought => 1000,
        remind_ms => 5000,
        rules => #{},
        rule => random_exit
    }.

%% @doc Gives the process that name in a group of this node, without metadata.
-spec register(group(), name(), pid()) -> yes | {no, reason()}.
register(Group, Name, Pid) ->
    register(Group, Name, Pid, undefined).

%% @doc Gives the process that name in a group of this node. After `yes' every live
%% member has it. The process is on a member, and has no other name in the group.
-spec register(group(), name(), pid(), Meta :: term()) -> yes | {no, reason()}.
register(Group, Name, Pid, Meta) when is_atom(Group), is_pid(Pid) ->
    register(Group, Name, Pid, Meta, ?AGAIN).

register(Group, Name, Pid, Meta, Left) ->
    Before = ?MODULE:whereis(Group, Name),
    case is_dead(Pid) orelse call({register, Group, Name, Pid, Meta}) of
        true ->
            {no, no_process};
        {no, name_or_pid_already_registered} = No when Left > 0 ->
            %% A supervisor may start a process anew before the news of the death of
            %% the last one is here; it may have come since.
            case is_dead(Before) orelse is_dead(?MODULE:whereis(Group, Name)) of
                true -> register(Group, Name, Pid, Meta, Left - 1);
                false -> No
            end;
        Answer ->
            answer(Answer)
    end.

is_dead(Pid) -> is_pid(Pid) andalso node(Pid) =:= node() andalso not is_process_alive(Pid).

%% @doc Gives a process outside of Erlang that name, on this node's account: it goes when
%% the connection with the process's node does. One on a member is registered as by
%% register/3.
-spec register_external(group(), name(), pid()) -> yes | {no, reason()}.
register_external(Group, Name, Pid) ->
    register_external(Group, Name, Pid, undefined).

%% @doc The same with metadata.
-spec register_external(group(), name(), pid(), Meta :: term()) -> yes | {no, reason()}.
register_external(Group, Name, Pid, Meta) when is_atom(Group), is_pid(Pid) ->
    case is_dead(Pid) of
        true -> {no, no_process};
        false -> answer(call({external, Group, Name, Pid, Meta}))
    end.

%% @doc As register/3, whoever has the name now.
-spec re_register(group(), name(), pid()) -> yes | {no, reason()}.
re_register(Group, Name, Pid) ->
    re_register(Group, Name, Pid, undefined).

%% @doc As register/4, whoever has the name now.
-spec re_register(group(), name(), pid(), Meta :: term()) -> yes | {no, reason()}.
re_register(Group, Name, Pid, Meta) when is_atom(Group), is_pid(Pid) ->
    case is_dead(Pid) of
        true -> {no, no_process};
        false -> answer(call({re_register, Group, Name, Pid, Meta}))
    end.

%% @doc Nobody has the name any more, on any live member.
-spec unregister(group(), name()) -> ok | {no, reason()}.
unregister(Group, Name) when is_atom(Group) ->
    case call({unregister, Group, Name}) of
        ok -> ok;
        {no, _} = No -> No
    end.

answer(yes) -> yes;
answer({no, _} = No) -> No.

call(Request) ->
    case atoll_interpreter:ask(?MODULE, Request) of
        {ok, Answer} -> Answer;
        {error, restarting} -> {no, restarting};
        {error, not_running} -> {no, s_group_not_runnig}
    end.

%% @doc The process of that name in a group of this node.
-spec whereis(group(), name()) -> pid() | undefined.
whereis(Group, Name) ->
    try ets:lookup(?MODULE, {Group, Name}) of
        [{_, Pid, _, _}] -> Pid;
        [] -> undefined
    catch
        %% The application does not run.
        error:badarg -> undefined
    end.

%% @doc The process of that name, in any group: in one of this node as whereis/2, but not a process
%% of this node that is dead already; in another one as a member has it, which is
%% asked. Says why there is none: nobody has the name (`no_such_name'), or nobody can be asked.
-spec find(group(), name()) -> {ok, pid()} | {error, error()}.
find(Group, Name) ->
    Pid = ?MODULE:whereis(Group, Name),
    case is_pid(Pid) andalso not is_dead(Pid) of
        true -> {ok, Pid};
        false -> find_where(kind(Group), Group, Name)
    end.

find_where(own, _Group, _Name) -> {error, no_such_name};
find_where(other, Group, Name) -> atoll_name_remote:find(Group, Name);
find_where({error, _} = Error, _Group, _Name) -> Error.

%% The free nodes' group is one of this node while it is in no other; from elsewhere nobody
%% knows who is in it.
kind(Group) ->
    case {ets:whereis(atoll_group), atoll_group:own(Group), Group} of
        {undefined, _, _} -> {error, s_group_not_runnig};
        {_, {ok, _}, _} -> own;
        {_, none, undefined} ->
            case atoll_group:own() of
                [] -> own;
                [_ | _] -> {error, no_information_about_remote_group}
            end;
        {_, none, _} -> other
    end.

%% @doc What this node tells another one of a group: what it has, if it is a member.
-spec told(group(), {name, name()}) -> {ok, pid() | undefined} | none;
          (group(), names) -> {ok, [name()]} | none.
told(Group, Question) ->
    case atoll_group:own(Group) of
        {ok, _} -> {ok, tell(Group, Question)};
        none -> none
    end.

tell(Group, {name, Name}) ->
    Pid = ?MODULE:whereis(Group, Name),
    case is_dead(Pid) of
        true -> undefined;
        false -> Pid
    end;
tell(Group, names) ->
    names(Group).

%% @doc As whereis/2, with the metadata.
-spec lookup(group(), name()) -> {ok, pid(), Meta :: term()} | none.
lookup(Group, Name) ->
    try ets:lookup(?MODULE, {Group, Name}) of
        [{_, Pid, Meta, _}] -> {ok, Pid, atoll_name_rules:users(Meta)};
        [] -> none
    catch
        error:badarg -> none
    end.

%% @doc Sends a message to the process of that name; other nodes call this too.
-spec deliver(group(), name(), Message :: term()) -> pid() | undefined.
deliver(Group, Name, Message) ->
    case ?MODULE:whereis(Group, Name) of
        undefined ->
            undefined;
        Pid ->
            Pid ! Message,
            Pid
    end.

%% @doc The names of all groups of this node, sorted.
-spec names() -> [{group(), name()}].
names() ->
    try
        lists:sort(ets:select(?MODULE, [{{'$1', '_', '_', '_'}, [], ['$1']}]))
    catch
        error:badarg -> []
    end.

%% @doc The names in a group of this node, sorted.
-spec names(group()) -> [name()].
names(Group) ->
    try
        %% In a pattern a group called '_' or '$1' would stand for any.
        lists:sort(ets:select(?MODULE, [{{{'$1', '$2'}, '_', '_', '_'}, [{'=:=', '$1', {const, Group}}], ['$2']}]))
    catch
        error:badarg -> []
    end.

%% @doc The names in a group of this node with their processes and metadata, sorted.
-spec entries(group()) -> [{name(), pid(), Meta :: term()}].
entries(Group) ->
    try
        Rows = ets:select(?MODULE, [{{{'$1', '$2'}, '$3', '$4', '_'}, [{'=:=', '$1', {const, Group}}], [{{'$2', '$3', '$4'}}]}]),
        lists:sort([{Name, Pid, atoll_name_rules:users(Meta)} || {Name, Pid, Meta} <- Rows])
    catch
        error:badarg -> []
    end.

%% @doc The names of any group, sorted: of one of this node those in its table, of another one those
%% that a member tells; or why there is nobody to tell them.
-spec names_of(group()) -> {ok, [name()]} | {error, error()}.
names_of(Group) ->
    case kind(Group) of
        own -> {ok, names(Group)};
        other -> atoll_name_remote:names(Group);
        {error, _} = Error -> Error
    end.

%% @doc This node and those with which it shares the names of the group `undefined', sorted;
%% none if it is in a group.
-spec free_nodes() -> [node()].
free_nodes() ->
    case call(free_nodes) of
        {no, _} -> [node()];
        Nodes -> Nodes
    end.

%% @doc How many names and operations there are, and what was counted.
-spec info() -> atoll_name_core:counters() | {error, s_group_not_runnig | restarting}.
info() ->
    case call(info) of
        {no, Why} -> {error, Why};
        Counters -> Counters
    end.

%% @doc Tells the peers that this process is about to be stopped.
-spec bye() -> ok.
bye() ->
    case call(bye) of
        ok ->
            %% What is said waits for nothing but what came before this.
            _ = info(),
            ok;
        {no, _} ->
            ok
    end.

%% @doc What gen_server and others call to register `{via, atoll_name, {Group, Name}}'. They take
%% `no' alone and say `{already_started, undefined}', also of a group that is mistyped: why it is
%% not given stands in the log, unless somebody has it.
-spec register_name({group(), name()}, pid()) -> yes | no.
register_name({Group, Name}, Pid) ->
    case register(Group, Name, Pid) of
        yes ->
            yes;
        {no, name_or_pid_already_registered} ->
            no;
        {no, Reason} ->
            logger:warning(#{what => name_not_given, group => Group, name => Name, reason => Reason}),
            no
    end.

%% @doc As unregister/2.
-spec unregister_name({group(), name()}) -> ok | {no, reason()}.
unregister_name({Group, Name}) ->
    unregister(Group, Name).

%% @doc As find/2. A supervisor starts the next process before the news of the death of the last
%% one may be here, and whoever starts it looks here first: so a dead one is not found.
-spec whereis_name({group(), name()}) -> pid() | undefined.
whereis_name({Group, Name}) ->
    case find(Group, Name) of
        {ok, Pid} -> Pid;
        {error, _} -> undefined
    end.

%% @doc Sends a message to the process of that name, found as by find/2, from here; exits with
%% `badarg' if there is none, as `global' does. Messages of one process to another keep their order.
-spec send({group(), name()}, Message :: term()) -> pid().
send({Group, Name} = Key, Message) ->
    case find(Group, Name) of
        {ok, Pid} ->
            Pid ! Message,
            Pid;
        {error, _} ->
            exit({badarg, {Key, Message}})
    end.

%% @private
-spec open(atoll_name_core:config()) -> world().
open(_Config) ->
    %% Those of other nodes they tell again.
    _ = ets:select_delete(?MODULE, [{{'_', '_', '_', other}, [], [true]}]),
    ok = atoll_interpreter:subscribe(atoll_group),
    %% What has changed before that.
    ok = atoll_interpreter:cast(self(), {groups, atoll_group:own()}),
    ok = atoll_link:watch(),
    #world{}.

%% @private
-spec act(atoll_protocol:effect(), world()) -> world().
act({act, {insert, Group, Name, Pid, Meta, Whose}}, World) ->
    true = ets:insert(?MODULE, {{Group, Name}, Pid, Meta, Whose}),
    World;
act({act, {delete, Group, Name}}, World) ->
    true = ets:delete(?MODULE, {Group, Name}),
    World;
act({act, {monitor, Pid}}, #world{monitors = Monitors} = World) ->
    World#world{monitors = Monitors#{Pid => monitor_now(Pid)}};
act({act, {demonitor, Pid}}, #world{monitors = Monitors} = World) ->
    case maps:take(Pid, Monitors) of
        {Ref, Left} ->
            true = erlang:demonitor(Ref, [flush]),
            World#world{monitors = Left};
        %% Its death is why.
        error ->
            World
    end;
act({want, Node}, World) ->
    ok = atoll_link:want(Node),
    World;
act({unwant, Node}, World) ->
    ok = atoll_link:unwant(Node),
    World;
act({act, {look_for, Node, Mark}}, #world{looking = Looking} = World) ->
    case lists:member(Node, maps:values(Looking)) of
        true ->
            World;
        false ->
            %% In a process of its own: a monitor on a node waits while its connection is busy.
            {_, Ref} = spawn_monitor(?MODULE, look_for, [Node, Mark, self()]),
            World#world{looking = Looking#{Ref => Node}}
    end;
act({act, {tell, Pid, Told, Conflict}}, World) ->
    _ = [Pid ! Message || {ok, Message} <- [Told]],
    conflict(Pid, Conflict),
    World;
act({act, {kill, Pid, Conflict}}, World) ->
    true = exit(Pid, kill),
    conflict(Pid, Conflict),
    World;
act({act, {decide, Key, Function}}, #world{undecided = Undecided} = World) ->
    decide_next(World#world{undecided = queue:in({Key, Function}, Undecided)}).

decide_next(#world{deciding = ?DECIDERS} = World) ->
    World;
decide_next(#world{deciding = Deciding, undecided = Undecided} = World) ->
    case queue:out(Undecided) of
        {empty, _} ->
            World;
        {{value, {Key, Function}}, Left} ->
            Self = self(),
            _ = spawn(fun() -> Self ! {decided, Key, decide(Function)} end),
            World#world{deciding = Deciding + 1, undecided = Left}
    end.

%% Of a process that is dead already the runtime tells later than this process tells itself
%% anything, and so after the core has gone on.
monitor_now(Pid) ->
    case is_dead(Pid) of
        true ->
            Ref = make_ref(),
            _ = self() ! {'DOWN', Ref, process, Pid, noproc},
            Ref;
        false ->
            erlang:monitor(process, Pid)
    end.

%% @private
-spec look_for(node(), Mark :: term(), From :: pid()) -> term().
look_for(Node, Mark, From) ->
    %% Just before it: a monitor on a node that is gone, and starts again, would make a connection that nobody wants.
    case lists:member(Node, nodes(connected)) of
        true -> looked_for(Node, Mark, From);
        false -> unknown
    end.

looked_for(Node, Mark, From) ->
    Ref = erlang:monitor(process, {?MODULE, Node}),
    receive
        {'DOWN', Ref, process, _, noproc} -> From ! {absent, Node, Mark};
        {'DOWN', Ref, process, _, _} -> unknown
    after ?LOOK_MS -> unknown
    end.

conflict(Loser, {name_conflict, Group, Name, Winner}) ->
    atoll_events:emit(name_conflict, #{group => Group, name => Name, loser => Loser, winner => Winner}).

%% The function is the user's: it may fail, or never end.
decide({Module, Function, Args}) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> Self ! {self(), apply(Module, Function, Args)} end),
    receive
        {Pid, Winner} -> Winner;
        {'DOWN', Ref, process, Pid, _Failed} -> none
    after ?DECIDE_MS ->
        true = exit(Pid, kill),
        none
    end.

%% @private
-spec event(term(), world()) -> {[atoll_hidden:outside()], world()}.
event({absent, _Node, _Mark} = Absent, World) ->
    {[{cast, Absent}], World};
event({'DOWN', Ref, process, _, _}, #world{looking = Looking} = World) when is_map_key(Ref, Looking) ->
    {[], World#world{looking = maps:remove(Ref, Looking)}};
event({'DOWN', Ref, process, Pid, _Reason}, #world{monitors = Monitors} = World) ->
    #{Pid := Ref} = Monitors,
    {[{cast, {died, Pid}}], World#world{monitors = maps:remove(Pid, Monitors)}};
event({decided, _, _} = Decided, #world{deciding = Deciding} = World) ->
    {[{cast, Decided}], decide_next(World#world{deciding = Deciding - 1})};
event({atoll, atoll_link, {unreachable, _Node}}, World) ->
    {[], World};
event({atoll, atoll_group, {making, Flag}}, World) ->
    %% Its groups first: when one is made, this node is free no more.
    {[{cast, {groups, atoll_group:own()}}, {cast, {making, Flag}}], World};
event({atoll, atoll_group, _Notice}, World) ->
    {[{cast, {groups, atoll_group:own()}}], World};
event(Message, World) ->
    {atoll_link:heard(Message), World}.

%% @private
-spec notice(term(), world()) -> world().
notice({silent, Node}, World) ->
    ok = atoll_events:emit(names_silent, #{node => Node}),
    World;
notice({heard, Node}, World) ->
    ok = atoll_events:emit(names_heard, #{node => Node}),
    World;
notice({registered, _Group, _Name, _Pid}, World) ->
    World.
