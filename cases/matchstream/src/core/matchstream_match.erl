%% SPDX-License-Identifier: Apache-2.0
%% @doc A match as a value: who plays, who is on the field, the score, the period, and what each event changes. Pure.
%%
%% ```
%% not_started -start-> first -halftime_start-> halftime -halftime_stop-> last
%% last -extratime-> first_extra -halftime_start-> halftime_extra -halftime_stop-> last_extra
%% last, last_extra -penalties-> penalties
%% any but not_started -stop-> ended
%% any -cancel-> ended
%% '''
%% Promised: an event that is taken has the next number, names each player with the number and the name, and says
%% nothing of a team or a player that does not play. One that is not taken changes nothing, and why is a
%% sentence. The same events give the same match, by whomever they are replayed.
%%
%% Not promised: the laws of the game. A second yellow card is no red one, and anybody may be substituted any number of times.
%%
%% It is one module, though long, since the table of kinds, what each changes, and the sentences of what is refused are the same rules.
-module(matchstream_match).

-export([new/1, register/4, replay/2, restored/2, status/1, id/1, seq/1, period/1, is_running/1, teams/1, score/1, to_map/1, kinds/0, is_end/1, format_error/1]).

-export_type([match/0, id/0, team/0, player/0, period/0, kind/0, data/0, event/0, about/0, error/0]).

-type id() :: binary().
%% HOME-VISIT-YYYY-MM-DD.

-type team() :: binary().
-type player() :: {Number :: 0..99, Name :: binary()}.
-type period() :: not_started | first | halftime | last | first_extra | halftime_extra | last_extra | penalties | ended.

-type kind() ::
    start | halftime_start | halftime_stop | continue | stop | cancel | extratime | penalties
    | shot | save | goal | corner | goalkick | offside | foul | penalty | freekick | throwin
    | card | substitution.

-type data() :: [{atom(), binary() | atom() | non_neg_integer() | player() | [player()]}].
%% Of an event that was taken in the order of the protocol; a player has a name there.

-type event() :: #{
    %% the first one of a match has 1; a status has that of the event before it
    seq := non_neg_integer(),
    %% milliseconds since 1970
    at := integer(),
    kind := kind() | status,
    data := data()
}.

-type about() :: #{home := team(), visit := team(), start_date := calendar:date(), stadium => binary()}.

-record(match, {
    id :: id(),
    home :: team(),
    visit :: team(),
    date :: calendar:date(),
    stadium :: binary(),
    home_players = [] :: [player()],
    visit_players = [] :: [player()],
    home_score = 0 :: non_neg_integer(),
    visit_score = 0 :: non_neg_integer(),
    period = not_started :: period(),
    %% of the last event, and when it was
    seq = 0 :: non_neg_integer(),
    at = 0 :: integer()
}).

-opaque match() :: #match{}.

-type error() ::
    {unknown_kind, term()}
    | {unknown_key, kind(), term()}
    | {missing, kind(), atom()}
    | {no_pair, kind(), term()}
    | {bad_value, atom()}
    | {bad_match, atom()}
    | same_team
    | {invalid_team, team()}
    | {unknown_player, term(), team()}
    | {already_plays, 0..99, team()}
    | {invalid_card, term()}
    | {wrong_period, kind(), period()}
    | too_many_events.

%% A match of today has two thousand at most.
-define(EVENTS, 10000).
-define(PLAYERS, 30).
-define(NAME_BYTES, 64).
-define(PLAYING, [first, last, first_extra, last_extra, penalties]).
-define(STARTED, [halftime, halftime_extra | ?PLAYING]).

%% Of each kind the keys in the order of the protocol, which may be left out, and the periods in which it may happen.
-define(KINDS, #{
    start => {[], [home_players, visit_players], [not_started]},
    halftime_start => {[], [], [first, first_extra]},
    halftime_stop => {[], [], [halftime, halftime_extra]},
    continue => {[], [], ?STARTED},
    stop => {[], [], ?STARTED},
    cancel => {[], [], [not_started | ?STARTED]},
    extratime => {[], [], [last]},
    penalties => {[], [], [last, last_extra]},
    goal => {[team], [player, player_team, team], ?PLAYING},
    card => {[player, card, team], [player, card, team], ?STARTED},
    substitution => {[player_out, team, player_in], [player_out, team, player_in], ?STARTED},
    shot => {[team], [player, team], ?PLAYING},
    save => {[team], [player, team], ?PLAYING},
    corner => {[team], [player, team], ?PLAYING},
    goalkick => {[team], [player, team], ?PLAYING},
    offside => {[team], [player, team], ?PLAYING},
    foul => {[team], [player, team], ?PLAYING},
    penalty => {[team], [player, team], ?PLAYING},
    freekick => {[team], [player, team], ?PLAYING},
    throwin => {[team], [player, team], ?PLAYING}
}).

%% @doc A match that has not started.
-spec new(about()) -> {ok, match()} | {error, error()}.
new(#{home := Home, visit := Visit, start_date := Date} = About) ->
    Stadium = maps:get(stadium, About, <<>>),
    Wrong = [{bad_match, Key} || {Key, Team} <- [{home, Home}, {visit, Visit}], not is_team(Team)]
        ++ [{bad_match, start_date} || not is_date(Date)]
        ++ [{bad_match, stadium} || Stadium =/= <<>>, not is_name(Stadium)]
        ++ [same_team || Home =:= Visit],
    case Wrong of
        [] -> {ok, #match{id = make_id(Home, Visit, Date), home = Home, visit = Visit, date = Date, stadium = Stadium}};
        [Error | _] -> {error, Error}
    end;
new(About) ->
    [Missing | _] = [home, visit, start_date] -- maps:keys(About),
    {error, {bad_match, Missing}}.

make_id(Home, Visit, {Y, M, D}) -> iolist_to_binary([Home, $-, Visit, io_lib:format("-~4..0b-~2..0b-~2..0b", [Y, M, D])]).

is_team(Team) -> is_binary(Team) andalso re:run(Team, "^[A-Za-z0-9]{1,16}$", [dollar_endonly, {capture, none}]) =:= match.

is_date({Y, M, D}) -> is_integer(Y) andalso Y >= 0 andalso Y =< 9999 andalso is_integer(M) andalso is_integer(D) andalso calendar:valid_date(Y, M, D);
is_date(_) -> false.

%% Text without control characters: those would be lines of the protocol.
is_name(Name) ->
    is_binary(Name) andalso Name =/= <<>> andalso byte_size(Name) =< ?NAME_BYTES andalso
        unicode:characters_to_binary(Name) =:= Name andalso re:run(Name, "^[^\\x{0}-\\x{1f}\\x{7f}-\\x{9f}]+$", [unicode, dollar_endonly, {capture, none}]) =:= match.

%% @doc Takes an event that happened then. A player is given by the number, or by number and name.
-spec register(term(), [{term(), term()}], At :: integer(), match()) -> {ok, event(), match()} | {error, error()}.
register(Kind, Given, At, #match{period = Period, seq = Seq} = Match) ->
    try
        {Needed, Keys, Periods} = case ?KINDS of #{Kind := Is} -> Is; #{} -> throw({unknown_kind, Kind}) end,
        _ = [case Term of {Key, _} -> lists:member(Key, Keys) orelse throw({unknown_key, Kind, Key}); _ -> throw({no_pair, Kind, Term}) end || Term <- Given],
        _ = [throw({missing, Kind, Key}) || Key <- Needed, not lists:keymember(Key, 1, Given)],
        _ = [throw({wrong_period, Kind, Period}) || not lists:member(Period, Periods)],
        %% The last one is for the end.
        _ = [throw(too_many_events) || Seq >= ?EVENTS, not is_end(Kind)],
        Data = [{Key, value(Key, Value, Given, Match)} || Key <- Keys, {Is, Value} <- Given, Is =:= Key],
        Event = #{seq => Seq + 1, at => At, kind => Kind, data => Data},
        {ok, Event, replay(Event, Match)}
    catch
        throw:Error -> {error, Error}
    end.

value(Key, Players, _, _) when Key =:= home_players; Key =:= visit_players -> players(Key, Players);
value(Key, Team, _, #match{home = Home, visit = Visit}) when Key =:= team; Key =:= player_team ->
    _ = [throw({invalid_team, Team}) || Team =/= Home, Team =/= Visit],
    Team;
value(card, Card, _, _) ->
    _ = [throw({invalid_card, Card}) || Card =/= yellow, Card =/= red],
    Card;
value(player_in, Player, Given, Match) ->
    Team = value(team, proplists:get_value(team, Given), Given, Match),
    _ = [throw({bad_value, player_in}) || not is_player(Player)],
    _ = [throw({already_plays, element(1, Player), Team}) || lists:keymember(element(1, Player), 1, playing(Team, Match))],
    Player;
value(_, Player, Given, Match) ->
    Of = proplists:get_value(player_team, Given, proplists:get_value(team, Given)),
    Team = value(team, Of, Given, Match),
    Number = case Player of {N, _} -> N; N -> N end,
    case lists:keyfind(Number, 1, playing(Team, Match)) of
        false -> throw({unknown_player, Number, Team});
        Found -> Found
    end.

players(Key, Players) ->
    try length(Players) =< ?PLAYERS andalso lists:all(fun is_player/1, Players) andalso length(lists:ukeysort(1, Players)) =:= length(Players) of
        true -> Players;
        false -> throw({bad_value, Key})
    catch
        error:badarg -> throw({bad_value, Key})
    end.

is_player({Number, Name}) -> is_integer(Number) andalso Number >= 0 andalso Number =< 99 andalso is_name(Name);
is_player(_) -> false.

playing(Team, #match{home = Team, home_players = Players}) -> Players;
playing(_, #match{visit_players = Players}) -> Players.

%% @doc The match after an event that was taken, and has the next number.
-spec replay(event(), match()) -> match().
replay(#{seq := Seq, at := At, kind := Kind, data := Data}, #match{seq = Before} = Match) when Seq =:= Before + 1 ->
    (changed(Kind, Data, Match))#match{seq = Seq, at = At}.

changed(start, Data, Match) ->
    Match#match{
        home_players = proplists:get_value(home_players, Data, []), visit_players = proplists:get_value(visit_players, Data, []),
        home_score = 0, visit_score = 0, period = first
    };
changed(halftime_start, _, #match{period = first} = Match) -> Match#match{period = halftime};
changed(halftime_start, _, #match{period = first_extra} = Match) -> Match#match{period = halftime_extra};
changed(halftime_stop, _, #match{period = halftime} = Match) -> Match#match{period = last};
changed(halftime_stop, _, #match{period = halftime_extra} = Match) -> Match#match{period = last_extra};
changed(extratime, _, Match) -> Match#match{period = first_extra};
changed(penalties, _, Match) -> Match#match{period = penalties};
changed(Kind, _, Match) when Kind =:= stop; Kind =:= cancel -> Match#match{period = ended};
changed(goal, Data, #match{home = Home, home_score = HomeScore, visit_score = VisitScore} = Match) ->
    case proplists:get_value(team, Data) of
        Home -> Match#match{home_score = HomeScore + 1};
        _ -> Match#match{visit_score = VisitScore + 1}
    end;
changed(card, Data, Match) ->
    case proplists:get_value(card, Data) of
        red -> fielded(fun({Number, _}, Players) -> lists:keydelete(Number, 1, Players) end, player, Data, Match);
        yellow -> Match
    end;
changed(substitution, Data, Match) ->
    In = proplists:get_value(player_in, Data),
    fielded(fun({Number, _}, Players) -> lists:keyreplace(Number, 1, Players, In) end, player_out, Data, Match);
changed(_, _, Match) -> Match.

fielded(Fun, Key, Data, #match{home = Home, home_players = HomePlayers, visit_players = VisitPlayers} = Match) ->
    Player = proplists:get_value(Key, Data),
    case proplists:get_value(team, Data) of
        Home -> Match#match{home_players = Fun(Player, HomePlayers)};
        _ -> Match#match{visit_players = Fun(Player, VisitPlayers)}
    end.

%% @doc The match of these events, which were taken.
-spec restored(about(), [event()]) -> match().
restored(About, Events) ->
    {ok, New} = new(About),
    lists:foldl(fun replay/2, New, Events).

%% @doc How it stands, as the event that a client gets first. It is of the time of the last event, so that it is the same for all.
-spec status(match()) -> event().
status(#match{seq = Seq, at = At} = M) ->
    #{seq => Seq, at => At, kind => status, data => [
        {home, M#match.home}, {home_players, M#match.home_players}, {home_score, M#match.home_score},
        {visit, M#match.visit}, {visit_players, M#match.visit_players}, {visit_score, M#match.visit_score},
        {period, M#match.period}
    ]}.

%% @doc What it is called.
-spec id(match()) -> id().
id(#match{id = Id}) -> Id.

%% @doc The number of the last event.
-spec seq(match()) -> non_neg_integer().
seq(#match{seq = Seq}) -> Seq.

%% @doc Which period it is.
-spec period(match()) -> period().
period(#match{period = Period}) -> Period.

%% @doc Whether it has started and not ended.
-spec is_running(match()) -> boolean().
is_running(#match{period = Period}) -> Period =/= not_started andalso Period =/= ended.

%% @doc Home and visit.
-spec teams(match()) -> {team(), team()}.
teams(#match{home = Home, visit = Visit}) -> {Home, Visit}.

%% @doc The goals of home and of visit.
-spec score(match()) -> {non_neg_integer(), non_neg_integer()}.
score(#match{home_score = Home, visit_score = Visit}) -> {Home, Visit}.

%% @doc All that is known of it, to be shown.
-spec to_map(match()) -> #{atom() => term()}.
to_map(#match{} = M) ->
    #{
        id => M#match.id, home => M#match.home, home_players => M#match.home_players, home_score => M#match.home_score,
        visit => M#match.visit, visit_players => M#match.visit_players, visit_score => M#match.visit_score,
        period => M#match.period, start_date => M#match.date, stadium => M#match.stadium, seq => M#match.seq
    }.

%% @doc The kinds of events that can be registered.
-spec kinds() -> [kind()].
kinds() -> lists:sort(maps:keys(?KINDS)).

%% @doc Whether nothing comes after an event of that kind.
-spec is_end(kind()) -> boolean().
is_end(Kind) -> Kind =:= stop orelse Kind =:= cancel.

%% @doc Why an event or a match was not taken, in a sentence.
-spec format_error(error()) -> unicode:chardata().
format_error({unknown_kind, Kind}) -> io_lib:format("There is no kind of event ~0tp.", [Kind]);
format_error({unknown_key, Kind, Key}) -> io_lib:format("An event of the kind ~s has no key ~0tp.", [Kind, Key]);
format_error({missing, Kind, Key}) -> io_lib:format("An event of the kind ~s needs the key ~s.", [Kind, Key]);
format_error({no_pair, Kind, Term}) -> io_lib:format("The data of an event are {Key, Value} each, and of this ~s one is ~0tP.", [Kind, Term, 8]);
format_error({bad_value, Key}) when Key =:= home_players; Key =:= visit_players ->
    io_lib:format("~s has ~b players at most, each with a number from 0 to 99 that no other one has, and a name.", [Key, ?PLAYERS]);
format_error({bad_value, Key}) -> io_lib:format("~s is to have a number from 0 to 99 and a name.", [Key]);
format_error({bad_match, start_date}) -> "A match needs a start_date, which is a day.";
format_error({bad_match, stadium}) -> io_lib:format("The stadium is to be a text of 1 to ~b bytes.", [?NAME_BYTES]);
format_error({bad_match, Key}) -> io_lib:format("A match needs ~s, a team of 1 to 16 letters and digits.", [Key]);
format_error(same_team) -> "A team does not play against itself.";
format_error({invalid_team, Team}) -> io_lib:format("The team ~0tp does not play in this match.", [Team]);
format_error({unknown_player, Number, Team}) -> io_lib:format("The team ~ts has nobody with the number ~0tp on the field.", [Team, Number]);
format_error({already_plays, Number, Team}) -> io_lib:format("The team ~ts has somebody with the number ~b on the field.", [Team, Number]);
format_error({invalid_card, Card}) -> io_lib:format("A card is yellow or red, not ~0tp.", [Card]);
format_error({wrong_period, Kind, not_started}) -> io_lib:format("The match has not started: ~s is not possible.", [Kind]);
format_error({wrong_period, Kind, ended}) -> io_lib:format("The match has ended: ~s is not possible.", [Kind]);
format_error({wrong_period, Kind, Period}) -> io_lib:format("~s is not possible in the period ~s.", [Kind, Period]);
format_error(too_many_events) -> io_lib:format("The match has ~b events, and takes no more than its end.", [?EVENTS]).
