%% SPDX-License-Identifier: Apache-2.0
%% @doc Rules of the user: a file of Erlang terms, `{Rule, #{Key => Value}}.', that changes rules of {@link atoll_watch_rule} and adds others.
%%
%% A rule that is there takes `raise', `clear', `looks', `severity', `cause', `repair', and `off => true'. Any other is a new one, and
%% says what it is `about' too: `{value, Metric}', `{share, Metric, Of}', `{each, Metric}', `{label, Metric, Label}', `{rate, Metric}' or
%% `{rate, Metric, Label}'. What is wrong is told in one sentence, which names the rule and the key.
-module(atoll_watch_rule_file).

-export([read/1, rules/1]).

-define(KEYS, [raise, clear, looks, severity, cause, repair, off]).
-define(SEVERITIES, [critical, major, minor, warning]).
-define(MOST, 200).
-define(TEXT, 300).

%% @doc The rules, with those of a file.
-spec read(file:filename()) -> {ok, [atoll_watch_rule:rule()]} | {error, unicode:chardata()}.
read(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            case unicode:characters_to_binary(Text) of
                Text -> consulted(File);
                _ -> {error, [File, " is no text in UTF-8."]}
            end;
        {error, Reason} ->
            {error, [File, " cannot be read: ", file:format_error(Reason), $.]}
    end.

consulted(File) ->
    case file:consult(File) of
        {ok, Terms} ->
            case rules(Terms) of
                {ok, Rules} -> {ok, Rules};
                {error, Sentence} -> {error, [File, ": ", Sentence]}
            end;
        {error, {Line, _, _} = Reason} when is_integer(Line) -> {error, [File, ", line ", file:format_error(Reason), $.]};
        {error, Reason} -> {error, [File, " cannot be read: ", file:format_error(Reason), $.]}
    end.

%% @doc The rules, with these.
-spec rules([term()]) -> {ok, [atoll_watch_rule:rule()]} | {error, unicode:chardata()}.
rules(Terms) ->
    try lists:foldl(fun ruled/2, {atoll_watch_rule:all(), []}, Terms) of
        {Rules, _} when length(Rules) > ?MOST -> {error, io_lib:format("there may be ~b rules at most.", [?MOST])};
        {Rules, _} -> {ok, Rules}
    catch
        throw:{wrong, Sentence} -> {error, Sentence}
    end.

-spec wrong(string(), [term()]) -> no_return().
wrong(Format, Args) -> throw({wrong, io_lib:format(Format, Args)}).

ruled({Id, #{} = Given}, {Rules, Seen}) when is_atom(Id) ->
    _ = [wrong("the rule ~ts stands there twice.", [Id]) || lists:member(Id, Seen)],
    case lists:partition(fun(#{id := Is}) -> Is =:= Id end, Rules) of
        {[Rule], Others} ->
            Changed = checked(Id, ?KEYS, Given),
            case maps:take(off, Changed) of
                {true, _} -> {Others, [Id | Seen]};
                {false, Left} -> {[bounded(maps:merge(Rule, Left), Left) | Others], [Id | Seen]};
                error -> {[bounded(maps:merge(Rule, Changed), Changed) | Others], [Id | Seen]}
            end;
        {[], _} ->
            Rule = maps:merge(#{id => Id, looks => 3, severity => warning, repair => "see why"}, checked(Id, [about | ?KEYS] -- [off], Given)),
            _ = [wrong("the rule ~ts is no rule that is there, and as a new one it needs ~ts.", [Id, Key]) || Key <- [about, raise, clear, cause], not is_map_key(Key, Given)],
            {What, Left} = maps:take(about, Rule),
            {Rules ++ [Left#{what => What}], [Id | Seen]}
    end;
ruled(Term, _) ->
    wrong("~0tP is no rule: one is {Name, #{Key => Value}}.", [Term, 10]).

%% One about a state has no values.
bounded(#{id := Id, what := {state, _}} = Rule, Changed) ->
    _ = [wrong("the rule ~ts is about a state of a node, and has no ~ts.", [Id, Key]) || Key <- [raise, clear], is_map_key(Key, Changed)],
    Rule;
bounded(#{id := Id, raise := Raise, clear := Clear} = Rule, Changed) ->
    #{raise := Raise0, clear := Clear0} = hd([Is || #{id := One} = Is <- atoll_watch_rule:all(), One =:= Id]),
    %% To change one of the two is not to turn it round.
    _ = [wrong("the rule ~ts is raised at ~p and cleared at ~p: to turn it round, give both raise and clear.", [Id, Raise, Clear])
         || (Raise < Clear) =/= (Raise0 < Clear0), not (is_map_key(raise, Changed) andalso is_map_key(clear, Changed))],
    Rule.

checked(Id, Keys, Given) ->
    maps:map(fun(Key, Value) ->
        _ = [wrong("the rule ~ts has no key ~0tP~ts", [Id, Key, 10, near(Key, Keys)]) || not lists:member(Key, Keys)],
        case read(Key, Value) of
            {ok, Read} -> Read;
            {error, Sentence} -> wrong("the rule ~ts: ~ts ~ts.", [Id, Key, Sentence])
        end
    end, Given).

near(Key, Keys) when is_atom(Key) ->
    case atoll_cli_nearest:of_words(atom_to_list(Key), [atom_to_list(Is) || Is <- Keys]) of
        {ok, Word} -> ["; did you mean ", Word, $?];
        none -> "."
    end;
near(_, _) ->
    ".".

read(Key, Value) when Key =:= raise; Key =:= clear ->
    case is_number(Value) of
        true -> {ok, Value};
        false -> {error, "must be a number"}
    end;
read(looks, Value) when is_integer(Value), Value >= 1, Value =< 1000 -> {ok, Value};
read(looks, _) -> {error, "must be a whole number from 1 to 1,000"};
read(off, Value) when is_boolean(Value) -> {ok, Value};
read(off, _) -> {error, "must be true or false"};
read(severity, Value) ->
    case lists:member(Value, ?SEVERITIES) of
        true -> {ok, Value};
        false -> {error, ["must be one of ", lists:join(", ", [atom_to_list(Is) || Is <- ?SEVERITIES])]}
    end;
read(about, Value) -> about(Value);
read(_, Value) ->
    %% Words are printed, and end no line.
    case text(Value) of
        {ok, Text} when Text =/= "", length(Text) =< ?TEXT -> {ok, Text};
        _ -> {error, io_lib:format("must be a text of at most ~b characters", [?TEXT])}
    end.

text(Value) when is_list(Value); is_binary(Value) ->
    try unicode:characters_to_list(Value) of
        Text when is_list(Text) -> {ok, [C || C <- Text, C >= 32]};
        _ -> error
    catch error:badarg -> error
    end;
text(_) ->
    error.

about({value, Name}) -> metric({value, Name}, Name, plain, any);
about({share, Name, Of}) ->
    case {metric(x, Name, plain, any), metric({share, Name, Of}, Of, plain, any)} of
        {{ok, _}, Second} -> Second;
        {Wrong, _} -> Wrong
    end;
about({each, Name}) -> metric({each, Name, zero}, Name, labelled, any);
about({label, Name, Label}) -> of_label(Label, fun(Text) -> metric({'of', Name, Text}, Name, labelled, any) end);
about({rate, Name}) -> metric({rate, Name}, Name, plain, counter);
about({rate, Name, Label}) -> of_label(Label, fun(Text) -> metric({rate, Name, Text}, Name, labelled, counter) end);
about(_) -> {error, "must be {value, Metric}, {share, Metric, Of}, {each, Metric}, {label, Metric, Label}, {rate, Metric} or {rate, Metric, Label}"}.

of_label(Label, Fun) when is_atom(Label) -> Fun(atom_to_binary(Label));
of_label(Label, Fun) ->
    case text(Label) of
        {ok, Text} -> Fun(unicode:characters_to_binary(Text));
        error -> {error, "has a label that is no text"}
    end.

metric(What, Name, How, Kind) ->
    case atoll_watch_metric:find(Name) of
        error -> {error, io_lib:format("is of the metric ~0tP, which is none", [Name, 10])};
        {ok, #{label := none}} when How =:= labelled -> {error, io_lib:format("is of ~ts, which has no label", [Name])};
        {ok, #{label := Label}} when How =:= plain, Label =/= none -> {error, io_lib:format("is of ~ts, which has a value for each ~ts: {each, ~ts}, or one with its label", [Name, Label, Name])};
        {ok, #{kind := gauge}} when Kind =:= counter -> {error, io_lib:format("is of ~ts, which is no counter", [Name])};
        {ok, _} -> {ok, What}
    end.
