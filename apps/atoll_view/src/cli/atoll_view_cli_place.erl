%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll place': which nodes of a running cluster fit a condition, the best first.
%%
%% One of the nodes is asked, as a program that runs there would ask. A name that none of the
%% nodes which have answered knows as an attribute is taken for a mistake: a condition on it
%% would hold nowhere, and `not' would not help.
-module(atoll_view_cli_place).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2, unknown/3, also/2, why_not/1]).

%% What is known so far: the options, and what each step adds.
-type plan() :: #{atom() => term()}.
-type step() :: {ok, plan()} | {usage | unable, unicode:chardata()}.

-define(MAX_NAME, 255).
-define(MAX_MS, 3600000).
%% Beside the time that the answer may take.
-define(CALL_MS, 5000).

-spec summary() -> string().
summary() -> "choose nodes of a running cluster by what they are like and how far they are".

-spec options() -> [atoll_cli_options:option()].
options() ->
    [
        #{name => where, value => "CONDITION", help => "what a node must be like, such as 'mem_free > 1000000 and loadavg1 < 2'"},
        #{name => among, value => "NODES", read => fun names/1,
          help => "only these nodes, with commas between, or those of this group"},
        #{name => near, value => "NODE", help => "the nearest to this node first"},
        #{name => how, value => "HOW", read => atoll_cli_read:one_of([declared, measured, estimated]),
          help => "with --near, the distance: declared (0.0 to 1.0), or measured or estimated (a round trip in ms)"},
        #{name => network, value => "FILE", is_read => true, help => "with --near, the distances that this file declares"},
        #{name => rank, value => "RANK", read => fun rank/1, help => "the best first, such as 'least loadavg1' or 'most mem_free'"},
        #{name => within, value => "R", read => atoll_cli_read:number(0, 1000000000),
          help => "the farthest that a node may be, in the unit of its distance: 0.0 to 1.0, or ms; with --rank, the worst value"},
        #{name => attributes, value => "NAMES", read => fun attributes/1,
          help => "show these, with commas between; without, those of the condition"},
        #{name => one, help => "choose one of the best, and print its name"},
        #{name => from, value => "NODE", help => "the node that asks the others; without, the near one, or the first that runs"},
        #{name => deadline, value => "MS", default => "500", read => atoll_cli_read:whole(1, ?MAX_MS),
          help => "there is an answer by then, however many nodes are silent"},
        #{name => max_age, value => "MS", default => "0", read => atoll_cli_read:whole(0, ?MAX_MS),
          help => "how old values may be; 0 has all asked"},
        atoll_cli_json:switch()
    ] ++ atoll_view_cli_where:options(looks).

-spec operands() -> [string()].
operands() -> [].

-spec examples() -> [string()].
examples() ->
    [
        "atoll place --where 'loadavg1 < 8' -c reef",
        "atoll place --near reef2 --network reef.network --within 0.5 -c reef",
        "atoll place --where 'os_type == {unix,linux}' --among group1 --one --json"
    ].

names(Text) ->
    case [string:trim(Name) || Name <- string:split(Text, ",", all)] of
        [] -> {error, "must be nodes"};
        Names ->
            case lists:all(fun(Name) -> Name =/= "" andalso length(Name) =< ?MAX_NAME end, Names) of
                true -> {ok, Names};
                false -> {error, "must be names with commas between"}
            end
    end.

attributes(Text) ->
    case names(Text) of
        {ok, Names} -> {ok, [list_to_atom(Name) || Name <- Names]};
        {error, _} = Error -> Error
    end.

rank(Text) ->
    case string:lexemes(Text, " ") of
        ["least", Name] when length(Name) =< ?MAX_NAME -> {ok, {least, list_to_atom(Name)}};
        ["most", Name] when length(Name) =< ?MAX_NAME -> {ok, {most, list_to_atom(Name)}};
        _ -> {error, "must be least or most, and the name of an attribute, such as 'least loadavg1'"}
    end.

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(Values, []) ->
    case steps([fun condition/1, fun combination/1, fun network/1], {ok, Values}) of
        {ok, Plan} ->
            atoll_view_cli_where:on(looks, atoll, Values, fun(View) ->
                case steps([fun among/1, fun near/1, fun from/1, fun ask/1, fun known/1], {ok, Plan#{view => View}}) of
                    {ok, #{found := Found, shown := Shown}} -> atoll_view_cli_place_result:show(Found, Shown, Values);
                    Wrong -> Wrong
                end
            end);
        Wrong ->
            Wrong
    end.

steps(Steps, Plan) -> lists:foldl(fun step/2, Plan, Steps).

step(Step, {ok, Plan}) -> Step(Plan);
step(_Step, Wrong) -> Wrong.

%% What is wrong with the command line alone

condition(#{where := Text} = Plan) ->
    case atoll_predicate_text:parse(Text) of
        {ok, Source} ->
            {ok, Predicate} = atoll_predicate:new(Source),
            {ok, Plan#{source => Source, used => atoll_predicate:names(Predicate)}};
        {error, Error} ->
            {usage, ["--where: ", atoll_predicate_text:format_error(Error), under(atoll_predicate_text:pointer(Text, Error))]}
    end;
condition(Plan) ->
    {ok, Plan#{source => {}, used => []}}.

under(Pointer) ->
    [["\n  ", Line] || Line <- string:split(unicode:characters_to_list(Pointer), "\n", all)].

combination(#{near := _, rank := _}) ->
    {usage, "--near and --rank both say which nodes are better: not both"};
combination(#{near := _, network := _, how := How}) when How =/= declared ->
    {usage, "--network declares the distances, and --how asks for others: not both"};
combination(#{near := _} = Plan) ->
    shown(Plan);
combination(#{how := _}) ->
    {usage, "--how is for --near"};
combination(#{network := _}) ->
    {usage, "--network is for --near"};
combination(#{within := _} = Plan) when not is_map_key(rank, Plan) ->
    {usage, "--within is for --near or --rank"};
combination(Plan) ->
    shown(Plan).

%% The attributes of which people see the values.
shown(#{used := Used} = Plan) ->
    Ranked = [Name || #{rank := {_, Name}} <- [Plan]],
    {ok, Plan#{shown => Ranked ++ (maps:get(attributes, Plan, Used) -- Ranked)}}.

network(#{network := File} = Plan) ->
    case atoll_view_cli_distance:network(File) of
        {ok, Network} -> {ok, Plan#{declared => Network}};
        {error, Outcome} -> Outcome
    end;
network(Plan) ->
    {ok, Plan}.

%% What is wrong with it for this cluster

-spec among(plan()) -> step().
among(#{among := Typed, view := View} = Plan) ->
    case {atoll_view_cli_where:named(Typed, View), Typed} of
        {{ok, Nodes}, _} -> {ok, Plan#{nodes => Nodes}};
        {{error, _}, [Group]} -> in_group(Group, Plan);
        {{error, Sentence}, _} -> {usage, ["--among: ", Sentence]}
    end;
among(#{view := View} = Plan) ->
    {ok, Plan#{nodes => [Node || {Node, _} <- atoll_view:nodes(View)] -- atoll_view:without(View)}}.

in_group(Typed, #{view := View} = Plan) ->
    #{groups := Groups} = atoll_view:groups(View),
    Named = [Nodes || {Name, Nodes} <- Groups, atom_to_list(Name) =:= Typed],
    Meant =
        case atoll_view_cli_where:named([From || #{from := From} <- [Plan]], View) of
            {ok, [Asker]} -> [Nodes || Nodes <- Named, lists:member(Asker, Nodes)];
            _ -> []
        end,
    case {Named, Meant} of
        {[], _} -> {usage, ["--among: the cluster has neither a node nor a group ", Typed]};
        {[Nodes], _} -> {ok, Plan#{nodes => Nodes}};
        {_, [Nodes | _]} -> {ok, Plan#{nodes => Nodes}};
        {_, []} -> {usage, ["--among: several groups are called ", Typed, "; --from NODE says which is meant"]}
    end.

near(#{near := Typed, view := View} = Plan) ->
    case atoll_view_cli_where:named([Typed], View) of
        {ok, [Node]} -> distances(Plan#{near => Node});
        {error, Sentence} -> {usage, ["--near: ", Sentence]}
    end;
near(Plan) ->
    {ok, Plan}.

distances(#{declared := Network, near := Near, nodes := Nodes, network := File} = Plan) ->
    Far = fun(Node) -> atoll_network:distance(Near, Node, Network) end,
    case atoll_network:is_node(Near, Network) of
        true -> {ok, Plan#{distances => maps:from_list([{Node, D} || Node <- Nodes, {ok, D} <- [Far(Node)]])}};
        false -> {usage, ["--near: ", atom_to_list(Near), " is not in the network ", File]}
    end;
distances(Plan) ->
    {ok, Plan}.

%% Who is near knows the distances best.
from(#{from := Typed, view := View} = Plan) ->
    case atoll_view_cli_where:named([Typed], View) of
        {ok, [Node]} -> up(Node, lists:keyfind(Node, 1, atoll_view:nodes(View)), Plan);
        {error, Sentence} -> {usage, ["--from: ", Sentence]}
    end;
from(#{view := View} = Plan) ->
    case {[Near || #{near := Near} <- [Plan], lists:member(Near, atoll_view:running(View))], atoll_view:running(View)} of
        {[Near], _} -> {ok, Plan#{from => Near}};
        {[], [First | _]} -> {ok, Plan#{from => First}};
        {[], []} -> {unable, ["no node of ", atoll_view:name(View), " answers"]}
    end.

up(Node, {_, up}, Plan) -> {ok, Plan#{from => Node}};
up(Node, {_, State}, _Plan) -> {unable, [atom_to_list(Node), " is ", atom_to_list(State), ", and cannot ask"]}.

%% Asking

ask(#{from := From, deadline := Ms, one := One} = Plan) ->
    case atoll_view:place(From, One, params(Plan), Ms + ?CALL_MS) of
        {ok, Found} -> {ok, Plan#{found => by_file(Found#{from => From}, Plan)}};
        {error, {place, Error}} -> {unable, [atom_to_list(From), ": ", why_not(Error)]};
        {error, Sentence} -> {unable, Sentence}
    end.

%% @private The node speaks of keys of the application; who typed a command has options.
-spec why_not(atoll_place:error()) -> unicode:chardata().
why_not(Error) -> [atoll_place:format_error(Error), help(Error)].

help({distance, no_network}) -> "; \"atoll up N --network FILE\" does, and so does --network FILE here";
help({distance, distances_off}) -> "; \"atoll up N --distances\" does";
help(_Other) -> "".

params(#{source := Source, nodes := Nodes, shown := Shown, used := Used} = Plan) ->
    Better =
        case Plan of
            #{distances := Distances} -> #{rank => {nearest, Distances}};
            #{} -> maps:with([near, how, rank], Plan)
        end,
    maps:merge(
        Better#{where => also(Shown -- Used, Source), among => Nodes},
        maps:with([within, deadline, max_age], Plan)
    ).

by_file(#{choice := Choice} = Found, #{distances := Distances}) ->
    Found#{how := declared, choice := Choice#{distances => Distances}};
by_file(Found, _Plan) ->
    Found.

%% @private A condition of the same truth that also speaks of these attributes. What is answered to
%% a question are the attributes that its condition speaks of; so one question is enough.
-spec also([atoll_predicate:name()], atoll_predicate:source()) -> atoll_predicate:source().
also([], Condition) -> Condition;
also(Names, Condition) -> {'or', [Condition, {'and', [{'not', {}} | [{Name, true} || Name <- Names]]}]}.

%% Only what has a value nowhere is looked for. Nodes that were silent are not asked again.
known(#{found := #{choice := Choice}, used := Used, shown := Shown, nodes := Nodes, view := View} = Plan) ->
    #{values := Values, silent := Silent, unreachable := Unreachable} = Choice,
    Seen = [Name || Node <- maps:values(Values), {Name, Value} <- maps:to_list(Node), Value =/= undefined],
    case lists:usort(Used ++ Shown) -- Seen of
        [] ->
            {ok, Plan};
        Unsure ->
            case atoll_view:attributes((Nodes -- Silent) -- Unreachable, View) of
                none ->
                    {ok, Plan};
                {ok, Known} ->
                    case Unsure -- Known of
                        [] -> {ok, Plan};
                        Unknown -> {usage, unknown(Unknown, Known, Plan)}
                    end
            end
    end.

%% @private The sentence about names that no node knows: of the first option that has some.
-spec unknown(Unknown :: [atoll_predicate:name(), ...], Known :: [atoll_predicate:name()], plan()) -> unicode:chardata().
unknown(Unknown, Known, #{used := Used, shown := Shown} = Plan) ->
    InRank = [Name || #{rank := {_, Name}} <- [Plan], lists:member(Name, Unknown)],
    case {[Name || Name <- Unknown, lists:member(Name, Used)], InRank, Plan} of
        {[_ | _] = Names, _, #{where := Where}} ->
            {At, Name} = lists:min([{At, Name} || Name <- Names, {ok, At} <- [atoll_predicate_text:position(Name, Where)]]),
            [
                io_lib:format("--where: at character ~b there is ~ts, and no node that answers has such an attribute", [
                    At, atoll_predicate_text:name(Name)
                ]),
                meant(Name, Known),
                under(atoll_predicate_text:pointer(Where, At))
            ];
        {[], [Name], _} ->
            ["--rank: no node that answers has an attribute ", atoll_predicate_text:name(Name), meant(Name, Known)];
        {[], [], _} ->
            %% In the order in which they were typed.
            Names = [[atoll_predicate_text:name(Name), meant(Name, Known)] || Name <- Shown, lists:member(Name, Unknown)],
            ["--attributes: no node that answers has an attribute ", lists:join(", nor ", Names)]
    end.

meant(Name, Known) ->
    case atoll_cli_nearest:of_words(atoll_predicate_text:name(Name), [atoll_predicate_text:name(N) || N <- Known]) of
        {ok, Near} -> ["; did you mean ", Near, "?"];
        none -> ""
    end.
