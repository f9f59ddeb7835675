%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Channels with a name: what is configured of them, what two nodes agree on, and
%% which lanes of a connection each of them has.
%%
%% A connection with lanes has the lanes of its kind, which anybody uses, and after them
%% those of each channel, for the signals of its processes alone ({@link
%% atoll_dist_member}). How many they are both ends agree on in the first exchange ({@link
%% atoll_dist_hello}): of every channel that one of them has the larger number. All else
%% that is configured of a channel (compression, `monotonic', `causal') says how a node
%% writes, so each end goes by its own configuration, and the reading end need not know it.
%%
%% Promised: both ends come to the same lanes; there are never more than a connection can
%% have, since each end's channels have half of them at most; the lanes of the kind give
%% way where there are too many.
-module(atoll_dist_named).

-export([check/1, format_error/1, offer/1, is_said/2, agree/2, sum/1, total/2, layout/3]).

-export_type([name/0, channels/0, channel/0, rule/0, agreed/0, group/0, fault/0]).

-type name() :: atom().

-type channels() :: #{name() => channel()}.

-type channel() :: #{
    %% 1 unless it is said.
    lanes => 1..31,
    %% How much batches are compressed, as zlib counts; 0, which is not at all, unless said.
    compression => 0..9,
    %% Whether a message that a newer one has overtaken before it was written is dropped.
    monotonic => boolean(),
    %% Whether all signals of the channel keep their order, whoever sends them.
    causal => boolean(),
    %% Which processes are in it without asking to be.
    members => [rule()]
}.

%% A process is in the channel that is registered under that name; or that began, or
%% whose behaviour's callback did, with that function; or that has set that label; or
%% whose group leader is that application's.
-type rule() :: {name, atom()} | {call, mfa()} | {label, term()} | {application, atom()}.

%% The names and lanes of all channels, by name; none with a peer that knows of none.
-type agreed() :: [{Name :: binary(), atoll_dist_lanes:count()}] | none.

