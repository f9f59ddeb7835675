%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisors of the processes that come and go on a server node, one for the client monitors and
%% one for the chat sessions. They start nobody again: {@link im_server_supervisor} does, which knows
%% what for.
-module(im_dynamic_sup).
-behaviour(supervisor).

-export([start_link/1, start_child/2, children/1, init/1]).

%% @doc Starts it under the name of the module that its children run.
-spec start_link(im_client_monitor | im_chat_session) -> supervisor:startlink_ret().
start_link(Module) -> supervisor:start_link({local, name(Module)}, ?MODULE, Module).

name(im_client_monitor) -> im_client_monitor_sup;
name(im_chat_session) -> im_chat_session_sup.

%% @doc Starts one; `again' if the supervisor is just being started itself.
-spec start_child(im_client_monitor | im_chat_session, [term()]) -> {ok, pid()} | again.
start_child(Module, Args) ->
    try {ok, _} = supervisor:start_child(name(Module), Args)
    catch exit:{Why, {gen_server, call, _}} when Why =:= noproc; Why =:= killed; Why =:= shutdown -> again
    end.

%% @doc All that live.
-spec children(im_client_monitor | im_chat_session) -> [pid()].
children(Module) ->
    try [Pid || {_, Pid, _, _} <- supervisor:which_children(name(Module)), is_pid(Pid)]
    catch exit:{Why, {gen_server, call, _}} when Why =:= noproc; Why =:= killed; Why =:= shutdown -> []
    end.

%% @private
-spec init(module()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Module) ->
    {ok, {#{strategy => simple_one_for_one}, [#{id => Module, start => {Module, start_link, []}, restart => temporary, shutdown => brutal_kill}]}}.
