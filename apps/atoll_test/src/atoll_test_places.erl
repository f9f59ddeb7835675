%% @doc Places for jobs: an epmd and a directory each, that no job beside it has.
-module(atoll_test_places).

-export([with/3]).

%% @doc Calls the function with so many places for a tree, and takes all down after. They
%% end with this VM however it ends, but for the directories.
-spec with(non_neg_integer(), file:filename(), fun(([atoll_test_job:place()]) -> Result)) -> Result.
with(Many, Root, Fun) ->
    Temporary = string:trim(os:cmd("mktemp -d")),
    Ports = free(Many, []),
    Epmds = [start_epmd(Port) || Port <- Ports],
    try
        Fun([place(Root, filename:join(Temporary, integer_to_list(Port)), Port) || Port <- Ports])
    after
        _ = [end_epmd(Epmd) || Epmd <- Epmds],
        _ = file:del_dir_r(Temporary)
    end.

place(Root, Temporary, Port) ->
    ok = filelib:ensure_dir(filename:join(Temporary, "x")),
    ok = file:change_mode(Temporary, 8#700),
    #{
        root => Root,
        results => filename:join([Root, "_build", "test", "results"]),
        temporary => Temporary,
        epmd => Port,
        tier => fast,
        seed => 0
    }.

%% Outside of where the system takes its own from.
free(0, Ports) ->
    Ports;
free(Many, Ports) ->
    Port = 10000 + rand:uniform(20000),
    case lists:member(Port, Ports) orelse gen_tcp:listen(Port, [{reuseaddr, true}]) of
        {ok, Socket} -> ok = gen_tcp:close(Socket), free(Many - 1, [Port | Ports]);
        _ -> free(Many, Ports)
    end.

start_epmd(Number) ->
    %% What it says of connections that tests break is of no use.
    Silent = "exec epmd -port " ++ integer_to_list(Number) ++ " >/dev/null 2>&1",
    [Program | Arguments] = atoll_test_job:tied(["sh", "-c", Silent]),
    Port = open_port({spawn_executable, os:find_executable(Program)}, [{args, Arguments}, exit_status, hide]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    {Port, Pid}.

end_epmd({Port, Pid}) ->
    _ = os:cmd("kill " ++ integer_to_list(Pid)),
    receive
        {Port, {exit_status, _}} -> ok
    end.
