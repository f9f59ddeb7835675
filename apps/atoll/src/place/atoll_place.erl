%% SPDX-License-Identifier: Apache-2.0
%% @doc Placing processes: on a node that is chosen by what it is like and how far it is.
%%
%% ```
%% spawn(atoll_place:node(#{where => "mem_free > 1000000", near => node()}), fun work/0)
%% '''
%%
%% == What is wanted ==
%% A condition on attributes alone, or a map:
%% <dl>
%% <dt>`where'</dt><dd>The condition, as a term or a text ({@link atoll_predicate}).</dd>
%% <dt>`among'</dt><dd>`members', `{s_group, Name}' or a list of nodes.</dd>
%% <dt>`near', `how', `within'</dt><dd>The nearer to this node the better, by the `declared',
%%   `measured' or `estimated' distance ({@link atoll_distance}), and not farther than that.</dd>
%% <dt>`rank'</dt><dd>What is better, in place of `near' (`atoll_attr_rank'); `within' is
%%   its bound then.</dd>
%% <dt>`deadline', `max_age', `slack', `claim'</dt><dd>As {@link atoll_attr} has them.</dd>
%% <dt>`on_misfit'</dt><dd>What becomes of a placed process whose node does not meet `where' any
%%   more: `event', the default, has it told; `stop' has it ended as well; `off' has nobody
%%   look. See {@link watch/2}.</dd>
%% <dt>`start_timeout'</dt><dd>In how many milliseconds a process is placed and started, all
%%   tries together: 5000 unless it is said.</dd>
%% <dt>`shutdown'</dt><dd>How long a process under a supervisor has for its end where that does
%%   not wait for it, before it is killed: when it is ended for a misfit, or its supervisor is
%%   lost. As in a child specification; start_child/3 takes that one's, start_link/2 has 5000
%%   unless it is said.</dd>
%% </dl>
%%
%% == Under a supervisor ==
%% With `start => {atoll_place, start_link, [Params, {M, F, Args}]}' a child is started on a node
%% that is chosen then, and on one that is chosen anew at each restart. The supervisor's child is
%% a process on that node, which stands for the true one (`atoll_place_bridge'): it ends as
%% that does, and hands on how the supervisor ends it. Calls to it go on to the true one, so that
%% a supervisor may be placed too. For `simple_one_for_one' there is start_link/3.
%%
%% Promised: a node that does not answer, or is lost meanwhile, is passed over for the next that
%% fits, three nodes at most; nothing is started later on one that was passed over. Choosing keeps no
%% connection; a process under a supervisor, or one that is watched, keeps the one with its node
%% for as long as it is there.
%%
%% Not promised: that a node still fits when the process has started there. What the start
%% function itself refuses is not tried elsewhere.
-module(atoll_place).

-export([nodes/1, choose/1, node/1, start_link/2, start_link/3, start_child/3, child/1, watch/2, unwatch/1]).
-export([format_error/1, format_error/2]).

-compile({no_auto_import, [node/1, nodes/1]}).

-export_type([params/0, choice/0, error/0]).

-type params() :: atoll_place_choice:params().
-type choice() :: atoll_place_choice:choice().

-type error() ::
    atoll_place_choice:error()
    | {no_node_fits, none_fits()}
    %% These fit by what is known of them, but have not said so when they were asked.
    | {none_has_answered, [node()]}
    %% Each node that was chosen, and why nothing was started there.
    | {not_started, [{node(), silent | lost}]}
    %% The start function did not return in time on that node.
    | {start_timeout, node(), Ms :: pos_integer()}
    | {no_code, node(), mfa()}
    | {start_failed, node(), Reason :: term()}
    | {not_a_child_spec, term()}
    | {not_a_process, term()}
    | {not_looked_at, off}
    | {too_many_watched, Max :: pos_integer()}
    | not_running.

-type supervisor_ref() :: atom() | pid() | {atom(), node()} | {global, term()} | {via, module(), term()}.

-type none_fits() :: #{
    %% The condition, as text.
    where := string(),
    silent := [node()],
    unreachable := [node()]
}.

%% How many nodes are tried.
-define(TRIES, 3).
-define(ASK_MS, 5000).
%% How many nodes a sentence names.
-define(NAMED, 5).

%% @doc All nodes that fit, the best first.
-spec nodes(params()) -> {ok, choice()} | {error, error()}.
nodes(Params) ->
    case atoll_place_choice:new(Params) of
        {ok, Wish} -> atoll_place_choice:nodes(Wish);
        {error, _} = Error -> Error
    end.

%% @doc One of the best nodes that fit. Those who choose at the same moment are spread over them.
-spec choose(params()) -> {ok, node(), choice()} | {none, choice()} | {error, error()}.
choose(Params) ->
    case atoll_place_choice:new(Params) of
        {ok, Wish} -> atoll_place_choice:one(Wish);
        {error, _} = Error -> Error
    end.

%% @doc The node, where a node is needed: `spawn(atoll_place:node(Params), Fun)'. It raises
%% `{no_node_fits, _}' where none does, and `{place, Error}' for an error of choose/1.
-spec node(params()) -> node().
node(Params) ->
    case atoll_place_choice:new(Params) of
        {ok, Wish} ->
            case atoll_place_choice:one(Wish) of
                {ok, Node, _} -> Node;
                {none, Choice} -> raise(raised(none(Wish, Choice)), Params);
                {error, Error} -> raise({place, Error}, Params)
            end;
        {error, Error} ->
            raise({place, Error}, Params)
    end.

