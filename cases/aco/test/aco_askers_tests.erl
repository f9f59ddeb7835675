-module(aco_askers_tests).

-include_lib("eunit/include/eunit.hrl").

all_that_asked_for_the_present_round_are_told_once_test() ->
    [A, B, C] = [listener() || _ <- [a, b, c]],
    Askers = lists:foldl(fun({Who, Round}, All) -> aco_askers:add(Who, Round, All) end, aco_askers:new(),
                         [{A, 1}, {B, 2}, {C, 2}, {B, 2}, {A, 1}]),
    ok = aco_askers:tell(hello, Askers),
    ?assertEqual([[], [hello], [hello]], [heard(Who) || Who <- [A, B, C]]).

listener() ->
    spawn_link(fun() -> receive {tell, Who} -> Who ! {self(), element(2, process_info(self(), messages))} end end).

heard(Listener) ->
    Listener ! {tell, self()},
    receive {Listener, Messages} -> Messages end.
