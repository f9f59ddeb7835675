%% SPDX-License-Identifier: Apache-2.0
%% @doc The application. Its environment is what {@link matchstream_settings} reads, the same on all nodes.
-module(matchstream_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    case matchstream_settings:read(application:get_all_env(matchstream)) of
        {ok, #{switches := Switches} = Settings} ->
            ok = matchstream_switches:install(Switches),
            ok = matchstream_settings:install(Settings),
            ok = matchstream_count:new(),
            case matchstream_sup:start_link(Settings) of
                {ok, _} = Ok -> Ok;
                {error, Why} -> {error, why(Why)};
                ignore -> {error, ignore}
            end;
        {error, _} = Error -> Error
    end.

%% In words what a user may have done.
why({shutdown, {failed_to_start_child, _, Why}}) -> why(Why);
why({shutdown, {web, Port, _}}) -> sentence("port ~b of the web interface cannot be opened, or is taken", [Port]);
why({shutdown, {Port, Why}}) when is_integer(Port), is_atom(Why) -> sentence("port ~b cannot be opened: ~ts", [Port, inet:format_error(Why)]);
why({shutdown, {File, Why}}) when is_list(File), is_atom(Why) -> sentence("the record ~ts cannot be opened: ~ts", [File, file:format_error(Why)]);
why(Why) -> Why.

sentence(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).

%% @private
-spec stop(term()) -> ok.
stop(_) -> ok.
