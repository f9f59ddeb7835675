%% @doc The process of a colony: sends its ants out, watches them, and answers each round
%% with its best.
%%
%% After each generation its state is kept on its node ({@link aco_keep}), so that when it
%% is started again it goes on from there. What it is asked is the round to
%% come to. If that is more than one ahead, as it is for one that is started on another
%% node, it runs all rounds up to it, each with what was told then, which it asks for
%% where it is not known on its node. It answers whoever has asked for that round.
%%
%% An ant that is killed is started again with the same errand, unless very many are before
%% one comes back: that ends the run, and so does one that fails by itself. Where nothing is
%% reliable any loss does.
-module(aco_colony_server).

-export([start_link/4]).
-export([init/4, ant/2]).

-export_type([message/0, run/0]).

%% What it needs of the run.
-type run() :: #{problem := aco_problem:problem(), options := aco_options:options(), reliable := boolean(), _ => _}.

-type message() ::
    %% from its submaster
    {round, Asker :: pid(), aco_branch:round_number(), aco_branch:told()}
    | {told, [aco_keep:span()]}
    %% from an ant
    | {found, pid(), aco_schedule:solution()}
    %% from the runtime
    | {'EXIT', pid(), term()}.

-record(colony, {
    host :: pid(),
    keep :: aco_keep:keep(),
    run :: run(),
    colony :: aco_colony:colony(),
    %% the last round that was begun, and the one to come to
    began :: non_neg_integer(),
    target = 0 :: non_neg_integer(),
    %% what it was told last, after the round before that
    told = none :: aco_branch:told(),
    askers = aco_askers:new() :: aco_askers:askers(),
    %% those that are out, with the place and the text of their errand
    ants = #{} :: #{pid() => {pos_integer(), aco_ant:errand()}},
    %% what has come back of this generation, by place
    found = [] :: [{pos_integer(), aco_schedule:solution()}],
    %% how many were lost since one came back
    lost = 0 :: non_neg_integer()
}).

%% How many may be: one alone so often, and of many each some times, for then they take long.
-define(LOST_ALONE, 50).
-define(LOST_EACH, 5).

%% @doc Starts it, linked to the caller, the host of its node.
-spec start_link(pid(), aco_keep:keep(), aco_colony:id(), run()) -> pid().
start_link(Host, Keep, Id, Run) ->
    spawn_link(?MODULE, init, [Host, Keep, Id, Run]).

