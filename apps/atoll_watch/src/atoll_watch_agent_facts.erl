%% SPDX-License-Identifier: Apache-2.0
%% @doc The part of the agent that says how a node is set up, so that it can be compared with others. It is put into a node with
%% {@link atoll_watch_agent}, and as that one stands alone.
%%
%% What is secret or long comes as a hash: the cookie, code, and who has a name of `global'. Of a node with more than 500 names of `global'
%% none is told.
-module(atoll_watch_agent_facts).

-export([facts/0, dump/0]).

-export_type([facts/0]).

-include_lib("kernel/include/file.hrl").

-type facts() :: #{
    otp := binary(),
    cookie := non_neg_integer(),
    flags := [{Name :: atom(), Value :: binary()}],
    %% Of one that is to be connected with all others: with whom it is, visibly.
    mesh := none | [node()],
    %% Of `global': who has each.
    names := [{Name :: binary(), Holder :: non_neg_integer(), node()}],
    modules := modules() | same,
    %% Of the modules.
    code := non_neg_integer()
}.

-type modules() :: [{Module :: binary(), Version :: non_neg_integer()}].

-define(NAMES, 500).
-define(LABEL, 60).

%% @doc How this node is set up now.
-spec facts() -> facts().
facts() ->
    ConnectAll = connect_all(),
    Modules = [{atom_to_binary(Module), erlang:phash2(Md5)} || Module <- lists:sort(erlang:loaded()), Md5 <- md5(Module)],
    #{
        otp => list_to_binary([erlang:system_info(otp_release), " (erts ", erlang:system_info(version), $)]),
        cookie => erlang:phash2({?MODULE, erlang:get_cookie()}),
        flags => [{Name, text(Value)} || {Name, Value} <- [
            {net_ticktime, application:get_env(kernel, net_ticktime, 60)},
            {net_tickintensity, application:get_env(kernel, net_tickintensity, 4)},
            {connect_all, ConnectAll},
            {prevent_overlapping_partitions, application:get_env(kernel, prevent_overlapping_partitions, true)},
            {dist_auto_connect, application:get_env(kernel, dist_auto_connect, always)},
            {proto_dist, argument(proto_dist, "inet_tcp")},
            {dist_flags, dist_flags()}
        ]],
        mesh => case ConnectAll andalso init:get_argument(hidden) =:= error of true -> nodes(); false -> none end,
        names => names(ets:info(global_names, size)),
        modules => Modules,
        code => erlang:phash2(Modules)
    }.

%% It may be taken away meanwhile.
md5(Module) -> try [Module:module_info(md5)] catch error:undef -> [] end.

connect_all() ->
    case application:get_env(kernel, connect_all) of
        {ok, false} -> false;
        _ -> argument(connect_all, "true") =/= "false"
    end.

argument(Flag, Else) ->
    case init:get_argument(Flag) of
        {ok, [[Value | _] | _]} -> Value;
        _ -> Else
    end.

%% Of no documented function, so other releases may have none.
dist_flags() -> try erlang:phash2(erts_internal:get_dflags()) catch error:undef -> unknown end.

names(Size) when is_integer(Size), Size =< ?NAMES ->
    [{text(Name), erlang:phash2(term_to_binary(Pid)), node(Pid)} || Name <- global:registered_names(), Pid <- [global:whereis_name(Name)], is_pid(Pid)];
names(_) ->
    [].

%% As a rule an atom or a tuple of atoms. Modules that write terms would stay in the node.
text(Term) ->
    Text = unicode:characters_to_binary(written(Term)),
    case byte_size(Text) > ?LABEL of
        true -> unicode:characters_to_binary(lists:sublist(unicode:characters_to_list(Text), ?LABEL));
        false -> Text
    end.

written(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
written(N) when is_integer(N) -> integer_to_binary(N);
written(Tuple) when is_tuple(Tuple), tuple_size(Tuple) =< 10 -> [${, lists:join($,, [written(Part) || Part <- tuple_to_list(Tuple)]), $}];
written(Text) when is_binary(Text); is_list(Text) ->
    try unicode:characters_to_binary(Text) of
        Is when is_binary(Is) -> Is;
        _ -> "..."
    catch error:badarg -> "..."
    end;
written(_) -> "...".

%% @doc A crash dump where this VM would write one: on which machine and where, and its bytes.
-spec dump() -> [{crash_dump, File :: binary(), Bytes :: pos_integer()}].
dump() ->
    File = os:getenv("ERL_CRASH_DUMP", "erl_crash.dump"),
    case file:read_file_info(File, [raw]) of
        {ok, #file_info{size = Bytes, type = regular}} when Bytes > 0 ->
            {ok, Dir} = prim_file:get_cwd(),
            [$@ | Host] = lists:dropwhile(fun(C) -> C =/= $@ end, atom_to_list(node())),
            Path = filename:join(Dir, File),
            %% Its end says more.
            Shown = lists:nthtail(max(0, length(Path) + length(Host) + 1 - ?LABEL), Path),
            [{crash_dump, unicode:characters_to_binary([Host, $:, Shown]), Bytes}];
        _ ->
            []
    end.
