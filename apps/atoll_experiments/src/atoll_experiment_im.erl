%% SPDX-License-Identifier: Apache-2.0
%% @doc The instant messenger over a mesh and over groups: throughput over servers and routers, connections,
%% and throughput while processes are killed (paper 004, Figure 12).
-module(atoll_experiment_im).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

-define(MODES, [rd, rsd]).
-define(SERVERS, [2, 4, 6]).
-define(ROUTERS, [1, 2, 3]).
%% As the paper has no effect of failures on throughput.
-define(KEPT, 0.95).

-spec about() -> atoll_experiment:about().
about() ->
    #{
        name => im,
        title => "An instant messenger",
        question => "How many messages does it deliver with more servers and routers, over a mesh and over groups, and what do failures cost?",
        minutes => 12,
        cannot => "what more hosts would add: all servers share the same processors, so more of them are more work and no more power. What is seen is what a way of "
            "connecting nodes costs. The conversations have no time to think, or a run would be of the clients and not of the messenger."
    }.

-spec asks(atoll_experiment:context()) -> [atoll_experiment:ask(), ...].
asks(#{size := small}) ->
    [#{key => Key, do => {bench, "im", #{sweep => sweep([1], [2], Storm, 1), rounds => 1, starts => 1}}} || {Key, Storm} <- [{servers, [0]}, {routers, [0]}, {storm, [0, 500]}]];
asks(#{size := full}) ->
    [
        #{key => servers, do => {bench, "im", #{sweep => sweep([2], ?SERVERS, [0], 3), rounds => 2, starts => 2}}},
        #{key => routers, do => {bench, "im", #{sweep => sweep(?ROUTERS, [6], [0], 3), rounds => 2, starts => 2}}},
        #{key => storm, do => {bench, "im", #{sweep => sweep([2], [6], [0, 500], 5), rounds => 6, starts => 6}}}
    ].

sweep(Routers, Servers, Rhesus, Seconds) ->
    #{routers => Routers, servers => Servers, rhesus => Rhesus, seconds => [Seconds], clients => [200], mode => ?MODES}.

-spec tables() -> [atoll_experiment:table()].
tables() ->
    [
        #{caption => Caption, from => From, down => Down, across => {mode, ?MODES}, quantity => Metric}
     || {Caption, From, Down, Metric} <- [
            {"Messages delivered in a minute, by servers:", servers, servers, per_minute},
            {"Messages delivered in a minute, by routers:", routers, routers, per_minute},
            {"Connections of routers and servers, by routers:", routers, routers, connections},
            {"Time until the sender knows of the delivery, nanoseconds, by routers:", routers, routers, latency},
            {"Messages delivered in a minute, by milliseconds between two kills (0: none):", storm, rhesus, per_minute},
            {"Processes killed:", storm, rhesus, kills}
        ]
    ].

-spec questions() -> [atoll_experiment:question(), ...].
questions() ->
    [
        #{
            figure => "Chechina and others (2016), section 4",
            says => "Groups need fewer connections than a mesh, by a formula of routers and servers; with one router as many.",
            kind => counted, from => routers, by => fun connections/1
        },
        #{
            figure => "Chechina and others (2016), Figure 12",
            says => "Processes that are killed leave the throughput as it was.",
            kind => {at_most, 1 / ?KEPT},
            from => storm,
            by => #{
                quantity => per_minute,
                called => "Without kills as many times as much was delivered",
                first => #{rhesus => 0},
                over => #{rhesus => 500},
                at => [#{mode => Mode} || Mode <- ?MODES]
            },
            why => "The paper kills a process each 5 to 15 s; this is more. Every run is checked: none has lost an accepted message, or it would have ended with an error."
        }
    ].

connections(Answer) ->
    Rows = atoll_experiments_samples:rows(Answer),
    Seen = lists:usort([{Mode, Routers, Servers, Connections} || #{<<"mode">> := Mode, <<"routers">> := Routers, <<"servers">> := Servers, <<"connections">> := Connections} <- Rows]),
    Wrong = [Row || {Mode, Routers, Servers, Connections} = Row <- Seen, Connections /= formula(Mode, Routers, Servers)],
    {
        case {Seen, Wrong} of {[], _} -> unknown; {_, []} -> true; _ -> false end,
        lists:join("; ", [[Mode, " with ", integer_to_list(R), " routers and ", integer_to_list(S), " servers: ", integer_to_list(round(C))] || {Mode, R, S, C} <- Seen]) ++ "."
    }.

formula(Mode, Routers, Servers) ->
    Nodes = fun(Kind, N) -> [list_to_atom(Kind ++ integer_to_list(I) ++ "@h") || I <- lists:seq(1, N)] end,
    {ok, Plan} = im_plan:new(#{mode => binary_to_atom(Mode), routers => Nodes("r", Routers), servers => Nodes("s", Servers)}),
    im_plan:connections(Plan).