-spec raise(term(), params()) -> no_return().
raise(Reason, Params) ->
    erlang:error(Reason, [Params], [{error_info, #{module => ?MODULE}}]).

raised({no_node_fits, _} = Error) -> Error;
raised(Error) -> {place, Error}.

none(_Wish, #{nodes := [_ | _] = Nodes}) ->
    {none_has_answered, Nodes};
none(Wish, #{silent := Silent, unreachable := Unreachable}) ->
    Where = unicode:characters_to_list(atoll_place_choice:what(Wish)),
    {no_node_fits, #{where => Where, silent => Silent, unreachable => Unreachable}}.

%% @doc Starts a process on a node that is chosen now, for a supervisor: `M:F(Args)' is called there,
%% and is to start the process linked and return `{ok, Pid}', as a supervisor's start functions do.
%% The answer is `{ok, Child, Pid}', or `{ok, Child, {Pid, Info}}' if the function gave that
%% too: Pid is the process, and Child what the supervisor holds for it. An error of placing is
%% `{error, {place, Error}}', see format_error/1; others are those of the start function.
-spec start_link(params(), atoll_place_bridge:mfargs()) ->
    {ok, Child :: pid(), pid() | {pid(), Info :: term()}} | ignore | {error, {place, error()} | term()}.
start_link(Params, {M, F, Args} = MFArgs) when is_atom(M), is_atom(F), is_list(Args) ->
    case atoll_place_choice:new(Params) of
        {ok, #{start_timeout := Ms} = Wish} -> start(Wish, Wish, MFArgs, now_ms() + Ms, []);
        {error, Error} -> {error, {place, Error}}
    end.

%% @doc As start_link/2, with one more argument for the function, the last: the one that
%% `supervisor:start_child(Supervisor, [More])' gives to a child of `simple_one_for_one'.
-spec start_link(params(), atoll_place_bridge:mfargs(), More :: term()) ->
    {ok, Child :: pid(), pid() | {pid(), Info :: term()}} | ignore | {error, {place, error()} | term()}.
start_link(Params, {M, F, Args}, More) ->
    start_link(Params, {M, F, Args ++ [More]}).

%% Narrowed is the wish without the nodes that were passed over.
start(#{deadline := Deadline, start_timeout := Ms, shutdown := Shutdown} = Wish, Narrowed, MFArgs, Until, Tried) ->
    case atoll_place_choice:one(atoll_place_choice:within_ms(left(Until), Narrowed)) of
        {ok, Node, #{nodes := Fitting}} ->
            Left = left(Until),
            case atoll_place_bridge:start(Node, MFArgs, #{answer => min(Deadline, Left), all => Left, shutdown => Shutdown}) of
                {done, {ok, Bridge, Info}} ->
                    ok = watch_started(Bridge, Info, Wish),
                    {ok, Bridge, Info};
                {done, Answer} ->
                    Answer;
                {passed, Why} ->
                    More = [{Node, Why} | Tried],
                    start_next(Fitting -- [N || {N, _} <- More], Wish, MFArgs, Until, More);
                late ->
                    {error, {place, {start_timeout, Node, Ms}}};
                {no_code, MFA} ->
                    {error, {place, {no_code, Node, MFA}}};
                {failed, Reason} ->
                    {error, {place, {start_failed, Node, Reason}}}
            end;
        {none, Choice} when Tried =:= [] ->
            {error, {place, none(Wish, Choice)}};
        {none, _} ->
            not_started(Tried);
        {error, Error} ->
            {error, {place, Error}}
    end.

start_next([_ | _] = Nodes, Wish, MFArgs, Until, Tried) when length(Tried) < ?TRIES ->
    case now_ms() < Until of
        true -> start(Wish, atoll_place_choice:only(Nodes, Wish), MFArgs, Until, Tried);
        false -> not_started(Tried)
    end;
start_next(_, _Wish, _MFArgs, _Until, Tried) ->
    not_started(Tried).

not_started(Tried) ->
    {error, {place, {not_started, lists:reverse(Tried)}}}.

left(Until) -> max(1, Until - now_ms()).

now_ms() -> erlang:monotonic_time(millisecond).

%% Of one that cannot be watched the log says so; it runs all the same.
watch_started(Bridge, Info, #{on_misfit := OnMisfit} = Wish) ->
    Pid =
        case Info of
            {P, _} -> P;
            P -> P
        end,
    Ending =
        case OnMisfit of
            stop -> {bridge, Bridge};
            _ -> none
        end,
    case is_watchable(Wish) andalso atoll_place_watch:watch(make_ref(), Pid, Wish, Ending) of
        {error, Error} ->
            Why = unicode:characters_to_list(format_error(Error)),
            logger:warning(#{what => placed_process_not_watched, pid => Pid, why => Why});
        _ ->
            ok
    end.

is_watchable(#{on_misfit := off}) ->
    false;
is_watchable(Wish) ->
    {_, Names} = atoll_place_choice:condition(Wish),
    Names =/= [].

%% @doc Adds a child to a supervisor, as `supervisor:start_child/2' with a whole child
%% specification, on a node that is chosen by these parameters, and chosen anew when it is
%% restarted. It returns what that does: `{ok, Child, Pid}' as start_link/2 says, or an error, with the
%% reason and the child as the supervisor has it; format_error/1 takes that whole.
-spec start_child(supervisor_ref(), params(), supervisor:child_spec()) ->
    supervisor:startchild_ret() | {error, {place, error()}}.
start_child(Supervisor, Params, Spec) ->
    case {atoll_place_choice:new(Params), placed(Params, Spec)} of
        {{error, Error}, _} -> {error, {place, Error}};
        {{ok, _}, {ok, Placed}} -> supervisor:start_child(Supervisor, Placed);
        {{ok, _}, error} -> {error, {place, {not_a_child_spec, Spec}}}
    end.

placed(Params, #{start := {M, F, Args} = Start} = Spec) when is_atom(M), is_atom(F), is_list(Args) ->
    Usual =
        case Spec of
            #{type := supervisor} -> infinity;
            #{} -> 5000
        end,
    {ok, Spec#{start := {?MODULE, start_link, [ending(maps:get(shutdown, Spec, Usual), Params), Start]}}};
placed(Params, {Id, {M, F, Args} = Start, Restart, Shutdown, Type, Modules}) when is_atom(M), is_atom(F), is_list(Args) ->
    {ok, {Id, {?MODULE, start_link, [ending(Shutdown, Params), Start]}, Restart, Shutdown, Type, Modules}};
placed(_, _) ->
    error.

%% Whatever is wrong with it is for the supervisor to say. No time at all is as good as a kill.
ending(0, Params) -> ending(brutal_kill, Params);
ending(Shutdown, Params) when is_map(Params) -> maps:merge(#{shutdown => Shutdown}, Params);
ending(Shutdown, Where) -> #{where => Where, shutdown => Shutdown}.

%% @doc The process for which a supervisor's child stands that start_link/2 has started; `none'
%% for one that has ended, or whose node does not answer.
-spec child(Child :: pid()) -> {ok, pid()} | none.
child(Child) ->
    atoll_place_bridge:child(Child, ?ASK_MS).

%% @doc From now on somebody looks whether the process's node still meets `where': every
%% `place_check_ms', the key of the application. When it has not for two looks in a row, those who
%% have subscribed on this node to `misplaced' get `{atoll, misplaced, Details}', once, with
%% `pid', `node', the condition as `where', the `values' that were seen, and this reference as
%% `watch'. With `on_misfit => stop' the process is then ended with `{shutdown, misplaced}',
%% once another node fits and its own still does not. With `off' there is nothing to do here,
%% which is an error. The other parameters mean nothing here. A node that does not answer is
%% not known to be unfit. A process is forgotten when it ends or the connection with its node is
%% lost. What start_link/2 has started is watched already.
-spec watch(pid(), params()) -> {ok, reference()} | {error, error()}.
watch(Pid, Params) when is_pid(Pid) ->
    case atoll_place_choice:new(Params) of
        {ok, #{on_misfit := off}} ->
            {error, {not_looked_at, off}};
        {ok, #{on_misfit := OnMisfit} = Wish} ->
            Ref = make_ref(),
            Ending =
                case OnMisfit of
                    stop -> direct;
                    _ -> none
                end,
            case atoll_place_watch:watch(Ref, Pid, Wish, Ending) of
                ok -> {ok, Ref};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end;
watch(Other, _Params) ->
    {error, {not_a_process, Other}}.

%% @doc Nobody looks any more, and a process of which the end was only being considered is let be.
-spec unwatch(reference()) -> ok.
unwatch(Ref) when is_reference(Ref) ->
    atoll_place_watch:unwatch(Ref).

%% @doc One sentence for an error, also for one in `{place, Error}', as it comes from a supervisor.
-spec format_error(error() | {place, error()} | {{place, error()}, Child :: term()}) -> unicode:chardata().
format_error({place, Error}) ->
    format_error(Error);
format_error({{place, Error}, _Child}) ->
    format_error(Error);
format_error({no_node_fits, #{where := Where, silent := Silent, unreachable := Unreachable}}) ->
    [
        io_lib:format("no node fits ~ts", [Where]),
        [["; ", names(Silent), " did not answer"] || Silent =/= []],
        [["; ", names(Unreachable), " could not be reached"] || Unreachable =/= []]
    ];
format_error({none_has_answered, Nodes}) ->
    {Some, More} = lists:split(min(?NAMED, length(Nodes)), Nodes),
    [
        "nodes fit by what is known of them, but none that was asked has answered in time: ",
        names(Some),
        [io_lib:format(" and ~b more", [length(More)]) || More =/= []]
    ];
format_error({not_started, Tried}) ->
    ["no node that fits could be used: ", lists:join(", ", [[atom_to_list(Node), why(Why)] || {Node, Why} <- Tried])];
format_error({start_timeout, Node, Ms}) ->
    io_lib:format("the start on ~ts did not end within start_timeout, ~b ms for placing and starting", [Node, Ms]);
format_error({no_code, Node, {M, F, Arity}}) ->
    io_lib:format("~ts has no function ~tw:~tw/~b: the code of the application is not there", [Node, M, F, Arity]);
format_error({start_failed, Node, Reason}) ->
    io_lib:format("nothing could be started on ~ts: ~0tP", [Node, Reason, 12]);
format_error({not_a_child_spec, Term}) ->
    io_lib:format("~0tP is no child specification with its start function", [Term, 12]);
format_error({not_a_process, Term}) ->
    io_lib:format("~0tP is no process", [Term, 12]);
format_error({not_looked_at, off}) ->
    "with on_misfit => off nobody looks at a process, so it is not watched";
format_error({too_many_watched, Max}) ->
    io_lib:format("this node watches ~b placed processes already", [Max]);
format_error(not_running) ->
    "atoll does not run on this node";
format_error(Error) ->
    atoll_place_choice:format_error(Error).

names(Nodes) -> lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).

why(silent) -> " did not answer";
why(lost) -> " was lost".

%% @doc What the shell says of an error that node/1 raised.
-spec format_error(term(), erlang:stacktrace()) -> #{general => unicode:chardata()}.
format_error({no_node_fits, _} = Error, _Stack) -> #{general => format_error(Error)};
format_error({place, _} = Error, _Stack) -> #{general => format_error(Error)};
format_error(_Other, _Stack) -> #{}.
