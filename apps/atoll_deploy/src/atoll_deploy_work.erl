%% SPDX-License-Identifier: Apache-2.0
%% @doc Does what is to be done on hosts: each host in a process of its own, some nodes at a time on each. A host that
%% cannot be reached, or says no, fails its own nodes, and the others go on.
%%
%% What the nodes are to be is written down before a host is asked, and what became of them at once when it says so. A
%% master that ends in between leaves nodes that are known, and what it had begun may be done again.
-module(atoll_deploy_work).

-export([do/3, look/2, sweep/3, log/3, asked/3, where/2, mark/2, dir/2]).

-export_type([job/0, context/0, result/0, phases/0]).

%% Who asks a host ends by exit, with what it was told.
-dialyzer({nowarn_function, asked/3}).

-type job() :: {start | stop | {replace, Before :: string()}, atoll_deploy_plan:row()}.
%% One that is replaced is stopped by the release that it had before.

-type result() :: {Node :: string(), ok | {said, unicode:chardata()} | {error, unicode:chardata()}}.
%% Of one that is said something of it was done.

-type phases() :: #{Host :: string() => #{connect | upload | nodes => Ms :: non_neg_integer()}}.

-type context() :: #{
    store := atoll_deploy_store:store(),
    id := string(),
    %% Things by name, so that nothing is looked up for each node.
    releases := #{string() => atoll_deploy_thing:thing()},
    domains := #{string() => atoll_deploy_thing:thing()},
    providers := #{string() => atoll_deploy_thing:thing()},
    family := atoll_deploy_thing:thing(),
    cookie := atoll_deploy_family:secret(),
    contacts := [string()],
    %% Is told how many are done.
    tell := fun((Done :: non_neg_integer(), Total :: non_neg_integer()) -> term())
}.

-define(CHANNELS, 4).

%% @doc Does it all, and says what became of each node, and how long each host took.
-spec do([job()], context(), phases()) -> {[result()], phases()}.
do([], _, Phases) ->
    {[], Phases};
