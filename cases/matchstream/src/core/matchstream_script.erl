%% SPDX-License-Identifier: Apache-2.0
%% @doc A match as it is to be played again: terms in a file, `home', `visit', `start_date' and, if it is known, `stadium', and `steps':
%% events with pauses between. Whoever reads one has it checked by the rules, from the first step to the last.
-module(matchstream_script).

-export([read/1, check/1, find/1, names/0, made/1, schedule/2, summary/1]).

-export_type([script/0, step/0]).

-type step() :: {sleep, Ms :: non_neg_integer()} | {matchstream_match:kind(), [{atom(), term()}]}.

-type script() :: #{about := matchstream_match:about(), steps := [step(), ...]}.

%% @doc Reads a file.
-spec read(file:filename_all()) -> {ok, script()} | {error, unicode:chardata()}.
read(File) ->
    case file:consult(File) of
        {ok, Terms} ->
            case check(Terms) of
                {ok, _} = Ok -> Ok;
                {error, Sentence} -> {error, [File, ": ", Sentence]}
            end;
        {error, Reason} ->
            {error, [File, ": ", file:format_error(Reason)]}
    end.

%% @doc A script of these terms, if the rules let all its events happen.
-spec check([term()]) -> {ok, script()} | {error, unicode:chardata()}.
check(Terms) ->
    Keys = [home, visit, start_date, stadium, steps],
    case [Term || Term <- Terms, not (is_tuple(Term) andalso tuple_size(Term) =:= 2 andalso lists:member(element(1, Term), Keys))] of
        [] ->
            case maps:from_list(Terms) of
                #{steps := Steps} = Given when length(Steps) > 0 -> checked(#{about => maps:remove(steps, Given), steps => Steps});
                #{} -> {error, "a script needs steps, a list that is not empty."}
            end;
        [Term | _] ->
            {error, io_lib:format("~0tP is no part of a script.", [Term, 8])}
    end.

checked(#{about := About, steps := Steps} = Script) ->
    case matchstream_match:new(About) of
        {ok, Match} ->
            case dry(Steps, 1, Match) of
                {ok, Match} -> {error, "a script needs an event among its steps."};
                {ok, _} -> {ok, Script};
                {error, _} = Error -> Error
            end;
        {error, Error} -> {error, matchstream_match:format_error(Error)}
    end.

dry([], _, Match) -> {ok, Match};
dry([{sleep, Ms} | Steps], N, Match) when is_integer(Ms), Ms >= 0 -> dry(Steps, N + 1, Match);
dry([{Kind, Data} | Steps], N, Match) when length(Data) >= 0 ->
    case matchstream_match:register(Kind, Data, 0, Match) of
        {ok, _, Next} -> dry(Steps, N + 1, Next);
        {error, Error} -> {error, io_lib:format("step ~b: ~ts", [N, matchstream_match:format_error(Error)])}
    end;
dry([Step | _], N, _) -> {error, io_lib:format("step ~b: ~0tP is neither {sleep, Milliseconds} nor {Kind, Data}.", [N, Step, 8])}.

%% @doc A script that comes with this case, by its name.
-spec find(string()) -> {ok, file:filename()} | none.
find(Name) ->
    case lists:member(Name, names()) of
        true -> {ok, filename:join(scripts(), Name ++ ".config")};
        false -> none
    end.

%% @doc Those that come with this case.
-spec names() -> [string()].
names() -> lists:sort([filename:basename(File, ".config") || File <- filelib:wildcard(filename:join(scripts(), "*.config"))]).

scripts() ->
    case code:priv_dir(matchstream) of
        Dir when is_list(Dir) -> Dir
    end.

%% @doc A match of so many events between its start and its end, a second from one to the next: substitutions, with names
%% as long as they may be, so that clients have much to read.
-spec made(pos_integer()) -> script().
made(Count) ->
    Long = binary:copy(<<"n">>, 63),
    Player = fun(N) -> {N, <<Long/binary, ($0 + N)>>} end,
    Players = [Player(N) || N <- lists:seq(0, 4)],
    Turn = fun(N) -> [{sleep, 1000}, {substitution, [{team, <<"home">>}, {player_out, N rem 2}, {player_in, Player((N + 1) rem 2)}]}] end,
    Start = {start, [{home_players, [Player(0), Player(2), Player(3), Player(4)]}, {visit_players, Players}]},
    #{about => #{home => <<"home">>, visit => <<"away">>, start_date => {2026, 1, 1}}, steps => [Start | lists:append([Turn(N) || N <- lists:seq(0, Count - 1)])] ++ [{stop, []}]}.

%% @doc Its events with the milliseconds after which each is due, at so many times the speed.
-spec schedule(script(), Speed :: number()) -> [{Ms :: non_neg_integer(), matchstream_match:kind(), [{atom(), term()}]}].
schedule(#{steps := Steps}, Speed) ->
    {Events, _} = lists:foldl(
        fun({sleep, Ms}, {Events, At}) -> {Events, At + Ms};
           ({Kind, Data}, {Events, At}) -> {[{round(At / Speed), Kind, Data} | Events], At}
        end, {[], 0}, Steps),
    lists:reverse(Events).

%% @doc The match at its end, how many events of each kind it has, and how long it takes.
-spec summary(script()) -> #{final := matchstream_match:match(), kinds := #{matchstream_match:kind() => pos_integer()}, ms := non_neg_integer()}.
summary(#{about := About, steps := Steps}) ->
    {ok, Match} = matchstream_match:new(About),
    {ok, Final} = dry(Steps, 1, Match),
    #{
        final => Final,
        kinds => maps:map(fun(_, Events) -> length(Events) end, maps:groups_from_list(fun({Kind, _}) -> Kind end, [Step || {Kind, _} = Step <- Steps, Kind =/= sleep])),
        ms => lists:sum([Ms || {sleep, Ms} <- Steps])
    }.
