%% SPDX-License-Identifier: Apache-2.0
%% What a node keeps of its groups comes back as it was, or is refused in a sentence.
-module(atoll_group_file_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

what_is_kept_comes_back_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_round_trip(), 500).

prop_round_trip() ->
    ?FORALL(Views, list(view()), begin
        Text = unicode:characters_to_binary(atoll_group_file:encode('n@h', Views)),
        {ok, Views} =:= atoll_group_file:decode(Text, 'n@h')
    end).

%% Any cut of a file, and any byte of it changed, is either refused or read without a crash.
what_is_torn_crashes_nothing_test_() ->
    atoll_prop:test(?FUNCTION_NAME, prop_torn(), 500).

prop_torn() ->
    ?FORALL({Views, Where, Byte, Cut}, {non_empty(list(view())), non_neg_integer(), byte(), boolean()}, begin
        Text = unicode:characters_to_binary(atoll_group_file:encode('n@h', Views)),
        At = Where rem byte_size(Text),
        <<Before:At/binary, _, After/binary>> = Text,
        Torn =
            case Cut of
                true -> Before;
                false -> <<Before/binary, Byte, After/binary>>
            end,
        case atoll_group_file:decode(Torn, 'n@h') of
            {ok, Read} -> is_list([atoll_group_view:members(View) || View <- Read]);
            {error, Error} -> is_list(unicode:characters_to_list(atoll_group_file:format_error(Error)))
        end
    end).

view() ->
    ?LET(
        {Name, Ops, Deleted},
        {oneof([g, 'Größe', 'a "b" \\ c']), list({oneof([add, remove]), stamp()}), frequency([{4, false}, {1, stamp()}])},
        begin
            View = lists:foldl(
                fun({Op, {_, Node, _} = Stamp}, V) -> atoll_group_view:Op([Node], Stamp, V) end,
                atoll_group_view:new(Name, ['n1@h'], {1, 'n1@h', 7}),
                Ops
            ),
            case Deleted of
                false -> View;
                Stamp -> atoll_group_view:delete(Stamp, View)
            end
        end
    ).

stamp() -> {range(2, 99), oneof(['n1@h', 'n2@h', 'ñ@h']), range(0, 1 bsl 60)}.

what_is_no_record_of_this_node_is_refused_in_a_sentence_test() ->
    [
        begin
            {error, Error} = atoll_group_file:decode(Text, 'n@h'),
            Said = unicode:characters_to_list(atoll_group_file:format_error(Error)),
            ?assertMatch({match, _}, re:run(Said, Words, [unicode]), Said)
        end
     || {Text, Words} <- [
            {<<>>, "does not hold"},
            {<<"{atoll_groups, 1, 'n@h', []">>, "does not hold"},
            {<<255, 254>>, "does not hold"},
            {<<"{atoll_groups, 3, 'n@h', []}.">>, "its version is 3"},
            {<<"{atoll_groups, 1, 'm@h', []}.">>, "written by m@h"},
            {<<"{atoll_groups, 1, 'n@h', [{g, {0, 'n@h', 1}, [], false}]}.">>, "nothing that is known"},
            {<<"{atoll_groups, 1, 'n@h', [{g, {1, 'n@h', 1}, [{'n@h', up, {1, 'n@h', 1}}], false}]}.">>, "nothing that is known"},
            {<<"{atoll_groups, 1, 'n@h', [{g, {1, 'n@h', 1}, [], true}]}.">>, "nothing that is known"}
        ]
    ].

files_test_() ->
    {foreach, fun new_dir/0, fun file:del_dir_r/1, [
        fun(Dir) -> {"no file, no groups", ?_assertEqual({ok, []}, atoll_group_file:read(path(Dir), 'n@h'))} end,
        fun(Dir) -> {"what is written is whole or not there", fun() -> written(Dir) end} end,
        fun(Dir) -> {"one that is too large is not read", fun() -> large(Dir) end} end,
        fun(Dir) -> {"a wrong one is put aside", fun() -> put_aside(Dir) end} end,
        fun(Dir) -> {"the keeper writes the newest, at its end at the latest", fun() -> kept(Dir) end} end
    ]}.

new_dir() ->
    Dir = atoll_test_file:temporary("atoll_groups"),
    ok = file:make_dir(Dir),
    Dir.

path(Dir) -> atoll_group_file:path(filename:join(Dir, "deeper"), 'n@h').

written(Dir) ->
    View = atoll_group_view:new(g, ['n@h'], {1, 'n@h', 7}),
    ok = atoll_group_file:write(path(Dir), 'n@h', [View]),
    ok = atoll_group_file:write(path(Dir), 'n@h', []),
    ?assertEqual({ok, []}, atoll_group_file:read(path(Dir), 'n@h')),
    ?assertEqual({ok, ["n@h.groups"]}, file:list_dir(filename:dirname(path(Dir)))),
    %% A folder stands where the file should be written: the old one stays.
    ok = file:make_dir([path(Dir), ".part"]),
    ?assertEqual({error, eisdir}, atoll_group_file:write(path(Dir), 'n@h', [View])),
    ?assertEqual({ok, []}, atoll_group_file:read(path(Dir), 'n@h')).

large(Dir) ->
    ok = filelib:ensure_dir(path(Dir)),
    {ok, File} = file:open(path(Dir), [write, raw]),
    {ok, _} = file:position(File, 1 bsl 25),
    ok = file:truncate(File),
    ok = file:close(File),
    {error, Error} = atoll_group_file:read(path(Dir), 'n@h'),
    ?assertEqual("it has 33554432 bytes, and 16777216 are the most", lists:flatten(atoll_group_file:format_error(Error))).

put_aside(Dir) ->
    ok = filelib:ensure_dir(path(Dir)),
    ok = file:write_file(path(Dir), "garbage"),
    ?assertEqual([], atoll_quiet:run(fun() -> atoll_group_keeper:load(path(Dir)) end)),
    ?assertEqual({ok, <<"garbage">>}, file:read_file([path(Dir), ".bad"])),
    ?assertEqual(false, filelib:is_file(path(Dir))).

kept(Dir) ->
    {ok, Keeper} = atoll_group_keeper:start_link(path(Dir)),
    Views = [atoll_group_view:new(g, ['n@h'], {I, 'n@h', 7}) || I <- lists:seq(1, 100)],
    lists:foreach(fun(View) -> ok = atoll_group_keeper:keep([View]) end, Views),
    ok = gen_server:stop(Keeper),
    ?assertEqual({ok, [lists:last(Views)]}, atoll_group_file:read(path(Dir), node())).
