%% @doc Whom a submaster or a colony works for, which is the process that has asked it last. If that
%% is gone for good the run is over, and so it is ended on this node, whose own processes
%% are gone for those below: so it ends on all nodes, whatever was killed.
%%
%% One that was killed is started again somewhere, and asks. It may take a while to be asked to
%% do so itself, or for others to be tried in vain. Who ended in order has ended the run.
-module(aco_leash).

-export([new/0, follow/2, gone/4]).

-export_type([leash/0]).

-opaque leash() :: {pid(), reference()} | none.

-define(ORPHAN_MS, 120_000).

%% @doc Nobody has asked yet.
-spec new() -> leash().
new() -> none.

%% @doc That one has asked.
-spec follow(pid(), leash()) -> leash().
follow(Pid, {Pid, _} = Leash) -> Leash;
follow(Pid, none) -> {Pid, monitor(process, Pid)};
follow(Pid, {_, Ref}) ->
    true = demonitor(Ref, [flush]),
    follow(Pid, none).

%% @doc What `DOWN' means to this one, and `{orphaned, Ref}', which comes of it later: nothing, if
%% it is not about whoever has asked last. [] is asked by the caller of the run.
-spec gone(aco_tree:id(), {'DOWN', reference(), process, pid(), term()} | {orphaned, reference()}, aco_host:run(), leash()) ->
    ok.
gone(Id, {'DOWN', Ref, process, Pid, Why}, #{reliable := Reliable, nodes := [Master | _]} = Run, {Pid, Ref}) ->
    case Id =:= [] orelse not Reliable orelse Why =:= shutdown orelse (Why =:= noconnection andalso node(Pid) =:= Master) of
        true -> over(Run);
        false -> _ = erlang:send_after(?ORPHAN_MS, self(), {orphaned, Ref}), ok
    end;
gone(_, {orphaned, Ref}, Run, {_, Ref}) -> over(Run);
gone(_, _, _, _) -> ok.

%% Not by the caller, which ends with it.
over(#{id := RunId}) ->
    _ = spawn(aco_host, stop, [RunId, none]),
    ok.
