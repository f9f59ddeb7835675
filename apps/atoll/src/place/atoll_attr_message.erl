%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc What nodes send each other about attributes, and what of it is taken. Pure.
%%
%% A peer may be of another build, or be wrong, and one message must not cost a node more than
%% the message itself did. So each is read here first: times fit a timer, numbers and names have
%% a bound, and of values only those that were asked for are kept, each no larger than
%% `max_value'. A row of the gossip that is larger than one of this node could be is replaced by
%% a term that is no row, which the gossip counts.
%%
%% Not promised: that what is taken is true.
-module(atoll_attr_message).

-export([read/2, values/3]).

-export_type([message/0, body/0, limits/0]).

-type id() :: pos_integer().
-type name() :: atoll_predicate:name().
-type values() :: atoll_predicate:values().

-type body() ::
    {ask, id(), [name()], Ms :: pos_integer()}
    | {values, id(), values()}
    %% Stand in line, and say what these attributes are; where one stands, and they are.
    | {claim, id(), [name()], Ms :: pos_integer()}
    | {place, id(), pos_integer(), values()}
    %% Where one stands, if there, and how long the line is.
    | {look, id()}
    | {line, id(), pos_integer() | none, non_neg_integer()}
    | {leave, id()}
    | atoll_attr_gossip:message().

-type message() :: {Version :: 1, body()}.

-type limits() :: #{max_value := pos_integer(), max_interests := pos_integer(), atom() => term()}.

-define(VERSION, 1).
%% Names in a question.
-define(MAX_NAMES, 1000).
%% What a timer takes.
-define(MAX_MS, 16#7FFFFFFF).
%% More than any line is long, and the place that one behind the longest is told.
-define(MAX_LINE, 1 bsl 32).

-define(IS_ID(Id), is_integer(Id), Id > 0, Id < 1 bsl 64).
-define(IS_MS(Ms), is_integer(Ms), Ms > 0, Ms =< ?MAX_MS).
-define(IS_PLACE(Place), is_integer(Place), Place > 0, Place =< ?MAX_LINE).

%% @doc A message as it came.
-spec read(term(), limits()) -> {ok, body()} | newer | odd.
read({?VERSION, Body}, Limits) -> body(Body, Limits);
read({Version, _}, _Limits) when is_integer(Version), Version > ?VERSION -> newer;
read(_Odd, _Limits) -> odd.

body({Kind, Id, Names, Ms} = Body, _) when
    Kind =:= ask orelse Kind =:= claim, ?IS_ID(Id), ?IS_MS(Ms), length(Names) =< ?MAX_NAMES
->
    case lists:all(fun is_atom/1, Names) of
        true -> {ok, Body};
        false -> odd
    end;
body({values, Id, Values} = Body, _) when ?IS_ID(Id), is_map(Values) -> {ok, Body};
body({place, Id, Place, Values} = Body, _) when ?IS_ID(Id), ?IS_PLACE(Place), is_map(Values) -> {ok, Body};
body({look, Id} = Body, _) when ?IS_ID(Id) -> {ok, Body};
body({line, Id, none, Length} = Body, _) when ?IS_ID(Id), is_integer(Length), Length >= 0, Length =< ?MAX_LINE -> {ok, Body};
body({line, Id, Place, Length} = Body, _) when ?IS_ID(Id), ?IS_PLACE(Place), ?IS_PLACE(Length) -> {ok, Body};
body({leave, Id} = Body, _) when ?IS_ID(Id) -> {ok, Body};
body({gossip, Interests, Rows}, Limits) when length(Rows) >= 0 -> {ok, {gossip, Interests, [row(Row, Limits) || Row <- Rows]}};
body(_Odd, _) -> odd.

%% A row has a value for each name of interest at most.
row({_Node, _Version, _Age, Values} = Row, #{max_value := Max, max_interests := MaxNames}) when is_map(Values) ->
    Fits = map_size(Values) =< MaxNames andalso lists:all(fun({Name, V}) -> is_atom(Name) andalso fits(V, Max) end, maps:to_list(Values)),
    case Fits of
        true -> Row;
        false -> too_large
    end;
row(Odd, _Limits) ->
    Odd.

%% @doc Of these values those that were asked for; one that is missing or too large is
%% `undefined'.
-spec values([name()], #{term() => term()}, MaxValue :: pos_integer()) -> values().
values(Names, Values, Max) ->
    maps:from_list([{Name, value(Name, Values, Max)} || Name <- Names]).

value(Name, Values, Max) ->
    case Values of
        #{Name := Value} ->
            case fits(Value, Max) of
                true -> Value;
                false -> undefined
            end;
        #{} ->
            undefined
    end.

fits(Value, Max) -> erlang:external_size(Value) =< Max.
