%% The whole run as a pure model: fragments as they are, and a soup of messages
%% out of which any one may be taken next. Checked after every step:
%%
%% - held + inside messages + collected = 1
%% - when all is collected, there is no message and no vertex left to look at
%%
%% and at the end: all is collected, and the set is the one that a plain closure
%% finds, whatever the order was.
-module(orbit_termination_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-record(world, {
    fragments :: #{non_neg_integer() => orbit_fragment:fragment()},
    %% what each fragment has been told to hold: read back by giving it back
    vertices = [] :: [orbit_fragment:image()],
    credits = [] :: [orbit_credit:credit()],
    collected = orbit_credit:none() :: orbit_credit:credit()
}).

credit_is_never_lost_and_the_end_never_early_test_() ->
    atoll_prop:test(?FUNCTION_NAME, runs(), 300).

runs() ->
    ?FORALL({Workers, Size, Generators, Order}, {integer(1, 5), integer(1, 30), tables(), order()},
        begin
            Functions = [mapping(Table, Size) || Table <- Generators],
            Fragments = maps:from_list([{W, orbit_fragment:new(Functions)}
                                        || W <- lists:seq(0, Workers - 1)]),
            World = #world{fragments = Fragments, vertices = [{0, 0}]},
            finishes(Order, World, closure(Functions), length(Functions))
        end).

tables() -> non_empty(list(non_empty(list(non_neg_integer())))).

%% Which message to take next: cycled through.
order() -> non_empty(list(non_neg_integer())).

mapping(Table, Size) ->
    Images = list_to_tuple(Table),
    fun(X) -> element(1 + X rem tuple_size(Images), Images) rem Size end.

finishes([Choice | Order], World, Set, Degree) ->
    case is_sound(World) of
        false ->
            false;
        true ->
            case enabled(World) of
                [] -> is_finished(World, Set, Degree);
                Steps ->
                    Step = lists:nth(1 + Choice rem length(Steps), Steps),
                    finishes(Order ++ [Choice + 1], step(Step, World), Set, Degree)
            end
    end.

enabled(#world{vertices = Vertices, credits = Credits} = World) ->
    [{vertex, V} || V <- Vertices]
        ++ [{idle, W} || {W, Held} <- held(World), Held =/= []]
        ++ [{collect, C} || C <- Credits].

step({vertex, {X, Unit} = Vertex}, #world{fragments = Fragments, vertices = Vertices} = World) ->
    Owner = erlang:phash2(X, map_size(Fragments)),
    #{Owner := Fragment} = Fragments,
    {Images, Next} = orbit_fragment:vertex(X, Unit, Fragment),
    World#world{fragments = Fragments#{Owner := Next},
                vertices = Images ++ lists:delete(Vertex, Vertices)};
step({idle, W}, #world{fragments = Fragments, credits = Credits} = World) ->
    #{W := Fragment} = Fragments,
    {Credit, Next} = orbit_fragment:idle(Fragment),
    World#world{fragments = Fragments#{W := Next}, credits = [Credit | Credits]};
step({collect, Credit}, #world{credits = Credits, collected = Collected} = World) ->
    World#world{credits = lists:delete(Credit, Credits),
                collected = orbit_credit:sum(Credit, Collected)}.

held(#world{fragments = Fragments}) ->
    [{W, element(1, orbit_fragment:idle(F))} || {W, F} <- maps:to_list(Fragments)].

is_sound(#world{vertices = Vertices, credits = Credits, collected = Collected} = World) ->
    Held = [Credit || {_, Credit} <- held(World)],
    Inside = [[Unit] || {_, Unit} <- Vertices],
    is_one([Collected | Credits] ++ Held ++ Inside)
        andalso (Collected =/= [0] orelse (Vertices =:= [] andalso Credits =:= [])).

%% Exact: scaled by the smallest unit there is.
is_one(Credits) ->
    Units = lists:append(Credits),
    Scale = lists:max(Units),
    lists:sum([1 bsl (Scale - K) || K <- Units]) =:= 1 bsl Scale.

is_finished(#world{collected = Collected, fragments = Fragments}, Set, Degree) ->
    Tallies = [orbit_fragment:tally(F, true) || F <- maps:values(Fragments)],
    #{vertices := Vertices, size := Size, received := Received} =
        lists:foldl(fun orbit_tally:add/2, orbit_tally:none(), Tallies),
    Collected =:= [0] andalso lists:sort(Vertices) =:= Set
        andalso Size =:= length(Set) andalso Received =:= 1 + Size * Degree.

closure(Functions) ->
    closure([0], Functions).

closure(Set, Functions) ->
    case lists:usort(Set ++ [F(X) || F <- Functions, X <- Set]) of
        Set -> Set;
        Larger -> closure(Larger, Functions)
    end.
