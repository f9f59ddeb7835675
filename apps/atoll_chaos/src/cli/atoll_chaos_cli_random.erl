%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll chaos random': faults at a rate, drawn by seed, on real nodes.
-module(atoll_chaos_cli_random).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-define(NODES, 6).

-spec summary() -> string().
summary() -> "do harm to real nodes at a rate, at random".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [Nodes | Where] = atoll_chaos_cli:where("none"),
    [
        #{name => rate, value => "R", default => "1", read => atoll_cli_read:rate(1000),
          help => "faults per second; 1:10 goes evenly from 1 to 10"},
        #{name => jitter, value => "SHARE", read => atoll_cli_read:share(),
          help => "each interval is up to that share longer or shorter, at random (0 unless told)"},
        #{name => start_after, value => "S", read => atoll_cli_read:number(0, 86400),
          help => "seconds in which nothing happens yet (0 unless told)"},
        #{name => kinds, value => "KINDS", read => atoll_cli_read:some_of(atoll_chaos_draw:kinds()), spell => fun with_commas/1,
          help => [lists:join(",", [atom_to_list(Kind) || Kind <- atoll_chaos_draw:kinds()]),
                   ": some of them; all that is possible unless told"]},
        #{name => what, value => "WHAT", read => atoll_chaos_cli_processes:reader(), spell => fun atoll_chaos_cli_processes:typed/1,
          help => "the processes to kill: application:NAME, supervisor:NAME, module:NAME, name:NAME, any_name:group:NAME, "
                  "any_name:global, or any (so unless told); several with weights, as in application:shop=3,any=1"},
        #{name => seconds, value => "S", default => "30", read => atoll_cli_read:number(86400),
          help => "for how long"},
        Nodes#{help => "start a cluster of so many nodes for it (6 unless told)"}
    ] ++ Where ++ [(atoll_cli_again:seed())#{default => "1"}] ++ atoll_chaos_cli:closing().

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll chaos random --rate 2 --kinds process,node,pause,cut --seconds 10 --nodes 4 --seed 7",
        "atoll chaos random --kinds process --what application:shop -c reef --json",
        "atoll chaos random --kinds process --what application:shop=3,any_name:group:desks=1 --rate 1:10 --jitter 0.3 --start-after 5"
    ].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    case {atoll_chaos_cli:check(Values), Values, atoll_up_cli_overlay:read(Values)} of
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
            {node, atoll_view_cli_where:is_given(Values), ["--kinds: of a cluster that runs ", atoll_chaos:format_error({kind, node})]},
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
    Again = atoll_cli_again:line("chaos random", options(), Values),
    Head = io_lib:format("~s faults a second for ~s s", [rate(Rate), atoll_cli_table:decimal(Seconds)]),
    Faults = (maps:with([kinds, what, jitter, start_after], Values))#{rate => Rate, seconds => Seconds, seed => Seed},
    case atoll_chaos_cli:on(Values, maps:get(nodes, Values, ?NODES), Overlay, fun(Where) ->
        atoll_chaos_cli:harm(maps:merge(Where, Faults), Head, Again, Values)
    end) of
        {ok, _} -> ok;
        Outcome -> Outcome
    end.

rate({From, To}) -> [rate(From), " to ", rate(To)];
rate(Rate) -> atoll_cli_table:decimal(Rate).

with_commas(Words) ->
    lists:flatten(lists:join(",", [atom_to_list(Word) || Word <- Words])).
