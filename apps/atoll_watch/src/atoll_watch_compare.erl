%% SPDX-License-Identifier: Apache-2.0
%% @doc What is wrong between nodes: what several of them say, side by side. Pure.
%%
%% Of one cause there is one finding: of a module that has two versions in the cluster, and not of each node that has it. It names
%% the nodes that it is about, those that are fewer first, and says in a line what it has found. Only nodes that are up, and have said
%% what is compared, count.
-module(atoll_watch_compare).

-export([kinds/0, has_said/2, findings/2]).

-export_type([kind/0, about/0, finding/0]).

-type kind() :: partition | flags | otp | cookies | modules | names | clocks | dumps.

-type about() :: #{node := node(), state := atoll_watch_core:state(), readings := atoll_watch_metric:readings(), facts := atoll_watch_agent_facts:facts() | none}.

-type finding() :: {atoll_watch_rule:instance(), Value :: number(), [node(), ...], Said :: binary()}.

%% More pairs that are not connected are not looked at, and of more modules there is one finding.
-define(PAIRS, 1000).
-define(MODULES, 20).
%% Nodes that are named in a line.
-define(NAMED, 4).

%% @doc What can be compared.
-spec kinds() -> [kind()].
kinds() -> [partition, flags, otp, cookies, modules, names, clocks, dumps].

%% @doc Whether a node takes part: it is up, and what is compared is known of it.
-spec has_said(kind(), about()) -> boolean().
has_said(Kind, About) -> says(Kind, About) =/= [].

