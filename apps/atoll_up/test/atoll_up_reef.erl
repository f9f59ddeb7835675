%% SPDX-License-Identifier: Apache-2.0
%% A cluster named reef that `atoll up' holds, for suites of the commands that see one.
-module(atoll_up_reef).

-export([up/2, down/2, on_node/2, node_of/1, numbers/1]).

-define(ON_NODE_MS, 30000).
-define(GONE_MS, 5000).

%% @doc Starts it, with these arguments of `up'; returns when its nodes are what they shall be.
-spec up(file:filename(), [string()]) -> atoll_cli_os:program().
up(Dir, Args) ->
    Program = atoll_cli_os:start(Dir, ["up" | Args] ++ ["-c", "reef"]),
    _ = atoll_cli_os:await_line(Program, stdout, <<"atoll down -c reef\n">>),
    Program.

%% @doc Takes it down, and waits for the end of its program.
-spec down(file:filename(), atoll_cli_os:program()) -> ok.
down(Dir, Program) ->
    #{status := 0, stdout := <<>>} = atoll_cli_line:run(Dir, ["down", "-c", "reef"]),
    #{status := 0} = atoll_cli_os:await_exit(Program, ?GONE_MS),
    ok.

%% @doc Runs expressions on one of its nodes, as somebody does who attaches a shell to it.
%% A node that ends of it is fine.
-spec on_node(pos_integer(), iodata()) -> ok.
on_node(I, Text) ->
    {ok, Tokens, _} = erl_scan:string(lists:flatten([unicode:characters_to_list(Text), "."])),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    atoll_cli_line:as_node(fun() ->
        {ok, _} = atoll_view_join:start(#{nodes => [binary_to_atom(node_of(I))]}),
        try erpc:call(binary_to_atom(node_of(I)), erl_eval, exprs, [Expressions, []], ?ON_NODE_MS) of
            _ -> ok
        catch
            error:{erpc, noconnection} -> ok
        end
    end).

%% @doc The node with that number.
-spec node_of(pos_integer()) -> binary().
node_of(I) -> iolist_to_binary(io_lib:format("reef~b@127.0.0.1", [I])).

%% @doc The numbers of nodes, in their order.
-spec numbers([binary()]) -> [pos_integer()].
numbers(Nodes) -> [I || Node <- Nodes, I <- lists:seq(1, 12), node_of(I) =:= Node].
