%% SPDX-License-Identifier: Apache-2.0
%% @doc What is wrong between nodes: what several of them say, side by side. Pure.
%%
%% Of one cause there is one finding: of a module that has two versions in the cluster, and not of each node that has it. It names
%% the nodes that it is about, those that are fewer first, and says in a line what it has found. Only nodes that are up, and have said
%% what is compared, count.
%%
%% It is for some thousand nodes, and in one process with all else that a watch does: nodes that say the same are looked at as one.
-module(atoll_watch_compare).

-export([kinds/0, has_said/2, findings/2]).

-export_type([kind/0, about/0, finding/0]).

-type kind() :: partition | flags | otp | cookies | modules | names | clocks | dumps.

-type about() :: #{node := node(), state := atoll_watch_core:state(), readings := atoll_watch_metric:readings(), facts := atoll_watch_agent_facts:facts() | none}.

-type finding() :: {atoll_watch_rule:instance(), Value :: number(), [node(), ...], Said :: binary()}.

%% More pairs that are not connected are not looked at, where nodes that are connected with the same ones count as one; of more modules
%% there is one finding.
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
    [another(none, "cookies", Each) || [_ | _] = Each <- [ranked([{integer_to_binary(Cookie), [Node]} || {Node, #{cookie := Cookie}} <- Facts])]];
compared(flags, Facts) ->
    Values = by([{Flag, {Node, Value, Otp}} || {Node, #{flags := Flags, otp := Otp}} <- Facts, {Flag, Value} <- Flags]),
    lists:append([differ(Flag, [{Node, Value} || {Node, Value, _} <- Of]) || {Flag, Of} <- Values, Flag =/= dist_flags]) ++
        %% Each release has its own.
        lists:append([differ(dist_flags, [{Node, Value} || {Node, Value} <- Same]) || {dist_flags, Of} <- Values, {_, Same} <- by([{Otp, {Node, Value}} || {Node, Value, Otp} <- Of])]);
compared(modules, Facts) ->
    %% So has OTP's own code in another release.
    Several = lists:append([modules(Same) || {_, Same} <- by([{Otp, {Code, {Node, Modules}}} || {Node, #{otp := Otp, code := Code, modules := [_ | _] = Modules}} <- Facts])]),
    case length(Several) > ?MODULES of
        true ->
            %% Most modules differ between the same nodes.
            Groups = lists:usort([Nodes || {_, [_ | Fewer]} <- Several, {_, Groups} <- Fewer, Nodes <- Groups]),
            [{<<"many modules">>, length(Several), lists:usort(lists:append(Groups)), said("~b modules: ~ts and others", [length(Several), lists:join(", ", [Module || {Module, _} <- lists:sublist(Several, ?NAMED)])])}];
        false ->
            [another(Module, "versions", Each) || {Module, Each} <- Several]
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
    partition([{Node, Mesh} || {Node, #{mesh := Mesh}} <- Facts, is_list(Mesh)]).

%% Values that should be one: the nodes that have another one than most.
differ(Of, Values) ->
    [{Of, length(Each), fewer(Each), said("~ts", [lists:join("; ", [io_lib:format("~ts on ~ts", [Value, named(lists:merge(Groups))]) || {Value, Groups} <- lists:sublist(Each, ?NAMED)])])}
     || [_ | _] = Each <- [ranked([{Value, [Node]} || {Node, Value} <- Values])]].

%% So it is, and which they are says nothing.
another(Of, What, Each) ->
    Nodes = fewer(Each),
    {Of, length(Each), Nodes, said("~b ~s: another one on ~ts", [length(Each), What, named(Nodes)])}.

%% The groups of nodes that have each value, that of most nodes first; none where there is one value.
ranked(Held) ->
    case by(Held) of
        [_, _ | _] = Each ->
            Sizes = [{-lists:sum([length(Nodes) || Nodes <- Groups]), One} || {_, Groups} = One <- Each],
            [One || {_, One} <- lists:keysort(1, Sizes)];
        _ ->
            []
    end.

fewer([_ | Fewer]) -> lists:append([lists:merge(Groups) || {_, Groups} <- lists:reverse(Fewer)]).

%% Those of which some node has another version than one before it, and who has which. Nodes with the same code are one group.
modules(Nodes) ->
    Groups = [{[Node || {Node, _} <- Same], Modules} || {_, [{_, Modules} | _] = Same} <- by(Nodes)],
    {_, Several} = lists:foldl(fun({_, Modules}, Acc) ->
        lists:foldl(fun({Module, Version}, {Seen, Found}) ->
            case Seen of
                #{Module := Version} -> {Seen, Found};
                #{Module := _} -> {Seen, Found#{Module => []}};
                #{} -> {Seen#{Module => Version}, Found}
            end
        end, Acc, Modules)
    end, {#{}, #{}}, Groups),
    [{Module, ranked(Held)} || {Module, Held} <- by([{Module, {integer_to_binary(Version), Group}} || {Group, Modules} <- Groups, {Module, Version} <- Modules, is_map_key(Module, Several)])].

%% Nodes that are not connected, and a third one is with both. Who is in such pairs with each other, has one cause.
partition(Nodes) ->
    All = [Node || {Node, _} <- Nodes],
    Known = maps:from_keys(All, known),
    %% Each is with itself too, so of those that are with the same ones none is apart from another.
    Alike = by([{with([Peer || Peer <- Mesh, is_map_key(Peer, Known)], Node, All, map_size(Known) - 1), Node} || {Node, Mesh} <- Nodes]),
    Groups = maps:from_list(lists:enumerate(Alike)),
    Of = maps:from_list([{Node, N} || {N, {_, Same}} <- maps:to_list(Groups), Node <- Same]),
    Apart = apart(lists:sort(maps:keys(Groups)), All, Groups, Of, ?PAIRS),
    lists:sort([
        begin
            Times = lists:foldl(fun({As, Bs}, Acc) -> times(Bs, length(As), times(As, length(Bs), Acc)) end, #{}, Pairs),
            [First | _] = Most = [Node || {_, Node} <- lists:sort([{-N, Node} || {Node, N} <- maps:to_list(Times)])],
            Count = lists:sum([length(As) * length(Bs) || {As, Bs} <- Pairs]),
            [A, B] = lists:min([lists:sort([A, B]) || {[A | _], [B | _]} <- Pairs]),
            {First, Count, Most, said("~b pairs of ~b nodes are not connected, as ~ts and ~ts", [Count, length(Part), A, B])}
        end
     || Part <- parts(Apart, []), Pairs <- [[Pair || {[A | _], _} = Pair <- Apart, ordsets:is_element(A, Part)]]
    ]).

%% As a rule with all of them, and then there is nothing to sort.
with(Peers, _, All, Others) when length(Peers) =:= Others -> All;
with(Peers, Node, _, _) -> ordsets:from_list([Node | Peers]).

%% Each of the first is apart from each of the second.
apart([N | Ns], All, Groups, Of, Left) when Left > 0 ->
    #{N := {With, Same}} = Groups,
    Others = lists:sublist([Other || {M, _} = Other <- by([{map_get(Node, Of), Node} || Node <- ordsets:subtract(All, With)]), M > N], Left),
    [{As, Bs} || {M, Bs} <- Others, {Have, _} <- [map_get(M, Groups)], [_ | _] = As <- [ordsets:subtract(Same, Have)], not ordsets:is_disjoint(With, Have)] ++
        apart(Ns, All, Groups, Of, Left - length(Others));
apart(_, _, _, _, _) ->
    [].

times(Nodes, N, Times) -> lists:foldl(fun(Node, Acc) -> maps:update_with(Node, fun(Before) -> Before + N end, N, Acc) end, Times, Nodes).

parts([{A, B} | Pairs], Parts) ->
    {With, Without} = lists:partition(fun(Part) -> not (ordsets:is_disjoint(A, Part) andalso ordsets:is_disjoint(B, Part)) end, Parts),
    parts(Pairs, [lists:usort(lists:append([A, B | With])) | Without]);
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