%% What a node that writes has to know of a channel in one connection; that of what is in
%% no channel is called `default'.
-type group() :: #{
    name := name(),
    first := atoll_dist_lanes:lane(),
    lanes := atoll_dist_lanes:count(),
    compression := 0..9,
    monotonic := boolean()
}.

-type fault() ::
    {no_map, term()}
    | {bad_name, term()}
    | {bad_channel, name(), term()}
    | {bad_value, name(), Key :: term(), term()}
    | {causal, name(), With :: string()}
    | {too_many, Lanes :: pos_integer()}.

%% Of the 64 lanes that a connection may have, two ends with different channels.
-define(MAX_LANES, 31).
-define(MAX_ALL, 64).
-define(MAX_NAME, 255).

%% @doc Whether that can be configured, and what of it cannot.
-spec check(term()) -> ok | {error, fault()}.
check(Channels) when is_map(Channels) ->
    try lists:foreach(fun channel/1, lists:sort(maps:to_list(Channels))) of
        ok when map_size(Channels) =< ?MAX_LANES -> all(sum([{Name, lanes(C)} || {Name, C} <- maps:to_list(Channels)]));
        ok -> {error, {too_many, map_size(Channels)}}
    catch
        throw:Fault -> {error, Fault}
    end;
check(Other) ->
    {error, {no_map, Other}}.

all(Sum) when Sum =< ?MAX_LANES -> ok;
all(Sum) -> {error, {too_many, Sum}}.

channel({Name, Channel}) ->
    _ = is_name(Name) orelse throw({bad_name, Name}),
    _ = is_map(Channel) orelse throw({bad_channel, Name, Channel}),
    _ = [throw({bad_value, Name, Key, Value}) || {Key, Value} <- lists:sort(maps:to_list(Channel)), not is_good(Key, Value)],
    case Channel of
        #{causal := true, lanes := Lanes} when Lanes > 1 -> throw({causal, Name, "more lanes than one"});
        #{causal := true, monotonic := true} -> throw({causal, Name, "monotonic => true"});
        #{} -> ok
    end.

is_name(default) -> false;
is_name(Name) -> is_atom(Name) andalso byte_size(atom_to_binary(Name)) =< ?MAX_NAME.

is_good(lanes, N) -> is_integer(N) andalso N >= 1 andalso N =< ?MAX_LANES;
is_good(compression, Level) -> is_integer(Level) andalso Level >= 0 andalso Level =< 9;
is_good(monotonic, Is) -> is_boolean(Is);
is_good(causal, Is) -> is_boolean(Is);
is_good(members, Rules) when is_list(Rules), length(Rules) >= 0 -> lists:all(fun is_rule/1, Rules);
is_good(_, _) -> false.

is_rule({name, Name}) -> is_atom(Name);
is_rule({call, {M, F, A}}) -> is_atom(M) andalso is_atom(F) andalso is_integer(A) andalso A >= 0 andalso A =< 255;
is_rule({label, _}) -> true;
is_rule({application, Name}) -> is_atom(Name);
is_rule(_) -> false.

%% @doc The end of a sentence on what is wrong.
-spec format_error(fault()) -> unicode:chardata().
format_error({no_map, Term}) ->
    io_lib:format("must be a map of channels by their names, and is ~0tp", [Term]);
format_error({bad_name, Name}) ->
    io_lib:format("has a channel called ~0tp: a name is an atom other than default, of at most ~b bytes", [Name, ?MAX_NAME]);
format_error({bad_channel, Name, Term}) ->
    io_lib:format("says ~0tp of the channel ~tp: that must be a map", [Term, Name]);
format_error({bad_value, Name, Key, Value}) ->
    io_lib:format("says ~0tp => ~0tp of the channel ~tp: ~ts", [Key, Value, Name, must(Key)]);
format_error({causal, Name, What}) ->
    io_lib:format("says causal => true of the channel ~tp, which cannot have ~ts", [Name, What]);
format_error({too_many, Lanes}) ->
    io_lib:format("has channels with ~b lanes together, and ~b are the most", [Lanes, ?MAX_LANES]).

must(lanes) -> io_lib:format("it must be a number from 1 to ~b", [?MAX_LANES]);
must(compression) -> "it must be a number from 0 to 9";
must(Is) when Is =:= monotonic; Is =:= causal -> "it must be true or false";
must(members) -> "it must be a list of {name,Name}, {call,{Module,Function,Arity}}, {label,Term} and {application,Name}";
must(_) -> "there are lanes, compression, monotonic, causal and members".

lanes(Channel) -> maps:get(lanes, Channel, 1).

%% @doc What a node says of its channels to another one.
-spec offer(channels()) -> [{binary(), atoll_dist_lanes:count()}].
offer(Channels) ->
    lists:sort([{atom_to_binary(Name), lanes(Channel)} || {Name, Channel} <- maps:to_list(Channels)]).

%% @doc What two nodes that say that agree on, whichever of them asks.
-spec agree(agreed(), agreed()) -> agreed().
agree(none, _) ->
    none;
agree(_, none) ->
    none;
agree(One, Other) ->
    Larger = fun(_Name, A, B) -> max(A, B) end,
    lists:sort(maps:to_list(maps:merge_with(Larger, maps:from_list(One), maps:from_list(Other)))).

%% @doc How many lanes these channels have together.
-spec sum(agreed() | [{name(), atoll_dist_lanes:count()}]) -> non_neg_integer().
sum(none) -> 0;
sum(Channels) -> sum(Channels, 0).

sum([{_, Lanes} | Channels], Sum) when is_integer(Lanes) -> sum(Channels, Sum + Lanes);
sum([], Sum) -> Sum.

%% @doc Whether a peer may say that of its channels, or of those of a connection.
-spec is_said(offer | answer, [{binary(), 0..255}]) -> boolean().
is_said(What, Said) ->
    Max = case What of offer -> ?MAX_LANES; answer -> 2 * ?MAX_LANES end,
    lists:all(fun({_, Lanes}) -> Lanes >= 1 end, Said) andalso sum(Said) =< Max andalso
        length(lists:ukeysort(1, Said)) =:= length(Said).

%% @doc All lanes of a connection with these channels, whose kind has so many: no more than
%% there can be.
-spec total(atoll_dist_lanes:count(), agreed()) -> atoll_dist_lanes:count().
total(Lanes, Agreed) when is_integer(Lanes) ->
    min(Lanes + sum(Agreed), ?MAX_ALL).

%% @doc What the writing end of a connection of so many lanes has to know: first of what is in
%% no channel, then of each channel that its own node has configured.
-spec layout(atoll_dist_lanes:count(), agreed(), channels()) -> [group(), ...].
layout(Total, Agreed, Channels) ->
    First = Total - sum(Agreed),
    Known = maps:from_list([{atom_to_binary(Name), {Name, Channel}} || {Name, Channel} <- maps:to_list(Channels)]),
    [group(default, 0, First, #{}) | groups(First, Agreed, Known)].

groups(From, [{Text, Lanes} | Agreed], Known) ->
    case Known of
        #{Text := {Name, Channel}} -> [group(Name, From, Lanes, Channel) | groups(From + Lanes, Agreed, Known)];
        #{} -> groups(From + Lanes, Agreed, Known)
    end;
groups(_From, _, _Known) ->
    [].

group(Name, From, Lanes, Channel) ->
    #{
        name => Name,
        first => From,
        %% The other end may have given it more.
        lanes => case Channel of #{causal := true} -> 1; #{} -> Lanes end,
        compression => maps:get(compression, Channel, 0),
        monotonic => maps:get(monotonic, Channel, false)
    }.
