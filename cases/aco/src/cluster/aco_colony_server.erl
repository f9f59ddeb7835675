%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a colony: sends its ants out, one process each, and answers each round with
%% its best.
%%
%% After each generation its state is kept on its node ({@link aco_keep}): started again it goes on
%% from there. What it is asked is the round to come to. On another node, where nothing is
%% kept, it begins anew, and runs all rounds up to that one with what was told in each. So what
%% it finds is the same whatever is killed, and wherever it is.
%%
%% An ant that is killed is sent out again with the same errand; one that fails by itself ends the
%% colony, and with it the run.
-module(aco_colony_server).
-behaviour(gen_server).

-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export([ant/1]).

-record(state, {
    id :: aco_colony:id(),
    run :: aco_host:run(),
    colony :: aco_colony:colony(),
    %% the last round that was begun, and the one to come to
    began :: non_neg_integer(),
    target = 0 :: non_neg_integer(),
    told = [] :: aco_branch:told(),
    %% more than one if the submaster was killed meanwhile
    askers = [] :: [gen_server:from()],
    %% those that are out, with the place and the text of their errand
    ants = #{} :: #{pid() => {pos_integer(), aco_ant:errand()}},
    %% what has come back of this generation, by place
    found = [] :: [{pos_integer(), aco_schedule:solution()}]
}).

%% How often a colony and its ants may be killed in one generation: it alone so often, and
%% for each ant some times.
-define(LOST_ALONE, 50).
-define(LOST_EACH, 5).

%% @private
-spec init({aco_colony:id(), aco_host:run()}) -> {ok, #state{}}.
init({Id, #{id := RunId, problem := Problem, options := Options} = Run}) ->
    process_flag(trap_exit, true),
    {Began, Colony} = case aco_keep:get(RunId, {colony, Id}, none) of
                          none -> {0, aco_colony:new(Problem, Options, Id)};
                          Kept -> Kept
                      end,
    {ok, #state{id = Id, run = Run, colony = Colony, began = Began}}.

%% @private
-spec handle_call({round, aco_branch:round_number(), aco_branch:told()}, gen_server:from(), #state{}) ->
    {reply, {ok, map()}, #state{}} | {noreply, #state{}}.
handle_call({round, finish, _}, _, #state{run = Run} = S) ->
    {reply, {ok, aco_host:report(Run)}, S};
handle_call({round, Round, Told}, {Pid, _} = From, #state{id = Id, run = #{id := RunId}, askers = Askers, ants = Ants} = S) ->
    ok = aco_leash:follow(RunId, Id, Pid),
    Asked = S#state{askers = [From | Askers], target = Round, told = Told},
    {noreply, case map_size(Ants) of 0 -> advance(Asked); _ -> Asked end}.

%% @private
-spec handle_cast(term(), #state{}) -> no_return().
handle_cast(Unknown, _) -> error({unknown_cast, Unknown}).

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({'EXIT', Ant, Why}, #state{ants = Ants, found = Found, run = #{reliable := Reliable}} = S) ->
    case {maps:take(Ant, Ants), Why} of
        {{{Place, _}, Left}, {found, Solution}} ->
            {noreply, when_all_are_back(S#state{ants = Left, found = [{Place, Solution} | Found]})};
        {{Errand, Left}, killed} when Reliable -> {noreply, unless_in_vain(fun(Now) -> sent_out(Errand, Now) end, S#state{ants = Left})};
        _ -> {stop, Why, S}
    end.

%% The next step, when none is under way.
advance(#state{colony = Colony, began = Began, target = Target} = S) ->
    case aco_colony:round(Colony) of
        Rounds when Rounds < Began -> send_out(S);
        Began when Began < Target -> send_out(kept(begun(S)));
        _ -> answer({ok, case Target of 0 -> none; _ -> aco_colony:offer(Colony) end}, S)
    end.

begun(#state{began = 0} = S) -> S#state{began = 1};
begun(#state{colony = Colony, began = Began, told = Told} = S) ->
    [{Best, Owner} | _] = [Known || {First, Known} <- Told, First =< Began],
    S#state{colony = aco_colony:global(Best, Owner, Colony), began = Began + 1}.

send_out(#state{colony = Colony} = S) ->
    Errands = aco_colony:errands(Colony),
    Places = lists:zip(lists:seq(1, length(Errands)), Errands),
    unless_in_vain(fun(Now) -> lists:foldl(fun sent_out/2, Now#state{found = []}, Places) end, S).

sent_out({_, Errand} = Place, #state{ants = Ants} = S) ->
    S#state{ants = Ants#{spawn_link(?MODULE, ant, [Errand]) => Place}}.

%% @private
-spec ant(aco_ant:errand()) -> no_return().
ant(Errand) -> exit({found, aco_ant:run(Errand)}).

when_all_are_back(#state{ants = Ants} = S) when map_size(Ants) > 0 -> S;
when_all_are_back(#state{colony = Colony, found = Found} = S) ->
    {_, Next} = aco_colony:take([Solution || {_, Solution} <- lists:sort(Found)], Colony),
    advance(kept(S#state{colony = Next})).

kept(#state{id = Id, run = #{id := RunId}, colony = Colony, began = Began} = S) ->
    ok = aco_keep:put(RunId, {colony, Id}, {Began, Colony}),
    ok = aco_keep:put(RunId, {vain, Id}, 0),
    S.

unless_in_vain(Next, #state{id = Id, run = #{id := RunId, options := #{ants := Ants}}} = S) ->
    case {aco_keep:count(RunId, {vain, Id}), ?LOST_ALONE + ?LOST_EACH * Ants} of
        {Count, Most} when Count > Most -> answer({error, {in_vain, Id, node(), Most}}, S);
        _ -> Next(S)
    end.

%% As if it were so many colonies, of which all but one are not listened to.
answer(Answer, #state{askers = Askers, run = #{duplicating := Times}} = S) ->
    lists:foreach(fun({Pid, _} = From) ->
        _ = [Pid ! {duplicate, Answer} || _ <- lists:seq(2, Times)],
        gen_server:reply(From, Answer)
    end, Askers),
    S#state{askers = []}.
