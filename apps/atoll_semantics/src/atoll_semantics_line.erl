%% SPDX-License-Identifier: Apache-2.0
%% @doc Commands of the lockstep as a person writes them, a line each: a node and a call of
%% `s_group', as in `n1 new_s_group(g1, [n1, n2])', or what happens to nodes: `n1 kill', `n1 start',
%% `cut([n1, n2], [n3])', `heal'.
%%
%% A process is `{Node, Number}': it is started when it is first named, and `exit({n1, 1})' ends it.
%% The one message that is sent is `hello'.
-module(atoll_semantics_line).

-export([parse/1, format/1]).

-type command() :: {atoll_semantics:node_id(), atoll_semantics_commands:written()}.

%% @doc The command of a line, or what is wrong with the line, in a sentence.
-spec parse(string()) -> {ok, command()} | {error, unicode:chardata()}.
parse(Line) ->
    case erl_scan:string(Line) of
        {ok, Tokens, End} -> parse_tokens([Token || Token <- Tokens, element(1, Token) =/= dot], End);
        {error, {_, Module, Why}, _} -> {error, ["the line is not Erlang: ", Module:format_error(Why)]}
    end.

parse_tokens([{atom, _, Word} | Rest] = Tokens, End) ->
    case lists:keymember(float, 1, Tokens) of
        true -> {error, "a float is not taken: it may be compared with an integer"};
        false -> parse_words(Word, Rest, End)
    end;
parse_tokens(_, _End) ->
    {error, no_node()}.

parse_words(Word, Rest, End) ->
    case {lists:member(Word, all_nodes()), Rest} of
        {true, []} -> {error, io_lib:format("what ~ts is to do is missing", [Word])};
        {true, _} -> call(Word, Rest, End);
        {false, _} -> happens(Word, [{atom, End, Word} | Rest], End)
    end.

call(Ni, Tokens, End) ->
    case term(Tokens, End) of
        {ok, Name, Args} ->
            case written(Name, Args) of
                {ok, Written} -> {ok, {Ni, Written}};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% It is said of no node.
happens(Word, Tokens, End) when Word =:= cut; Word =:= heal ->
    case term(Tokens, End) of
        {ok, heal, []} -> {ok, {hd(all_nodes()), heal}};
        {ok, cut, [_ | _] = Parts} -> cut(Parts);
        {ok, cut, []} -> {error, "cut needs the nodes of each side, as in cut([n1, n2], [n3])"};
        {ok, heal, _} -> {error, "heal takes no arguments"};
        {error, _} = Error -> Error
    end;
happens(_Word, _Tokens, _End) ->
    {error, no_node()}.

no_node() ->
    ["a line begins with one of ", lists:join(", ", [atom_to_list(N) || N <- all_nodes()]), ", or is cut or heal"].

cut(Parts) ->
    case [Part || Part <- Parts, not is_nodes(Part)] of
        [] ->
            Named = lists:append(Parts),
            case Named -- lists:usort(Named) of
                [] -> {ok, {hd(all_nodes()), {cut, Parts}}};
                [Twice | _] -> {error, io_lib:format("~ts is named twice", [Twice])}
            end;
        [Wrong | _] ->
            {error, io_lib:format("~0tp is no list of nodes", [Wrong])}
    end.

%% A name alone, or a call whose arguments are terms.
term([{atom, _, Name}], _End) ->
    {ok, Name, []};
term(Tokens, End) ->
    case erl_parse:parse_exprs(Tokens ++ [{dot, End}]) of
        {ok, [{call, _, {atom, _, Name}, Args}]} ->
            try
                {ok, Name, [erl_parse:normalise(Arg) || Arg <- Args]}
            catch
                error:_ -> {error, "an argument is an expression; only terms are taken"}
            end;
        {ok, _} ->
            {error, "after the node comes one call, as in n1 new_s_group(g1, [n1, n2])"};
        {error, {_, Module, Why}} ->
            {error, ["the line is not Erlang: ", Module:format_error(Why)]}
    end.

%% As {@link atoll_semantics} has it.
written(Function, []) when
    Function =:= s_groups; Function =:= own_s_groups; Function =:= own_nodes; Function =:= info; Function =:= kill; Function =:= start
->
    {ok, Function};
written(Function, [S, Nis]) when Function =:= new_s_group; Function =:= add_nodes; Function =:= remove_nodes ->
    checked([group(S), members(Nis)], {Function, S, Nis});
written(Function, [S]) when Function =:= delete_s_group; Function =:= own_nodes ->
    checked([group(S)], {Function, S});
written(Function, [S, Name, P]) when Function =:= register_name; Function =:= re_register_name ->
    checked([group(S), process(P)], {Function, S, Name, P});
written(Function, [S, Name]) when Function =:= unregister_name; Function =:= whereis_name ->
    checked([group(S)], {Function, S, Name});
written(registered_names, [{s_group, S}]) ->
    checked([group(S)], {registered_names, S});
written(registered_names, [{node, Ni}]) ->
    checked([members([Ni])], {registered_names_at, Ni});
written(whereis_name, [Ni, S, Name]) ->
    checked([members([Ni]), group(S)], {whereis_name, Ni, S, Name});
written(send, [S, Name, Message]) ->
    checked([group(S), message(Message)], {send, S, Name, Message});
written(send, [Ni, S, Name, Message]) ->
    checked([members([Ni]), group(S), message(Message)], {send, Ni, S, Name, Message});
written(exit, [P]) ->
    checked([process(P)], {exit, P});
written(Function, Args) ->
    {error, io_lib:format("~ts/~b is none of the functions that are compared, see \"help\"", [Function, length(Args)])}.

checked(Checks, Written) ->
    case [Wrong || {error, _} = Wrong <- Checks] of
        [] -> {ok, Written};
        [Wrong | _] -> Wrong
    end.

group(S) when is_atom(S) -> ok;
group(S) -> {error, io_lib:format("the name of a group is an atom, not ~0tp", [S])}.

members(Nis) ->
    case is_nodes(Nis) of
        true -> ok;
        false -> {error, io_lib:format("~0tp is no list of nodes of these: ~0tp", [Nis, all_nodes()])}
    end.

%% Guards by the length, which only a proper list has.
is_nodes(Nis) when length(Nis) >= 0 -> lists:all(fun(N) -> lists:member(N, all_nodes()) end, Nis);
is_nodes(_) -> false.

process({Ni, N} = P) when is_integer(N), N > 0 ->
    case lists:member(Ni, all_nodes()) of
        true -> ok;
        false -> no_process(P)
    end;
process(P) ->
    no_process(P).

no_process(P) -> {error, io_lib:format("a process is {Node, Number}, as {n1, 1}, not ~0tp", [P])}.

message(hello) -> ok;
message(Message) -> {error, io_lib:format("the message that is sent is hello, not ~0tp", [Message])}.

all_nodes() ->
    {Normal, Hidden} = atoll_semantics_commands:nodes(),
    Normal ++ Hidden.

%% @doc The line of a command: {@link parse/1} gives the command again.
-spec format(command()) -> unicode:chardata().
format({_, heal}) -> "heal";
format({_, {cut, Parts}}) -> form(cut, Parts);
format({Ni, Written}) -> [atom_to_list(Ni), " ", format_call(Written)].

format_call(Written) when is_atom(Written) -> atom_to_list(Written);
format_call({registered_names, S}) -> form(registered_names, [{s_group, S}]);
format_call({registered_names_at, Ni}) -> form(registered_names, [{node, Ni}]);
format_call(Written) -> [Function | Args] = tuple_to_list(Written), form(Function, Args).

form(Function, Args) ->
    [atom_to_list(Function), "(", lists:join(", ", [io_lib:format("~0tp", [Arg]) || Arg <- Args]), ")"].
