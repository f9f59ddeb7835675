%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The names of nodes that discovery sources gave. Data, but for the atoms that
%% it makes.
%%
%% Erlang's distribution knows nodes by atoms, and an atom is never freed. So a
%% source that goes on inventing names would fill this node's table of atoms. There
%% are two bounds: at most `Max' names are known at once, and the atoms that are
%% made of them are at most `Max' in the life of the node, however often this data
%% begins anew. What is over either is refused; a name whose atom is there already
%% costs none.
-module(atoll_source_names).

-export([new/1, take/2, is_known/2, is_name/1]).

-export_type([names/0]).

-record(names, {
    max :: pos_integer(),
    known = #{} :: #{binary() => node()},
    %% How many atoms this node has made of names so far.
    made :: atomics:atomics_ref()
}).

-opaque names() :: #names{}.

%% @doc No names, and room for that many.
-spec new(Max :: pos_integer()) -> names().
new(Max) ->
    #names{max = Max, made = made()}.

%% @doc The node of this name, and whether it is new here; or a refusal.
-spec take(binary(), names()) -> {known | new, node(), names()} | refused.
take(Name, #names{known = Known, max = Max} = Names) ->
    case Known of
        #{Name := Node} ->
            {known, Node, Names};
        #{} when map_size(Known) < Max ->
            case make(Name, Names) of
                {ok, Node} -> {new, Node, Names#names{known = Known#{Name => Node}}};
                refused -> refused
            end;
        #{} ->
            refused
    end.

%% @doc Whether this name was taken before.
-spec is_known(binary(), names()) -> boolean().
is_known(Name, #names{known = Known}) ->
    is_map_key(Name, Known).

%% @doc Whether this can be the name of a node: a name, `@' and a host or address,
%% 255 bytes at most.
-spec is_name(binary()) -> boolean().
is_name(Text) ->
    byte_size(Text) =< 255 andalso
        re:run(Text, "^[0-9A-Za-z_-]+@[0-9A-Za-z._:-]+$", [dollar_endonly, {capture, none}]) =:= match.

make(Name, #names{max = Max, made = Made}) ->
    try
        {ok, binary_to_existing_atom(Name)}
    catch
        error:badarg ->
            case atomics:add_get(Made, 1, 1) of
                N when N =< Max ->
                    {ok, binary_to_atom(Name)};
                _ ->
                    ok = atomics:sub(Made, 1, 1),
                    refused
            end
    end.

%% The count outlives whoever counts.
made() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Made = atomics:new(1, []),
            ok = persistent_term:put(?MODULE, Made),
            Made;
        Made ->
            Made
    end.
