%% SPDX-License-Identifier: Apache-2.0
%% @doc The limit of a service: searches ({@link atoll_scale_search}), each on a service that was started anew where the
%% description says how, and what was measured while runs failed ({@link atoll_scale_advise}).
%%
%% After the first search the others begin at its limit, and so look at the same levels around it. They are independent of each other as
%% far as starts of the service are; a machine that is slower for all of them is none that they can see. Where not even level 1
%% passes there is no limit, but a load or a service that does not work.
-module(atoll_scale_find).

-export([find/4, search/4]).

-export_type([found/0, options/0, note/0]).

-type options() :: #{
    settings := atoll_scale_plan:settings(),
    searches := pos_integer(),
    %% Where the first one begins; without, where the description says.
    from => pos_integer(),
    session := atoll_scale_programs:session()
}.

%% Told of each run, as it ends.
-type note() :: fun((atoll_scale_run:run()) -> ok).

-type found() :: #{
    summary := atoll_scale_search:summary(),
    %% Of all searches.
    runs := atoll_scale_search:runs(),
    findings := [atoll_scale_advise:finding()]
}.

%% Times that a service which has ended in a run is started again in one search.
-define(RESTARTS, 100).

%% @doc Finds it.
-spec find(atoll_scale_plan:plan(), options(), note(), Searched :: fun((atoll_scale_search:result()) -> ok)) ->
    {ok, found()} | {error, unicode:chardata()}.
find(#{from := First} = Plan, #{searches := Searches} = Options, Note, Searched) ->
    find(Searches, Plan, Options#{from => maps:get(from, Options, First)}, Note, Searched, []).

find(0, _, _, _, _, Done) ->
    Results = [Result || {Result, _, _} <- Done],
    Runs = lists:foldl(fun({_, Runs, _}, All) -> maps:merge_with(fun(_, {P, F}, {Q, G}) -> {P + Q, F + G} end, Runs, All) end, #{}, Done),
    {ok, #{
        summary => atoll_scale_search:summary(lists:reverse(Results)),
        runs => Runs,
        findings => atoll_scale_advise:findings(
            [Run || {#{fails := Fails}, _, Failed} <- Done, #{level := Level} = Run <- Failed, Level =:= Fails],
            [Run || {#{fails := Fails}, _, Failed} <- Done, #{level := Level} = Run <- Failed, Level =/= Fails]
        )
    }};
find(Left, #{level := Level} = Plan, #{settings := Settings, session := Session, from := From} = Options, Note, Searched, Done) ->
    case search(Plan, Settings, From, {Note, Session}) of
        {ok, {#{limit := 0}, _, [#{why := Why} | _]}} when Done =:= [] ->
            {error, ["not even 1 ", Level, " passes, so there is no limit to be found: ", lists:join(", ", Why)]};
        {ok, {#{limit := Limit} = Result, _, _} = One} ->
            ok = Searched(Result),
            find(Left - 1, Plan, Options#{from => max(1, Limit)}, Note, Searched, [One | Done]);
        {error, _} = Error ->
            Error
    end.

%% @doc One search on a service that is started for it: what it has found, what was run, and the runs that failed.
-spec search(atoll_scale_plan:plan(), atoll_scale_plan:settings(), From :: pos_integer(), {note(), atoll_scale_programs:session()}) ->
    {ok, {atoll_scale_search:result(), atoll_scale_search:runs(), [atoll_scale_run:run()]}} | {error, unicode:chardata()}.
search(#{to := To, precision := Precision} = Plan, Settings, From, {Note, Session}) ->
    Start = fun() -> atoll_scale_system:start(Plan, Settings, Session) end,
    case Start() of
        {ok, System} -> searched(atoll_scale_search:new(#{from => min(From, To), to => To, precision => Precision}), System, Start, Note, [], ?RESTARTS);
        {error, _} = Error -> Error
    end.

searched(Search, System, Start, Note, Failed, Restarts) ->
    case atoll_scale_search:next(Search) of
        {found, Result} ->
            ok = atoll_scale_system:stop(System),
            {ok, {Result, atoll_scale_search:runs(Search), Failed}};
        {run, Level} ->
            #{seconds := Seconds} = atoll_scale_system:plan(System),
            case atoll_scale_run:run(Level, Seconds, System) of
                {ok, #{passed := Passed, machine := Machine} = Run} ->
                    ok = Note(Run),
                    More = [Run || not Passed] ++ Failed,
                    Next = atoll_scale_search:told(Level, Passed, Search),
                    case is_map_key(ended, Machine) of
                        false -> searched(Next, System, Start, Note, More, Restarts);
                        true -> again(Next, System, Start, Note, More, Restarts)
                    end;
                {error, _} = Error ->
                    %% What it has come to in the run before may end it after that.
                    case atoll_scale_system:ended(System) of
                        {true, _} when Restarts > 0 -> again(Search, System, Start, Note, Failed, Restarts);
                        _ ->
                            ok = atoll_scale_system:stop(System),
                            Error
                    end
            end
    end.

again(_, System, _, _, _, 0) ->
    ok = atoll_scale_system:stop(System),
    {error, "the service ended again and again"};
again(Search, System, Start, Note, Failed, Restarts) ->
    ok = atoll_scale_system:stop(System),
    case Start() of
        {ok, Next} -> searched(Search, Next, Start, Note, Failed, Restarts - 1);
        {error, _} = Error -> Error
    end.
