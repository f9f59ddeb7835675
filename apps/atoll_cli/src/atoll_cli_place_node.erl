%% @doc What `atoll place' asks of a node; it runs on that node, which finds this module where
%% the command line does.
-module(atoll_cli_place_node).

-export([ask/2, names/0, also/2]).

-export_type([found/0]).

-type found() :: #{
    choice := atoll_place:choice(),
    %% The one that was chosen, if one was to be and could be.
    node := node() | none,
    %% By which distance they are sorted, if by one.
    how := atoll_distance:how() | none
}.

%% @doc The nodes that fit, as this node finds them, and one of them if one is to be chosen.
-spec ask(One :: boolean(), atoll_place:params()) -> {ok, found()} | {error, unicode:chardata()}.
ask(One, Params) ->
    case chosen(One, Params) of
        {ok, Node, Choice} -> {ok, #{choice => Choice, node => Node, how => how(Params)}};
        {error, Error} -> {error, [atoll_place:format_error(Error), help(Error)]}
    end.

%% What the option of the application is called on the command line.
help({distance, no_network}) -> "; \"atoll up N --network FILE\" does, and so does --network FILE here";
help({distance, distances_off}) -> "; \"atoll up N --distances\" does";
help(_Other) -> "".

chosen(true, Params) ->
    case atoll_place:choose(Params) of
        {none, Choice} -> {ok, none, Choice};
        Other -> Other
    end;
chosen(false, Params) ->
    case atoll_place:nodes(Params) of
        {ok, Choice} -> {ok, none, Choice};
        {error, _} = Error -> Error
    end.

how(#{how := How}) ->
    How;
how(#{near := _}) ->
    case atoll_distance:declared() of
        {ok, _} -> declared;
        {error, no_network} -> estimated
    end;
how(#{}) ->
    none.

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
