%% SPDX-License-Identifier: Apache-2.0
%% @doc Replays what was recorded on a real node ({@link atoll_recording}): the
%% events go through the protocol's module again, and each must have the effects
%% that it had there.
%%
%% A difference says that the module is not the one that was recorded, or that it
%% is not pure: it has read a clock, a table, or something else of that node. A
%% recording calls no module that is not a protocol.
-module(atoll_sim_replay).

-export([run/1, format_error/1]).

-export_type([result/0, difference/0, error/0]).

-type result() :: #{
    protocol := module(),
    %% Where it was recorded, and on which OTP release.
    node := node(),
    otp := string(),
    events := non_neg_integer(),
    %% Events that came after the bound of the file and are not in it.
    lost := non_neg_integer(),
    %% Whether the file has no end: its writer did not come so far.
    cut := boolean(),
    outcome := identical | difference()
}.

-type difference() ::
    %% The first event that differs, counted from 1.
    #{
        at := pos_integer(),
        event := atoll_protocol:event(),
        recorded := [atoll_protocol:effect()],
        replayed := [atoll_protocol:effect()]
    }
    %% The module cannot take such a state, or such an event.
    | #{crashed := term()}.

-type error() :: atoll_recording:error() | {file:filename_all(), {no_protocol, module()}}.

%% @doc Reads a file and replays it.
-spec run(file:filename_all()) -> {ok, result()} | {error, error()}.
run(File) ->
    case atoll_recording:read(File) of
        {ok, #{protocol := Protocol} = Recording, How} ->
            case is_protocol(Protocol) of
                true -> {ok, result(Recording, How)};
                false -> {error, {File, {no_protocol, Protocol}}}
            end;
        {error, _} = Error ->
            Error
    end.

is_protocol(Module) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            Attributes = Module:module_info(attributes),
            lists:member(atoll_protocol, lists:append([Names || {behaviour, Names} <- Attributes]));
        {error, _} ->
            false
    end.

result(#{protocol := Protocol, events := Events} = Recording, How) ->
    Facts = maps:with([protocol, node, otp, lost], Recording),
    Facts#{
        events => length(Events),
        cut => How =:= cut,
        outcome => outcome(Protocol, maps:with([protocol, state, events, lost], Recording))
    }.

outcome(Protocol, #{events := Events} = Recording) ->
    try atoll_protocol:replay(Protocol, Recording) of
        ok ->
            identical;
        {differs, At, Recorded, Replayed} ->
            {Event, _, _} = lists:nth(At, Events),
            #{at => At, event => Event, recorded => Recorded, replayed => Replayed}
    catch
        %% A state or an event of another release, most likely.
        error:Reason -> #{crashed => Reason}
    end.

%% @doc One sentence for an error, which begins with the file.
-spec format_error(error()) -> unicode:chardata().
format_error({File, {no_protocol, Module}}) ->
    io_lib:format("~ts: it is of the protocol ~tw, and there is no such protocol here", [File, Module]);
format_error(Error) ->
    atoll_recording:format_error(Error).
