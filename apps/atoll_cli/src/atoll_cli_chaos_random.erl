%% @doc `atoll chaos random': faults at a rate, drawn by seed, on real nodes.
-module(atoll_cli_chaos_random).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(NODES, 6).

-spec summary() -> string().
summary() -> "do harm to real nodes at a rate, at random".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [Nodes | Where] = atoll_cli_chaos:where("none"),
    [
        #{name => rate, value => "R", default => "1", read => atoll_cli_read:number(1000),
          help => "faults per second"},
        #{name => kinds, value => "KINDS", read => atoll_cli_read:some_of(atoll_chaos_draw:kinds()),
          help => [lists:join(",", [atom_to_list(Kind) || Kind <- atoll_chaos_draw:kinds()]),
                   ": some of them; all that is possible unless told"]},
        #{name => what, value => "WHAT", read => atoll_cli_read:processes(),
          help => "the processes to kill: application:NAME, supervisor:NAME, module:NAME, name:NAME, or any (so unless told)"},
        #{name => seconds, value => "S", default => "30", read => atoll_cli_read:number(86400),
          help => "for how long"},
        Nodes#{help => "start a cluster of so many nodes for it (6 unless told)"}
    ] ++ Where ++ [(atoll_cli_sim_options:seed())#{default => "1"}] ++ atoll_cli_chaos:closing().

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll chaos random --rate 2 --kinds process,node,pause,cut --seconds 10 --nodes 4 --seed 7",
        "atoll chaos random --kinds process --what application:shop --name reef --json"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    case {atoll_cli_chaos:check(Values), Values, atoll_cli_overlay:read(Values)} of
        {{error, Sentence}, _, _} ->
            {usage, Sentence};
        {ok, _, {error, Sentence}} ->
            {usage, Sentence};
        {ok, _, {ok, Overlay}} ->
            case wrong(Values) of
                [] -> harm(Values, Overlay);
                [Sentence | _] -> {usage, Sentence}
            end
    end.

%% What is wrong with the kinds is known before anything starts.
wrong(#{kinds := Kinds} = Values) ->
    [
        Sentence
     || {Kind, true, Sentence} <- [
            {node, is_map_key(name, Values), ["--kinds: with --name ", atoll_chaos:format_error({kind, node})]},
            {cut, maps:get(nodes, Values, none) =:= 1, ["--kinds: ", atoll_chaos:format_error({kind, cut})]}
        ],
        lists:member(Kind, Kinds)
    ] ++
        [
            "--what is for faults of the kind process, which --kinds leaves out"
         || is_map_key(what, Values), not lists:member(process, Kinds)
        ];
wrong(_) ->
    [].

harm(#{rate := Rate, seconds := Seconds, seed := Seed} = Values, Overlay) ->
    Again = atoll_cli_sim_options:again("chaos random", options(), typed(Values)),
    Head = io_lib:format("~s faults a second for ~s s", [atoll_cli_table:decimal(Rate), atoll_cli_table:decimal(Seconds)]),
    Faults = (maps:with([kinds, what], Values))#{rate => Rate, seconds => Seconds, seed => Seed},
    case atoll_cli_chaos:on(Values, maps:get(nodes, Values, ?NODES), Overlay, fun(Where) ->
        atoll_cli_chaos:harm(maps:merge(Where, Faults), Head, Again, Values)
    end) of
        {ok, _} -> ok;
        Outcome -> Outcome
    end.

typed(#{kinds := Kinds} = Values) ->
    Values#{kinds := lists:flatten(lists:join(",", [atom_to_list(Kind) || Kind <- Kinds]))};
typed(Values) ->
    Values.
