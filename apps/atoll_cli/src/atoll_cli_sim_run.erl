%% @doc `atoll sim run': plays a fault script, and fails if one of its expectations
%% does.
-module(atoll_cli_sim_run).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-spec summary() -> string().
summary() -> "play a fault script, and see whether its expectations hold".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        atoll_cli_strategy:code(),
        (atoll_cli_sim_options:seed())#{help => "what all chance is drawn from, in place of the script's"},
        atoll_cli_sim_options:trace(),
        atoll_cli_json:switch()
    ].

-spec operands() -> [string()].
operands() -> ["SCRIPT"].

-spec examples() -> [string()].
examples() ->
    [
        "atoll sim run docs/scripts/partition.script",
        "atoll sim run docs/scripts/partition.script --seed 8 --trace partition.trace"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, [File]) ->
    %% A script may name a strategy from there.
    ok = atoll_cli_strategy:add_code(Values),
    case read(File) of
        {ok, Script} ->
            case is_map_key(trace, Values) andalso atoll_cli_sim_file:is_same(File, map_get(trace, Values)) of
                true -> {usage, ["--trace ", map_get(trace, Values), " is the script itself"]};
                false -> play(File, Script, Values)
            end;
        {error, Error} ->
            {usage, atoll_sim_script:format_error(Error)}
    end.

%% Whether the nodes that it names are there is known before anything is simulated.
read(File) ->
    case atoll_sim_script:read(File) of
        {ok, Script} ->
            case atoll_sim_play:check(Script) of
                ok -> {ok, Script};
                {error, {none, Place, Reason}} -> {error, {File, Place, Reason}}
            end;
        {error, _} = Error ->
            Error
    end.

play(File, #{cluster := Cluster0} = Script, Values) ->
    #{seed := Seed} = Cluster = maps:merge(Cluster0, maps:with([seed], Values)),
    Again = atoll_cli_sim_options:again(["sim run ", atoll_cli_sim_options:quoted(File)], options(), Values#{seed => Seed}),
    Play = fun(Hooks) -> atoll_sim_play:run(Script, Hooks#{seed => Seed}) end,
    case atoll_cli_sim_experiment:simulate(Cluster, Again, Values, Play) of
        {ok, {ok, #{failed := Failed, expectations := Count} = Result}} ->
            ok = show(Values, Result, Again),
            atoll_cli_expect:judge(File, Failed, Count, Again);
        {ok, {error, Error}} ->
            {usage, atoll_sim_script:format_error(setelement(1, Error, File))};
        {error, Sentence} ->
            {failed, Sentence}
    end.

show(#{json := true}, #{failed := Failed} = Result, Again) ->
    Object = Result#{failed := atoll_cli_expect:json(Failed)},
    atoll_cli_io:print_json(atoll_cli_sim_result:json([], named(fun atoll_cli_chaos_result:names/1, grouped(fun memberships/1, Object)), Again));
show(#{json := false}, #{failed := Failed} = Result, Again) ->
    Table = atoll_cli_sim_result:table(named(fun names/1, grouped(fun groups/1, Result#{failed := length(Failed)}))),
    atoll_cli_io:print([Table, "\nagain: ", Again, $\n]).

grouped(Fun, #{groups := Groups} = Result) -> Result#{groups := Fun(Groups)};
grouped(_, Result) -> Result.

named(Fun, #{names := Names} = Result) -> Result#{names := Fun(Names)};
named(_, Result) -> Result.

%% Of each node.
memberships(Groups) ->
    [
        {[{node, Node}, {groups, [{[{name, Name}, {members, Members}]} || {Name, Members} <- Own]}]}
     || {Node, Own} <- lists:keysort(1, maps:to_list(Groups))
    ].

groups(Groups) ->
    length(lists:usort(lists:append(maps:values(Groups)))).

names(Names) ->
    length(lists:usort([{Group, Name} || {Group, Name, _} <- lists:append(maps:values(Names))])).
