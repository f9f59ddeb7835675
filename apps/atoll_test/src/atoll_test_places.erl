%% SPDX-License-Identifier: Apache-2.0
%% @doc Places for jobs: an epmd and a directory each, that no job beside it has.
-module(atoll_test_places).

-export([with/3]).

-include_lib("kernel/include/file.hrl").

%% For an epmd to answer.
-define(ANSWER_MS, 30000).

%% @doc Calls the function with so many places for a tree, and takes all down after. They
%% end with this VM however it ends. Directories that runners which are no more have left all
%% the same, killed with what stood beside them, are removed first.
-spec with(non_neg_integer(), file:filename(), fun(([atoll_test_job:place()]) -> Result)) -> Result.
with(Many, Root, Fun) ->
    ok = remove_left(os:getenv("TMPDIR", "/tmp")),
    {Places, Guardians} = lists:unzip([start(Root) || _ <- lists:seq(1, Many)]),
    try
        Fun(Places)
    after
        _ = [atoll_cluster_guardian:finish(Guardian) || Guardian <- Guardians]
    end.

start(Root) ->
    Number = atoll_test_port:free({0, 0, 0, 0}),
    Dir = directory(),
    Guardian = atoll_cluster_guardian:start(Dir, "/dev/null", ["epmd", "-port", integer_to_list(Number)], []),
    case answers(Guardian, Number, erlang:monotonic_time(millisecond) + ?ANSWER_MS) of
        true -> {place(Root, Dir, Number), Guardian};
        false -> start(Root)
    end.

place(Root, Dir, Number) ->
    #{
        root => Root,
        results => filename:join([Root, "_build", "test", "results"]),
        temporary => Dir,
        epmd => Number,
        tier => fast,
        seed => 0
    }.

%% An epmd that has lost its port to another program ends.
answers(Guardian, Number, Deadline) ->
    receive
        {Guardian, {exit_status, _}} -> false
    after 5 ->
        case gen_tcp:connect({127, 0, 0, 1}, Number, []) of
            {ok, Socket} ->
                gen_tcp:close(Socket) =:= ok;
            {error, _} ->
                true = erlang:monotonic_time(millisecond) < Deadline,
                answers(Guardian, Number, Deadline)
        end
    end.

%% Its name says whose it is.
directory() ->
    Owner = lists:concat(["atoll-test.", os:getpid(), ".", start_time(os:getpid())]),
    "/" ++ _ = Dir = string:trim(os:cmd("mktemp -d \"${TMPDIR:-/tmp}\"/" ++ Owner ++ ".XXXXXX")),
    Dir.

%% Another one's may not be ours to remove; and a process of another start time only has got
%% the number again.
remove_left(Base) ->
    Self = file:read_file_info("/proc/self"),
    _ = [
        file:del_dir_r(Dir)
     || {ok, #file_info{uid = User}} <- [Self],
        Dir <- filelib:wildcard(filename:join(Base, "atoll-test.*.*.*")),
        {ok, #file_info{uid = Owner}} <- [file:read_link_info(Dir)],
        Owner =:= User,
        ["atoll-test", Pid, Start, _] <- [string:split(filename:basename(Dir), ".", all)],
        start_time(Pid) =/= Start
    ],
    ok.

%% The 22nd field of `/proc/PID/stat', the 20th behind the name in brackets.
start_time(Pid) ->
    case file:read_file(filename:join(["/proc", Pid, "stat"])) of
        {ok, Stat} -> lists:nth(20, string:lexemes(lists:last(string:split(binary_to_list(Stat), ")", trailing)), " "));
        {error, _} -> "none"
    end.