%% @private
-spec init(pid(), aco_keep:keep(), aco_colony:id(), run()) -> no_return().
init(Host, Keep, Id, #{problem := Problem, options := Options} = Run) ->
    process_flag(trap_exit, true),
    {Began, Colony} =
        case aco_keep:colony(Id, Keep) of
            {ok, Kept} -> Kept;
            none -> {0, aco_colony:new(Problem, Options, Id)}
        end,
    loop(#colony{host = Host, keep = Keep, run = Run, colony = Colony, began = Began}).

loop(S) ->
    receive
        Message -> loop(handle(Message, S))
    end.

-spec handle(message(), #colony{}) -> #colony{}.
handle({round, Asker, Round, Told}, #colony{target = Target, askers = Askers} = S) when Round >= Target ->
    ok = keep_told(Round - 1, Told, S),
    advance(S#colony{askers = aco_askers:add(Asker, Round, Askers), target = Round, told = Told});
handle({round, _, _, _}, S) ->
    S;
handle({told, Rows}, #colony{keep = Keep} = S) ->
    lists:foreach(fun(Span) -> ok = aco_keep:put_told(Span, Keep) end, Rows),
    advance(S);
handle({found, Ant, Solution}, #colony{ants = Ants, found = Found} = S) ->
    case maps:take(Ant, Ants) of
        {{Place, _}, Left} -> when_all_are_back(S#colony{ants = Left, found = [{Place, Solution} | Found], lost = 0});
        error -> S
    end;
handle({'EXIT', Host, Why}, #colony{host = Host}) ->
    exit(Why);
handle({'EXIT', Ant, Why}, #colony{ants = Ants} = S) ->
    case maps:take(Ant, Ants) of
        {Errand, Left} -> lost(Why, Errand, S#colony{ants = Left});
        %% It has found something before.
        error -> S
    end.

%% The next step, if none is under way.
advance(#colony{ants = Ants} = S) when map_size(Ants) > 0 ->
    S;
advance(#colony{colony = Colony, began = Began, target = Target, askers = Askers} = S) ->
    case aco_colony:round(Colony) of
        Rounds when Rounds < Began ->
            send_out(S);
        Began when Began < Target ->
            case told_after(Began, S) of
                {ok, Told} -> begin_round(Told, S);
                unknown -> ask_what_was_told(S)
            end;
        Target ->
            Best = case Target of 0 -> none; _ -> aco_colony:offer(Colony) end,
            ok = aco_askers:tell({best, aco_colony:id(Colony), Target, Best}, Askers),
            S;
        _ ->
            S
    end.

%% Of other rounds than the last it is known where it is kept: where lost ones are replaced.
keep_told(Round, {_, _} = Told, #colony{run = #{reliable := true}, keep = Keep}) ->
    aco_keep:put_told({Round, Round, Told}, Keep);
keep_told(_, _, _) ->
    ok.

told_after(0, _) ->
    {ok, none};
told_after(Round, #colony{target = Target, told = Told}) when Round =:= Target - 1 ->
    {ok, Told};
told_after(Round, #colony{keep = Keep}) ->
    case aco_keep:told(Round, Round, Keep) of
        {ok, [{Round, Round, Told}]} -> {ok, Told};
        none -> unknown
    end.

begin_round(none, #colony{began = Began} = S) ->
    send_out(kept(S#colony{began = Began + 1}));
begin_round({Best, Owner}, #colony{colony = Colony, began = Began} = S) ->
    send_out(kept(S#colony{colony = aco_colony:global(Best, Owner, Colony), began = Began + 1})).

ask_what_was_told(#colony{askers = Askers, began = Began} = S) ->
    ok = aco_askers:tell({behind, self(), Began}, Askers),
    S.

send_out(#colony{colony = Colony} = S) ->
    Errands = aco_colony:errands(Colony),
    Places = lists:zip(lists:seq(1, length(Errands)), Errands),
    lists:foldl(fun send_out/2, S#colony{found = []}, Places).

send_out({_, Errand} = Place, #colony{ants = Ants} = S) ->
    Ant = spawn_link(?MODULE, ant, [self(), Errand]),
    S#colony{ants = Ants#{Ant => Place}}.

%% @private
-spec ant(pid(), aco_ant:errand()) -> {found, pid(), aco_schedule:solution()}.
ant(Colony, Errand) ->
    Colony ! {found, self(), aco_ant:run(Errand)}.

when_all_are_back(#colony{ants = Ants} = S) when map_size(Ants) > 0 ->
    S;
when_all_are_back(#colony{colony = Colony, found = Found} = S) ->
    {Over, Next} = aco_colony:take([Solution || {_, Solution} <- lists:sort(Found)], Colony),
    Kept = kept(S#colony{colony = Next}),
    case Over of
        generation_over -> send_out(Kept);
        round_over -> advance(Kept)
    end.

kept(#colony{colony = Colony, began = Began, keep = Keep} = S) ->
    Id = aco_colony:id(Colony),
    ok = aco_keep:put_colony(Id, Began, Colony, Keep),
    ok = aco_keep:got_on(Id, Keep),
    S.

lost(killed, Place, #colony{run = #{reliable := true, options := #{ants := Ants}}, lost = Before} = S) ->
    Lost = S#colony{lost = Before + 1},
    case ?LOST_ALONE + ?LOST_EACH * Ants of
        Most when Before >= Most ->
            failed(ants_in_vain, [Most], Lost);
        _ ->
            ok = aco_keep:count(restarts, S#colony.keep),
            send_out(Place, Lost)
    end;
lost(killed, _, S) ->
    failed(ant_lost, [], S);
lost(Why, _, S) ->
    failed(ant_crashed, [Why], S).

failed(What, More, #colony{host = Host, colony = Colony} = S) ->
    Host ! {failed, list_to_tuple([What, aco_colony:id(Colony), node() | More])},
    S.
