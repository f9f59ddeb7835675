%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Who goes first where two nodes want one name at once, and who keeps it where
%% two have it.
-module(atoll_name_rules).

-export([outranks/3, judge/3, is_rule/1, as_global/1, users/1, told/5]).

-export_type([rule/0, side/0, verdict/0]).

-type rule() ::
    %% One keeps the name; the other is killed / is told.
    random_exit
    | random_notify
    %% Neither keeps it, both are told.
    | notify_all
    %% The one with the smaller / larger metadata keeps it, the other is told.
    | {keep, min | max}
    %% `Module:Function(Name, {Pid1, Meta1}, {Pid2, Meta2})' gives the pid that keeps
    %% it; anything else, and neither does. Those that do not are told.
    | {fn, module(), Function :: atom()}.

-type global_rule() :: random_exit | random_notify | notify_all | {call, module(), Function :: atom()} | none.
%% What `global' knows: the function has the arguments that it has there.

-type side() :: #{owner := node(), ref := pos_integer(), pid := pid(), meta := term(), _ => _}.

%% Marks metadata that is not the program's.
-define(GLOBAL, '$atoll_global').

-type verdict() ::
    {Winner :: none | first | second, How :: exit | notify}
    %% The function has to be asked, with the name and these arguments.
    | {ask, module(), atom(), [term()]}.

%% @doc Whether A goes before B for that name. The order is the same wherever it is
%% looked at, different for each name, and needs nobody to be asked (rendezvous
%% hashing: Thaler, Ravishankar, 1998).
-spec outranks(node(), node(), Name :: term()) -> boolean().
outranks(A, B, Name) -> rank(A, Name) > rank(B, Name).

rank(Node, Name) -> {erlang:phash2({Name, Node}, 1 bsl 32), Node}.

%% @doc What the rule says. Where chance decides it is a hash of what both are: an order
%% of all, so that among three who meet two by two one always stays.
%% A name that was registered as `global' does may have a rule of its own.
-spec judge(rule(), side(), side()) -> verdict().
judge(_Rule, #{meta := {?GLOBAL, {call, Module, Function}}, pid := Pid1}, #{pid := Pid2}) when
    is_atom(Module), is_atom(Function)
->
    {ask, Module, Function, [Pid1, Pid2]};
judge(_Rule, #{meta := {?GLOBAL, Own}} = A, B) when Own =:= random_exit; Own =:= random_notify; Own =:= notify_all ->
    judge(Own, A#{meta := none}, B);
judge(random_exit, A, B) -> {by_chance(A, B), exit};
judge(random_notify, A, B) -> {by_chance(A, B), notify};
judge(notify_all, _A, _B) -> {none, notify};
judge({keep, How}, #{meta := Meta1} = A, #{meta := Meta2} = B) ->
    Winner =
        if
            Meta1 == Meta2 -> by_chance(A, B);
            (Meta1 < Meta2) =:= (How =:= min) -> first;
            true -> second
        end,
    {Winner, notify};
judge({fn, Module, Function}, #{pid := Pid1, meta := Meta1}, #{pid := Pid2, meta := Meta2}) ->
    {ask, Module, Function, [{Pid1, users(Meta1)}, {Pid2, users(Meta2)}]}.

by_chance(A, B) ->
    case chance(A) > chance(B) of
        true -> first;
        false -> second
    end.

chance(#{owner := Owner, ref := Ref}) -> {erlang:phash2({Owner, Ref}, 1 bsl 32), Owner, Ref}.

%% @doc The metadata of a name that was registered as `global' does it.
-spec as_global(global_rule()) -> term().
as_global(Rule) -> {?GLOBAL, Rule}.

%% @doc The metadata as far as it is the program's.
-spec users(Meta :: term()) -> term().
users({?GLOBAL, _}) -> undefined;
users(Meta) -> Meta.

%% @doc What the process is told that loses a name in that group to the winner, after a
%% clash with that other one.
-spec told(Meta :: term(), Group :: atom(), Name :: term(), Winner :: none | pid(), Other :: pid()) ->
    {ok, Message :: term()} | none.
told({?GLOBAL, {call, _, _}}, _Group, _Name, _Winner, _Other) -> none;
told({?GLOBAL, _}, _Group, Name, none, Other) -> {ok, {global_name_conflict, Name, Other}};
told({?GLOBAL, _}, _Group, Name, _Winner, _Other) -> {ok, {global_name_conflict, Name}};
told(_Meta, Group, Name, Winner, _Other) -> {ok, {name_conflict, Group, Name, Winner}}.

%% @doc Whether it is a rule.
-spec is_rule(term()) -> boolean().
is_rule(Rule) when Rule =:= random_exit; Rule =:= random_notify; Rule =:= notify_all -> true;
is_rule({keep, How}) -> How =:= min orelse How =:= max;
is_rule({fn, Module, Function}) -> is_atom(Module) andalso is_atom(Function);
is_rule(_) -> false.
