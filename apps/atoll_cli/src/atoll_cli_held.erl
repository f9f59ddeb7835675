%% @doc A cluster that `atoll up' holds in another terminal: reached from this program, or
%% the sentence that it does not run.
-module(atoll_cli_held).

-export([reach/1, unknown_or_silent/1, not_running/1, become_hidden/0]).

-type state() :: up | down | paused.

%% @doc The nodes of a cluster, with what its holder says of each. From then on this
%% VM is a node too, and may call them.
-spec reach(Name :: string()) -> {ok, [{node(), state()}]} | {error, unicode:chardata()}.
reach(Name) ->
    case atoll_cluster:ask(Name, status) of
        {ok, #{nodes := Infos}} ->
            case become_hidden() of
                ok -> {ok, [{binary_to_atom(Node), State} || #{node := Node, state := State} <- Infos]};
                {error, _} = Error -> Error
            end;
        {error, {not_running, Name}} ->
            {error, not_running(Name)};
        {error, Reason} ->
            {error, atoll_cluster:format_error(Reason)}
    end.

%% @doc What is wrong where a cluster cannot be reached: the command line, if there is none of that
%% name.
-spec unknown_or_silent(Name :: string()) -> usage | failed.
unknown_or_silent(Name) ->
    case [Name || #{name := Running} <- atoll_cluster:running(), Running =:= Name] of
        [] -> usage;
        [_ | _] -> failed
    end.

%% @doc The sentence for one who names a cluster that does not run: which ones do, if any.
-spec not_running(Name :: string()) -> unicode:chardata().
not_running(Name) ->
    case lists:sort([Running || #{name := Running} <- atoll_cluster:running()]) of
        [] -> ["No cluster named ", Name, " is running."];
        Names -> ["No cluster named ", Name, " is running, only ", lists:join(", ", Names), $.]
    end.

%% @doc Makes this VM a node, to connect with those of this machine and bring no two
%% of them together by it. It listens to nobody elsewhere.
-spec become_hidden() -> ok | {error, unicode:chardata()}.
become_hidden() ->
    ok = application:set_env(kernel, inet_dist_use_interface, {127, 0, 0, 1}),
    Name = list_to_atom(lists:concat(["atoll_cli", os:getpid(), "@127.0.0.1"])),
    case net_kernel:start(Name, #{name_domain => longnames, hidden => true}) of
        {ok, _} -> ok;
        {error, Reason} -> {error, io_lib:format("This program could not become a node: ~0tp.", [Reason])}
    end.