says(clocks, #{state := up, readings := #{clock_offset := _, clock_uncertainty := _} = Readings}) -> [Readings];
says(dumps, #{state := up, readings := Readings}) when map_size(Readings) > 0 -> [Readings];
says(Kind, #{state := up, facts := #{} = Facts}) when Kind =/= clocks, Kind =/= dumps -> [Facts];
says(_, #{}) -> [].

%% @doc What is found, sorted by what it is about.
-spec findings(kind(), [about()]) -> [finding()].
findings(Kind, Abouts) -> compared(Kind, lists:keysort(1, [{Node, Said} || #{node := Node} = About <- Abouts, Said <- says(Kind, About)])).

compared(clocks, Readings) ->
    clocks(lists:sort([{Offset, Uncertainty, Node} || {Node, #{clock_offset := Offset, clock_uncertainty := Uncertainty}} <- Readings]));
compared(dumps, Readings) ->
    ByFile = by([{File, {Node, Bytes}} || {Node, Each} <- Readings, {{crash_dump, File}, Bytes} <- maps:to_list(Each)]),
    [{File, lists:max([Bytes || {_, Bytes} <- At]), [Node || {Node, _} <- At], said("in the directory of ~ts", [named([Node || {Node, _} <- At])])} || {File, At} <- ByFile];
compared(otp, Facts) ->
    differ(none, [{Node, Otp} || {Node, #{otp := Otp}} <- Facts]);
compared(cookies, Facts) ->
    %% What it is, is not told.
    [{Of, N, Nodes, said("~b cookies: another one on ~ts", [N, named(Nodes)])} || {Of, N, Nodes, _} <- differ(none, [{Node, integer_to_binary(Cookie)} || {Node, #{cookie := Cookie}} <- Facts])];
compared(flags, Facts) ->
    Values = by([{Flag, {Node, Value, Otp}} || {Node, #{flags := Flags, otp := Otp}} <- Facts, {Flag, Value} <- Flags]),
    lists:append([differ(Flag, [{Node, Value} || {Node, Value, _} <- Of]) || {Flag, Of} <- Values, Flag =/= dist_flags]) ++
        %% Each release has its own.
        lists:append([differ(dist_flags, [{Node, Value} || {Node, Value} <- Same]) || {dist_flags, Of} <- Values, {_, Same} <- by([{Otp, {Node, Value}} || {Node, Value, Otp} <- Of])]);
compared(modules, Facts) ->
    %% So has OTP's own code in another release.
    Findings = lists:append([modules(Same) || {_, Same} <- by([{Otp, {Node, Modules}} || {Node, #{otp := Otp, modules := Modules}} <- Facts])]),
    case length(Findings) > ?MODULES of
        true ->
            Nodes = lists:usort(lists:append([Of || {_, _, Of, _} <- Findings])),
            [{<<"many modules">>, length(Findings), Nodes, said("~b modules: ~ts and others", [length(Findings), lists:join(", ", [Module || {Module, _, _, _} <- lists:sublist(Findings, ?NAMED)])])}];
        false ->
            Findings
    end;
compared(names, Facts) ->
    lists:append([
        case by(Held) of
            [_, _ | _] = Holders ->
                Nodes = lists:usort([At || {_, [{At, _} | _]} <- Holders]),
                [{Name, length(Holders), Nodes, said("~b processes have it: ~ts", [length(Holders), lists:join("; ", [
                    io_lib:format("one on ~ts, for ~ts", [At, named([Node || {_, Node} <- Of])]) || {_, [{At, _} | _] = Of} <- Holders
                ])])}];
            _ ->
                []
        end
     || {Name, Held} <- by([{Name, {Holder, {At, Node}}} || {Node, #{names := Names}} <- Facts, {Name, Holder, At} <- Names])
    ]);
compared(partition, Facts) ->
    partition([{Node, ordsets:from_list(Mesh)} || {Node, #{mesh := Mesh}} <- Facts, is_list(Mesh)]).

%% Values that should be one: the nodes that have another one than most.
differ(Of, Values) ->
    case lists:sort(fun({_, As}, {_, Bs}) -> length(As) >= length(Bs) end, by([{Value, Node} || {Node, Value} <- Values])) of
        [_, _ | _] = Each ->
            [{Of, length(Each), lists:append([Nodes || {_, Nodes} <- lists:reverse(tl(Each))]),
              said("~ts", [lists:join("; ", [io_lib:format("~ts on ~ts", [Value, named(Nodes)]) || {Value, Nodes} <- lists:sublist(Each, ?NAMED)])])}];
        _ ->
            []
    end.

%% Those of which some node has another version than one before it, and then who has which.
modules(Nodes) ->
    {_, Several} = lists:foldl(fun({_, Modules}, Acc) ->
        lists:foldl(fun({Module, Version}, {Seen, Found}) ->
            case Seen of
                #{Module := Version} -> {Seen, Found};
                #{Module := _} -> {Seen, Found#{Module => []}};
                #{} -> {Seen#{Module => Version}, Found}
            end
        end, Acc, Modules)
    end, {#{}, #{}}, Nodes),
    lists:append([
        [{Module, N, Fewer, said("~b versions: another one on ~ts", [N, named(Fewer)])}
         || {_, N, Fewer, _} <- differ(Module, [{Node, integer_to_binary(Version)} || {Node, Modules} <- Nodes, {Is, Version} <- Modules, Is =:= Module])]
     || Module <- lists:sort(maps:keys(Several))
    ]).

%% Nodes that are not connected, and a third one is with both. Who is in such pairs with each other, has one cause.
partition(Nodes) ->
    Connected = maps:from_list(Nodes),
    All = ordsets:from_list([Node || {Node, _} <- Nodes]),
    Apart = [
        {A, B}
     || {A, With} <- Nodes, B <- ordsets:subtract(All, With), A < B, not ordsets:is_element(A, map_get(B, Connected)),
        not ordsets:is_disjoint(ordsets:intersection(With, map_get(B, Connected)), All)
    ],
    lists:sort([
        begin
            Times = fun(Node) -> length([N || {A, B} <- Pairs, N <- [A, B], N =:= Node]) end,
            [First | _] = Most = [Node || {_, Node} <- lists:sort([{-Times(Node), Node} || Node <- Part])],
            {First, length(Pairs), Most, said("~b pairs of ~b nodes are not connected, as ~ts and ~ts", [length(Pairs), length(Part), element(1, hd(Pairs)), element(2, hd(Pairs))])}
        end
     || Part <- parts(lists:sublist(Apart, ?PAIRS), []), Pairs <- [[Pair || {A, _} = Pair <- Apart, lists:member(A, Part)]]
    ]).

parts([{A, B} | Pairs], Parts) ->
    {With, Without} = lists:partition(fun(Part) -> lists:member(A, Part) orelse lists:member(B, Part) end, Parts),
    parts(Pairs, [lists:usort([A, B | lists:append(With)]) | Without]);
parts([], Parts) ->
    Parts.

%% Beside the one in the middle. What is not known for sure does not count.
clocks([]) ->
    [];
clocks(Clocks) ->
    {Middle, About, _} = lists:nth((length(Clocks) + 1) div 2, Clocks),
    lists:sort([
        {atom_to_binary(Node), Off, [Node], said("~.1f s ~ts the clock of most nodes, to ~.3f s", [abs(Offset - Middle) / 1000, case Offset > Middle of true -> "before"; false -> "behind" end, (Uncertainty + About) / 1000])}
     || {Offset, Uncertainty, Node} <- Clocks, Off <- [abs(Offset - Middle) - Uncertainty - About], Off > 0
    ]).

by(Pairs) -> lists:sort(maps:to_list(maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Value}) -> Value end, Pairs))).

named(Nodes) ->
    Shown = lists:join(", ", [atom_to_binary(Node) || Node <- lists:sublist(Nodes, ?NAMED)]),
    case length(Nodes) - ?NAMED of
        More when More > 0 -> [Shown, " and ", integer_to_list(More), " more"];
        _ -> Shown
    end.

said(Format, Args) -> unicode:characters_to_binary(io_lib:format(Format, Args)).
