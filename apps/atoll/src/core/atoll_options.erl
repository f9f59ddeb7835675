%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc The options of a protocol: which there are, of what kind, with their defaults. A module that
%% has options says so by `options/0', and this checks what a user gives.
-module(atoll_options).

-export([complete/2, format_error/1]).

-export_type([options/0, known/0, kind/0, error/0]).

-type options() :: #{atom() => term()}.

-type known() :: #{Key :: atom() => {kind(), Default :: term()}}.

-type kind() ::
    pos_integer
    | non_neg_integer
    | boolean
    %% A list of nodes.
    | nodes
    | {one_of, [atom()]}.

-type error() ::
    %% Of the module itself.
    atoll_plug:error()
    %% What its options/0 gave or ended with.
    | {no_options, module(), term()}
    | {bad_option, Key :: term(), unknown | {not_a, kind(), term()}}.

%% Of milliseconds and bytes: what a timer takes.
-define(MAX, 16#7FFFFFFF).

%% @doc The options that are given for a module, checked, with the defaults of those not given. Where
%% none is missing that is the very term that was given, which simulated nodes have in common.
-spec complete(module(), options()) -> {ok, options()} | {error, error()}.
complete(Module, Given) ->
    case atoll_plug:call(Module, options, []) of
        {ok, #{} = Known} ->
            case lists:all(fun is_kind/1, maps:values(Known)) of
                true -> complete(Given, Known, maps:map(fun(_Key, {_Kind, Default}) -> Default end, Known));
                false -> {error, {no_options, Module, Known}}
            end;
        {_, Other} ->
            {error, {no_options, Module, Other}}
    end.

complete(Given, Known, Defaults) ->
    case check(lists:sort(maps:to_list(Given)), Known, Defaults) of
        {ok, Given} -> {ok, Given};
        Other -> Other
    end.

is_kind({{one_of, Atoms} = Kind, Default}) -> are_atoms(Atoms) andalso is_a(Kind, Default);
is_kind({Kind, Default}) -> lists:member(Kind, [pos_integer, non_neg_integer, boolean, nodes]) andalso is_a(Kind, Default);
is_kind(_) -> false.

check([], _Known, Options) ->
    {ok, Options};
check([{Key, Value} | Given], Known, Options) ->
    case Known of
        #{Key := {Kind, _}} ->
            case is_a(Kind, Value) of
                true -> check(Given, Known, Options#{Key := Value});
                false -> {error, {bad_option, Key, {not_a, Kind, Value}}}
            end;
        #{} ->
            {error, {bad_option, Key, unknown}}
    end.

is_a(pos_integer, Value) -> is_a(non_neg_integer, Value) andalso Value > 0;
is_a(non_neg_integer, Value) -> is_integer(Value) andalso Value >= 0 andalso Value =< ?MAX;
is_a(boolean, Value) -> is_boolean(Value);
is_a(nodes, Value) -> are_atoms(Value);
is_a({one_of, Atoms}, Value) -> lists:member(Value, Atoms).

%% The guard fails for a list that is none to the end.
are_atoms(Value) when length(Value) >= 0 -> lists:all(fun is_atom/1, Value);
are_atoms(_Value) -> false.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_option, Key, unknown}) ->
    io_lib:format("there is no option ~0tp", [Key]);
format_error({bad_option, Key, {not_a, Kind, Value}}) ->
    io_lib:format("the option ~tw must be ~ts, not ~0tp", [Key, kind(Kind), Value]);
format_error({no_options, Module, Term}) ->
    io_lib:format("~tw:options/0 must give a map of {Kind, Default}, and came to ~0tP", [Module, Term, 20]);
format_error(Error) ->
    atoll_plug:format_error(Error).

kind(pos_integer) -> io_lib:format("a whole number from 1 to ~b", [?MAX]);
kind(non_neg_integer) -> io_lib:format("a whole number from 0 to ~b", [?MAX]);
kind(boolean) -> "true or false";
kind(nodes) -> "a list of nodes";
kind({one_of, Atoms}) -> ["one of ", lists:join(", ", [atom_to_list(A) || A <- Atoms])].