do(Jobs, #{store := Store, tell := Tell} = Context, Phases) ->
    ok = atoll_deploy_store:write(Store, [begun(Job) || Job <- Jobs]),
    Hosts = maps:groups_from_list(fun({_, Row}) -> key(Row) end, Jobs),
    Self = self(),
    _ = Tell(0, length(Jobs)),
    Workers = maps:from_list([
        begin
            {_, Ref} = spawn_monitor(fun() -> host(Self, Key, HostJobs, Context) end),
            {Ref, HostJobs}
        end
     || {Key, HostJobs} <- maps:to_list(Hosts)
    ]),
    collect(Workers, #{results => [], phases => Phases, total => length(Jobs)}, Context).

key(#{domain := Domain, host := Host}) -> {Domain, Host}.

begun({stop, #{node := Node} = Row}) -> {{row, Node}, {value, (maps:remove(why, Row))#{state => stopping}}};
begun({_, #{node := Node} = Row}) -> {{row, Node}, {value, (maps:remove(why, Row))#{state => starting}}}.

ended(Job, {said, _}) -> ended(Job, ok);
ended({stop, #{node := Node}}, ok) -> {{row, Node}, delete};
ended({stop, #{node := Node} = Row}, {error, Why}) -> {{row, Node}, {value, Row#{state => stopping, why => text(Why)}}};
ended({_, #{node := Node} = Row}, ok) -> {{row, Node}, {value, (maps:remove(why, Row))#{state => up}}};
ended({_, #{node := Node} = Row}, {error, Why}) -> {{row, Node}, {value, Row#{state => failed, why => text(Why)}}}.

text(Why) -> unicode:characters_to_binary(Why).

collect(Workers, #{results := Results, phases := Phases}, _) when map_size(Workers) =:= 0 ->
    {lists:sort(Results), Phases};
collect(Workers, #{results := Results, phases := Phases, total := Total} = State, #{store := Store, tell := Tell} = Context) ->
    receive
        {?MODULE, done, {_, #{node := Node}} = Job, Result} ->
            ok = atoll_deploy_store:write(Store, [ended(Job, Result)]),
            _ = Tell(length(Results) + 1, Total),
            collect(Workers, State#{results := [{Node, Result} | Results]}, Context);
        {?MODULE, phase, Host, Phase, Ms} ->
            Of = maps:get(Host, Phases, #{}),
            collect(Workers, State#{phases := Phases#{Host => Of#{Phase => maps:get(Phase, Of, 0) + Ms}}}, Context);
        {'DOWN', Ref, process, _, Reason} when is_map_key(Ref, Workers) ->
            %% Whatever it did not come to say.
            Left = [Job || {_, #{node := Node}} = Job <- maps:get(Ref, Workers), not lists:keymember(Node, 1, Results)],
            _ = [self() ! {?MODULE, done, Job, {error, io_lib:format("a fault of the master: ~0tP", [Reason, 12])}} || Job <- Left],
            case Left of
                [] -> collect(maps:remove(Ref, Workers), State, Context);
                _ ->
                    %% They are heard before the end.
                    self() ! {'DOWN', Ref, process, self(), normal},
                    collect(Workers, State, Context)
            end
    end.

%% A host

host(Master, {Domain, Host}, Jobs, Context) ->
    Said = fun(Phase, Fun) ->
        Begun = erlang:monotonic_time(millisecond),
        Result = Fun(),
        Master ! {?MODULE, phase, Host, Phase, erlang:monotonic_time(millisecond) - Begun},
        Result
    end,
    case Said(connect, fun() -> way({Domain, Host}, Context) end) of
        {ok, {Driver, Connection} = Way} ->
            try
                uploaded(Said(upload, fun() -> upload(Jobs, Way, dir({Domain, Host}, Context), Context) end), Master, Way, Jobs, Said, Context)
            after
                Driver:close(Connection)
            end;
        {error, Why} ->
            [failed(Master, Job, Why) || Job <- Jobs]
    end.

%% A node whose release could not be had is left as it is: one that is to stop needs none.
uploaded(Refused, Master, Way, Jobs, Said, Context) ->
    {Without, With} = lists:partition(fun({What, #{release := Release}}) -> What =/= stop andalso is_map_key(Release, Refused) end, Jobs),
    _ = [failed(Master, Job, maps:get(Release, Refused)) || {_, #{release := Release}} = Job <- Without],
    Said(nodes, fun() -> each(With, channels(Way), fun({_, #{}} = Job) -> Master ! {?MODULE, done, Job, job(Job, Way, Context)} end) end).

failed(Master, {_, #{host := Host}} = Job, Why) -> Master ! {?MODULE, done, Job, {error, ["the host ", Host, ": ", Why]}}.

channels({atoll_deploy_local, _}) -> 2 * erlang:system_info(schedulers_online);
channels(_) -> ?CHANNELS.

%% So many at a time, in order.
each(Jobs, Most, Do) -> each(Jobs, Most, Do, 0).

each([], _, _, 0) -> ok;
each([Job | Jobs], Most, Do, Running) when Running < Most ->
    {_, _} = spawn_opt(fun() -> Do(Job) end, [link, monitor]),
    each(Jobs, Most, Do, Running + 1);
each(Jobs, Most, Do, Running) ->
    receive
        {'DOWN', _, process, _, normal} -> each(Jobs, Most, Do, Running - 1);
        {'DOWN', _, process, _, Reason} -> exit(Reason)
    end.

upload(Jobs, Way, Dir, #{releases := Releases, store := #{dir := Kept}}) ->
    Needed = lists:usort([Release || {What, #{release := Release}} <- Jobs, What =/= stop]),
    maps:from_list([
        {Release, Why}
     || Release <- Needed, #{sum := Sum} <- [maps:get(Release, Releases)],
        {error, Why} <- [atoll_deploy_host:upload(Way, Dir, {Sum, atoll_deploy_release:archive(filename:join(Kept, "releases"), Sum)})]
    ]).

job({start, Row}, Way, Context) -> said(Row, start(Row, Way, Context));
job({stop, Row}, Way, Context) -> said(Row, stop(Row, Way, Context));
job({{replace, Before}, Row}, Way, Context) ->
    case stop(Row#{release := Before}, Way, Context) of
        {error, _} = Error -> said(Row, Error);
        Stopped ->
            case start(Row, Way, Context) of
                ok -> said(Row, Stopped);
                {error, _} = Error -> said(Row, Error)
            end
    end.

said(#{host := Host}, {Kind, Text}) -> {Kind, ["the host ", Host, ": ", Text]};
said(_, ok) -> ok.

start(#{node := Node, release := Name, host := Host} = Row, Way, Context) ->
    #{releases := #{Name := #{sum := Sum} = Release}, family := #{flags := Flags, seconds := Seconds}, cookie := Cookie, contacts := Contacts} = Context,
    atoll_deploy_host:start(Way, #{
        dir => dir(key(Row), Context), node => Node, mark => mark(Row, Context), sum => Sum, seconds => Seconds,
        start => maps:get(start, Release, ""), health => maps:get(health, Release, ""), apps => maps:get(apps, Release, []),
        host => Host, address => loopback(Host), flags => interface(Host) ++ Flags, cookie => Cookie, contacts => Contacts
    }).

stop(#{node := Node, release := Name, host := Host} = Row, Way, Context) ->
    #{releases := #{Name := #{sum := Sum} = Release}, family := #{flags := Flags, seconds := Seconds}} = Context,
    atoll_deploy_host:stop(Way, #{
        dir => dir(key(Row), Context), node => Node, mark => mark(Row, Context), sum => Sum, seconds => Seconds,
        stop => maps:get(stop, Release, ""), flags => interface(Host) ++ Flags
    }).

%% @doc The folder on a host: this state's own, since other states may have nodes there, and this host's own, since several may have one
%% home.
-spec dir({Domain :: string(), Host :: string()}, context()) -> string().
dir({Domain, Host}, #{id := Id, domains := Domains}) ->
    #{Domain := #{dir := Dir}} = Domains,
    lists:concat([Dir, "/", Id, "/", Host]).

%% Nothing listens on more than the address that a node is named by.
interface(Host) ->
    case inet:parse_ipv4strict_address(Host) of
        {ok, Address} -> ["-kernel", "inet_dist_use_interface", lists:flatten(io_lib:format("~0p", [Address]))];
        {error, _} -> []
    end.

loopback("127." ++ _ = Host) -> Host;
loopback(_) -> "".

%% @doc By what the processes of a node are known on its host.
-spec mark(#{node := string(), host := string(), _ => _}, context()) -> string().
mark(#{node := Node, host := Host}, Context) -> lists:concat([below(Host, Context), "/", Node]).

%% @doc Where a host is, and which driver reaches it.
-spec where({Domain :: string(), Host :: string()}, context()) -> {module(), atoll_deploy_host:address()} | {error, unicode:chardata()}.
where({Domain, Host}, #{domains := Domains, providers := Providers}) ->
    #{Domain := #{provider := Provider, hosts := Hosts} = Of} = Domains,
    #{Provider := #{driver := Driver} = Thing} = Providers,
    Module = case Driver of local -> atoll_deploy_local; _ -> atoll_deploy_ssh end,
    case [Port || #{host := Is, port := Port} <- Hosts, Is =:= Host] of
        [Port] -> {Module, #{host => Host, port => Port, user => maps:get(user, Of, none), provider => Thing}};
        [] -> {error, ["the domain ", Domain, " no longer has it"]}
    end.

way(Key, Context) ->
    case where(Key, Context) of
        {error, _} = Error ->
            Error;
        {Module, Address} ->
            case Module:open(Address) of
                {ok, Connection} -> {ok, {Module, Connection}};
                {error, _} = Error -> Error
            end
    end.

%% @doc What each host of these nodes says of which nodes of the family run there, all at once.
-spec look([atoll_deploy_plan:row()], context()) -> [{{Domain :: string(), Host :: string()}, {ok, atoll_deploy_host:running()} | {error, unicode:chardata()}}].
look(Rows, Context) ->
    asked(lists:usort([key(Row) || Row <- Rows]), fun({_, Host}, Way) -> atoll_deploy_host:running(Way, below(Host, Context)) end, Context).

%% @doc Kills whatever hosts have of the family, all at once. A host that has no node of any family loses its folder. Says on which it
%% could not be done.
-spec sweep([{Domain :: string(), Host :: string()}], Left :: [atoll_deploy_plan:row()], context()) -> [result()].
sweep(Keys, Left, Context) ->
    Told = asked(Keys, fun({_, Host} = Key, Way) ->
        Last = not lists:any(fun(#{host := At}) -> At =:= Host end, Left),
        atoll_deploy_host:sweep(Way, #{dir => dir(Key, Context), mark => below(Host, Context), host => Host, last => Last})
    end, Context),
    [{Host, Error} || {{_, Host}, {error, _} = Error} <- Told].

below(Host, #{id := Id, family := #{name := Family}}) -> lists:concat([Id, "/", Host, "/", Family]).

%% @doc Asks these hosts, all at once.
-spec asked([Key], fun((Key, atoll_deploy_host:way()) -> Answer), context()) -> [{Key, Answer | {error, unicode:chardata()}}] when
    Key :: {Domain :: string(), Host :: string()}.
asked(Keys, Ask, Context) ->
    Asking = [
        {Key, spawn_monitor(fun() ->
            exit({told, case way(Key, Context) of
                {ok, {Driver, Connection} = Way} ->
                    Told = Ask(Key, Way),
                    ok = Driver:close(Connection),
                    Told;
                {error, _} = Error -> Error
            end})
        end)}
     || Key <- Keys
    ],
    [{Key, receive {'DOWN', Ref, process, Pid, {told, Told}} -> Told; {'DOWN', Ref, process, Pid, Reason} -> exit(Reason) end} || {Key, {Pid, Ref}} <- Asking].

%% @doc The last lines that a node has said.
-spec log(atoll_deploy_plan:row(), Lines :: pos_integer(), context()) -> {ok, [binary()]} | {error, unicode:chardata()}.
log(#{node := Node} = Row, Lines, Context) ->
    [{_, Told}] = asked([key(Row)], fun(Key, Way) -> atoll_deploy_host:log(Way, {dir(Key, Context), Node}, Lines) end, Context),
    Told.
