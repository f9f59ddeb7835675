%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Plug points: modules with a behaviour of ours, of which some are known by short
%% names and others are written outside of this library.
-module(atoll_plug).

-export([module/3, call/3, text/4, format_error/1]).

-export_type([error/0]).

-type error() ::
    %% There is none of that name; what it would be, and the names of our own.
    {no_module, What :: atom(), Name :: term(), Own :: [atom()]}
    %% It is none, for want of these functions.
    | {lacks, What :: atom(), module(), [{atom(), arity()}, ...]}.

%% @doc The module of that name: one of our own, or any that has what the behaviour asks
%% for. `What' is the word for such a module in a sentence.
-spec module(What :: atom(), Name :: term(), {Behaviour :: module(), Own :: #{atom() => module()}}) ->
    {ok, module()} | {error, error()}.
module(What, Name, {Behaviour, Own}) ->
    case Own of
        #{Name := Module} ->
            {ok, Module};
        #{} ->
            case is_atom(Name) andalso code:ensure_loaded(Name) of
                {module, Name} -> has_all(What, Name, Behaviour);
                _ -> {error, {no_module, What, Name, lists:sort(maps:keys(Own))}}
            end
    end.

has_all(What, Module, Behaviour) ->
    Callbacks = Behaviour:behaviour_info(callbacks) -- Behaviour:behaviour_info(optional_callbacks),
    case [Callback || {F, A} = Callback <- lists:sort(Callbacks), not erlang:function_exported(Module, F, A)] of
        [] -> {ok, Module};
        Lacking -> {error, {lacks, What, Module, Lacking}}
    end.

%% @doc Calls a function of such a module, whose mistakes must end nobody else.
-spec call(module(), Function :: atom(), Args :: [term()]) -> {ok, term()} | {error, Crash :: term()}.
call(Module, Function, Args) ->
    try
        {ok, apply(Module, Function, Args)}
    catch
        _:Crash -> {error, Crash}
    end.

%% @doc Calls a function that gives a text; where it gives none there is another.
-spec text(module(), Function :: atom(), Args :: [term()], Otherwise :: unicode:chardata()) -> unicode:chardata().
text(Module, Function, Args, Otherwise) ->
    try unicode:characters_to_list(apply(Module, Function, Args)) of
        [_ | _] = Text -> Text;
        _ -> Otherwise
    catch
        _:_ -> Otherwise
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({no_module, What, Name, []}) ->
    io_lib:format("there is no module ~0tp that would be a ~ts", [Name, What]);
format_error({no_module, What, Name, Own}) ->
    io_lib:format("there is no ~ts ~0tp; there are ~ts, and any module that is one", [What, Name, names(Own)]);
format_error({lacks, What, Module, Lacking}) ->
    Functions = [io_lib:format("~tw/~b", [F, A]) || {F, A} <- Lacking],
    io_lib:format("the module ~tw is no ~ts: it lacks ~ts", [Module, What, lists:join(", ", Functions)]).

names(Names) ->
    lists:join(", ", [atom_to_list(Name) || Name <- Names]).
