%% @doc What `atoll place' asks of a node; it runs on that node, which finds this module where
%% the command line does.
-module(atoll_cli_place_node).

-export([ask/1, names/0, also/2]).

-export_type([question/0, found/0]).

-type question() :: #{
    where := atoll_predicate:source(),
    among := [node()],
    deadline := pos_integer(),
    max_age := non_neg_integer(),
    %% Whether one is to be chosen.
    one := boolean(),
    %% The nearest first, by the distances that this node knows, or by these.
    near => node(),
    how => atoll_distance:how(),
    distances => #{node() => number()},
    rank => {least | most, atoll_predicate:name()},
    within => number()
}.

-type found() :: #{
    choice := atoll_attr:choice(),
    %% The one that was chosen, if one was to be and could be.
    node := node() | none,
    %% How far the nodes are, where they are known to be; and what that means.
    how := atoll_distance:how() | none,
    distances := #{node() => number()}
}.

%% @doc The nodes that fit, as this node finds them.
-spec ask(question()) -> {ok, found()} | {error, unicode:chardata()}.
ask(Question) ->
    case distances(Question) of
        {ok, How, Distances} ->
            case chosen(Question, rank(Question, Distances)) of
                {ok, Node, Choice} -> {ok, #{choice => Choice, node => Node, how => How, distances => Distances}};
                {error, Error} -> {error, atoll_attr:format_error(Error)}
            end;
        {error, Error} ->
            {error, atoll_distance:format_error(Error)}
    end.

rank(#{near := _}, Distances) -> {nearest, Distances};
rank(#{rank := Rank}, _Distances) -> Rank;
rank(#{}, _Distances) -> none.

chosen(#{where := Where, among := Among, one := One} = Question, Rank) ->
    Options = (maps:with([deadline, max_age, within], Question))#{rank => Rank},
    case One of
        true ->
            case atoll_attr:choose_node(Among, Where, Options) of
                {none, Choice} -> {ok, none, Choice};
                Other -> Other
            end;
        false ->
            case atoll_attr:choose_nodes(Among, Where, Options) of
                {ok, Choice} -> {ok, none, Choice};
                {error, _} = Error -> Error
            end
    end.

distances(#{distances := Given}) ->
    {ok, declared, Given};
distances(#{near := Near, among := Among} = Question) ->
    How = how(Question),
    All = [{Node, atoll_distance:distance(How, Near, Node)} || Node <- Among],
    case {[{Node, D} || {Node, {ok, D}} <- All, Node =/= Near], [Error || {_, {error, Error}} <- All]} of
        {[], [Error | _]} -> {error, Error};
        _ -> {ok, How, maps:from_list([{Node, D} || {Node, {ok, D}} <- All])}
    end;
distances(#{}) ->
    {ok, none, #{}}.

how(#{how := How}) ->
    How;
how(#{}) ->
    case atoll_distance:declared() of
        {ok, _} -> declared;
        {error, no_network} -> estimated
    end.

%% @doc The names of all attributes that this node has, whether they have a value or not.
-spec names() -> [atoll_predicate:name()].
names() ->
    #{attributes := Entries} = atoll_attr:info(),
    [Name || {Name, _, _} <- Entries].

%% @doc A condition of the same truth that also speaks of these attributes. What is answered to
%% a question are the attributes that its condition speaks of; so one question is enough.
-spec also([atoll_predicate:name()], atoll_predicate:source()) -> atoll_predicate:source().
also([], Condition) -> Condition;
also(Names, Condition) -> {'or', [Condition, {'and', [{'not', {}} | [{Name, true} || Name <- Names]]}]}.
