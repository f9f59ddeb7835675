%% SPDX-License-Identifier: Apache-2.0
%% The whole run as a pure model: parts, plan and ledger as they are, and a soup of messages out of
%% which any one may be taken next, while processes and nodes are killed, messages are lost with the
%% connection, and nodes come back. Checked after every step:
%%
%% - of the credit of the present epoch there is never more than 1, and just 1 as long as nothing
%%   was lost;
%% - if all of it is collected, no message of this epoch and no image to compute is left;
%%
%% and at the end: the ledger is done, with the set that a plain closure finds, whatever the order was
%% and whatever was lost.
-module(orbit_termination_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-record(world, {
    functions :: [orbit_generators:generator(), ...],
    ledger :: orbit_ledger:ledger(),
    %% processes by number, each with its part, its node and its state; of one part there may be
    %% some on a node that came back and has heard of an earlier epoch
    parts = #{} :: #{pos_integer() => {orbit_part:id(), node(), orbit_part:part()}},
    count = 0 :: non_neg_integer(),
    nodes :: [node()],
    alive :: [node()],
    %% the last epoch that each node has prepared
    prepared = #{} :: #{node() => orbit_part:epoch()},
    %% of each epoch the processes that take part
    routes = #{} :: #{orbit_part:epoch() => #{orbit_part:id() => pos_integer()}},
    %% what nodes have of the results of their parts
    results = #{} :: #{{node(), orbit_part:epoch()} => #{orbit_part:id() => orbit_tally:tally()}},
    %% epochs in which something was lost
    harmed = [] :: [orbit_part:epoch()],
    %% {master, Event}, {node, Node, Epoch, Plan}, {part, Number, Event}, {compute, Number, X}
    soup = [] :: [tuple()],
    done = no :: no | {ok, orbit_tally:tally()} | {error, term()}
}).

whatever_is_lost_the_end_is_never_early_and_the_set_is_right_test_() ->
    atoll_prop:test(?FUNCTION_NAME, runs(list(harm())), 1000).

where_nothing_is_lost_there_is_one_epoch_and_each_image_is_one_message_test_() ->
    atoll_prop:test(?FUNCTION_NAME, runs([]), 300).

%% Who looks for it says so each second, until the next epoch begins.
a_node_that_is_back_is_remembered_once_test() ->
    {ok, Plan} = orbit_plan:new(mesh, [a, b], 1, #{workers => 1, separate_submasters => false, prefix => x}),
    {[], Once} = orbit_ledger:handle({back, b}, orbit_ledger:new(Plan, 1)),
    ?assertEqual({[], Once}, orbit_ledger:handle({back, b}, Once)).

runs(Harms) ->
    ?FORALL({Nodes, Workers, Size, Tables, Order, Harm}, {integer(1, 4), integer(1, 2), integer(1, 30), tables(), order(), Harms},
        begin
            Functions = [mapping(Table, Size) || Table <- Tables],
            Set = closure(Functions, [0]),
            #world{done = Done, ledger = Ledger} = Last = finish(Order, Harm, 1, world(Nodes, Workers, Functions)),
            {ok, #{vertices := Vertices, size := Found, received := Received}} = Done,
            ?WHENFAIL(io:format("~p~n", [Last]),
                lists:sort(Vertices) =:= Set andalso Found =:= length(Set)
                    andalso (Harm =/= [] orelse {orbit_ledger:epoch(Ledger), Received} =:= {1, 1 + Found * length(Functions)}))
        end).

%% So many steps after the one before it: a process, a node, a message; a node comes back.
harm() -> {integer(0, 25), oneof([part, node, message, back]), non_neg_integer()}.

tables() -> non_empty(list(non_empty(list(non_neg_integer())))).

%% Which message to take next.
order() -> non_neg_integer().

mapping(Table, Size) ->
    Images = list_to_tuple(Table),
    fun(X) -> element(1 + X rem tuple_size(Images), Images) rem Size end.

closure(Functions, Set) ->
    case lists:usort(Set ++ [F(X) || F <- Functions, X <- Set]) of
        Set -> Set;
        Larger -> closure(Functions, Larger)
    end.

world(Count, Workers, Functions) ->
    Nodes = lists:sublist([n1, n2, n3, n4], Count),
    {ok, Plan} = orbit_plan:new(mesh, Nodes, 1, #{workers => Workers, separate_submasters => false, prefix => x}),
    decided(start, #world{functions = Functions, ledger = orbit_ledger:new(Plan, length(Functions)), nodes = Nodes, alive = Nodes}).

finish(Order, Harm, Step, World) ->
    is_sound(World) orelse error({unsound, Step, World#world{functions=[]}}),
    case {steps(World), Harm} of
        {_, [{0, What, Which} | More]} -> finish(Order, More, Step, harmed(What, Which, World));
        {[], [{_, What, Which} | More]} -> finish(Order, More, Step, harmed(What, Which, World));
        {[], []} -> World;
        {Steps, _} ->
            Next = step(nth(erlang:phash2({Order, Step}), Steps), World),
            finish(Order, sooner(Harm), Step + 1, Next)
    end.

sooner([{N, What, Which} | More]) -> [{N - 1, What, Which} | More];
sooner([]) -> [].

%% Who is idle may give back its credit at any moment.
steps(#world{soup = Soup, parts = Parts}) ->
    Soup ++ [{idle, Number} || {Number, {_, _, Part}} <- maps:to_list(Parts), element(1, orbit_part:handle(idle, Part)) =/= []].

step({idle, Number}, World) ->
    moved(Number, idle, World);
step(Message, #world{soup = Soup} = World) ->
    taken(Message, World#world{soup = lists:delete(Message, Soup)}).

taken({master, Event}, World) ->
    decided(Event, World);
taken({node, Node, Epoch, Plan}, #world{alive = Alive, prepared = Prepared} = World) ->
    case lists:member(Node, Alive) of
        false -> add([{master, {unreached, Epoch, Node, gone}}], World);
        true when map_get(Node, Prepared) >= Epoch -> World;
        true ->
            #world{parts = Parts} = Has = lists:foldl(fun(Id, W) -> placed(Id, Node, W) end, World#world{prepared = Prepared#{Node => Epoch}},
                                                     orbit_plan:parts(Node, Plan)),
            Workers = maps:from_list([{Id, Number} || {Number, {Id, At, _}} <- maps:to_list(Parts), At =:= Node,
                                                      lists:member(Id, orbit_plan:parts(Node, Plan))]),
            add([{master, {ready, Epoch, Node, #{submaster => Node, workers => Workers, gateways => []}}}], Has)
    end;
taken({part, Number, Event}, World) ->
    moved(Number, Event, World);
taken({compute, Number, X}, #world{functions = Functions} = World) ->
    moved(Number, {images, X, [F(X) || F <- Functions]}, World);
taken({collect, Number, Epoch}, #world{parts = Parts} = World) ->
    case Parts of
        #{Number := {Id, Node, Part}} -> add([{result, Node, Id, Epoch, orbit_part:tally(Part, true)}], World);
        #{} -> World
    end;
%% A node answers when it has the results of all of its parts.
taken({result, Node, Id, Epoch, Tally}, #world{results = Results, ledger = Ledger} = World) ->
    Mine = (maps:get({Node, Epoch}, Results, #{}))#{Id => Tally},
    Said = [{master, {result, Epoch, Node, lists:foldl(fun orbit_tally:add/2, orbit_tally:none(), maps:values(Mine))}}
            || lists:sort(maps:keys(Mine)) =:= orbit_plan:parts(Node, orbit_ledger:plan(Ledger))],
    add(Said, World#world{results = Results#{{Node, Epoch} => Mine}}).

%% The process of a part on that node; a new one if there is none.
placed(Id, Node, #world{parts = Parts, count = Count, ledger = Ledger, functions = Functions} = World) ->
    case [x || {Part, At, _} <- maps:values(Parts), Part =:= Id, At =:= Node] of
        [_] -> World;
        [] ->
            New = orbit_part:new(Id, orbit_plan:parts(orbit_ledger:plan(Ledger)), length(Functions)),
            World#world{parts = Parts#{Count + 1 => {Id, Node, New}}, count = Count + 1}
    end.

%% What comes to one that is gone is lost.
moved(Number, Event, #world{parts = Parts, routes = Routes} = World) when is_map_key(Number, Parts) ->
    #{Number := {Id, Node, Part}} = Parts,
    {Effects, Next} = orbit_part:handle(Event, Part),
    Messages = [case Effect of
                    {compute, X} -> {compute, Number, X};
                    {send, To, Epoch, Xs, Unit} -> {part, maps:get(To, maps:get(Epoch, Routes)), {vertices, Epoch, Xs, Unit}};
                    {credit, _, _} -> {master, Effect}
                end || Effect <- Effects],
    add(Messages, World#world{parts = Parts#{Number := {Id, Node, Next}}});
moved(_, _, World) ->
    World.

decided(Event, #world{ledger = Ledger} = World) ->
    {Effects, Next} = orbit_ledger:handle(Event, Ledger),
    lists:foldl(fun act/2, World#world{ledger = Next}, Effects).

act({prepare, Epoch, Plan}, World) ->
    add([{node, Node, Epoch, Plan} || Node <- orbit_plan:present(Plan)], World);
act({go, Epoch, Ready, Unit}, #world{routes = Routes, parts = Parts} = World) ->
    Are = lists:foldl(fun maps:merge/2, #{}, [Workers || #{workers := Workers} <- maps:values(Ready)]),
    %% Who watches one that is gone hears of it at once.
    Gone = [Number || Number <- maps:values(Are), not is_map_key(Number, Parts)],
    lost([Epoch || Gone =/= []], add([{part, Number, {'begin', Epoch, Unit}} || Number <- maps:values(Are)],
                                     World#world{routes = Routes#{Epoch => Are}}));
act({collect, Epoch}, #world{routes = Routes, ledger = Ledger} = World) ->
    Nodes = orbit_plan:present(orbit_ledger:plan(Ledger)),
    Idle = [Node || Node <- Nodes, orbit_plan:parts(Node, orbit_ledger:plan(Ledger)) =:= []],
    add([{collect, Number, Epoch} || Number <- maps:values(maps:get(Epoch, Routes))]
        ++ [{master, {result, Epoch, Node, orbit_tally:none()}} || Node <- Idle], World);
act({done, Tally}, World) -> World#world{done = {ok, Tally}};
act({fail, Reason}, World) -> World#world{done = {error, Reason}}.

add(Messages, #world{soup = Soup} = World) -> World#world{soup = Messages ++ Soup}.

%%% Harm

harmed(part, Which, #world{parts = Parts, prepared = Prepared} = World) when map_size(Parts) > 0 ->
    {Number, {Id, Node, _}} = nth(Which, maps:to_list(Parts)),
    %% Its supervisor starts it again.
    lost([maps:get(Node, Prepared)], placed(Id, Node, World#world{parts = maps:remove(Number, Parts)}));
%% All have been there.
harmed(node, Which, #world{alive = [First, _ | _] = Alive, parts = Parts, prepared = Prepared, routes = Routes} = World) when map_size(Routes) > 0 ->
    Node = nth(Which, tl(Alive)),
    Left = maps:filter(fun(_, {_, At, _}) -> At =/= Node end, Parts),
    lost(lists:usort(maps:values(Prepared)),
         World#world{alive = [First | tl(Alive) -- [Node]], parts = Left, prepared = maps:remove(Node, Prepared)});
harmed(back, Which, #world{alive = Alive, ledger = Ledger} = World) ->
    case World#world.nodes -- (Alive ++ orbit_plan:present(orbit_ledger:plan(Ledger))) of
        [] -> World;
        Gone ->
            Node = nth(Which, Gone),
            add([{master, {back, Node}}], World#world{alive = Alive ++ [Node]})
    end;
harmed(message, Which, #world{soup = Soup} = World) ->
    case [Message || {part, _, {vertices, _, _, _}} = Message <- Soup] of
        [] -> World;
        Messages ->
            {_, _, {_, Epoch, _, _}} = Message = nth(Which, Messages),
            lost([Epoch], World#world{soup = lists:delete(Message, Soup)})
    end;
harmed(_, _, World) ->
    World.

nth(Which, List) -> lists:nth(1 + Which rem length(List), List).

lost(Epochs, #world{harmed = Harmed} = World) ->
    add([{master, {lost, Epoch}} || Epoch <- Epochs], World#world{harmed = Epochs ++ Harmed}).

%%% What always holds

is_sound(#world{ledger = Ledger, soup = Soup, parts = Parts, harmed = Harmed, routes = Routes, done = Done}) ->
    Epoch = orbit_ledger:epoch(Ledger),
    case Routes of
        #{Epoch := _} when Done =:= no ->
            Collected = orbit_ledger:credit(Ledger),
            Inside = [Unit || {part, _, {vertices, E, _, Unit}} <- Soup, E =:= Epoch]
                ++ [Unit || {part, _, {'begin', E, Unit}} <- Soup, E =:= Epoch],
            Returned = [Credit || {master, {credit, E, Credit}} <- Soup, E =:= Epoch],
            Held = [orbit_part:credit(Epoch, Part) || {_, _, Part} <- maps:values(Parts)],
            All = value(lists:append([Collected, Inside | Returned ++ Held])),
            Computing = [Number || {compute, Number, _} <- Soup, is_map_key(Number, Parts)],
            All =< value([0]) andalso (lists:member(Epoch, Harmed) orelse All =:= value([0]))
                andalso (Collected =/= [0] orelse (Inside =:= [] andalso Computing =:= []));
        #{} -> true
    end.

%% In units of 1/2^2000.
value(Units) -> lists:sum([1 bsl (2000 - K) || K <- Units]).
