%% @doc Who has asked for the present round. More than one has if a submaster was started
%% again, or if the last message of one that is lost comes after the first of the one that
%% is there in its place; all of them are answered.
-module(aco_askers).

-export([new/0, add/3, tell/2]).

-export_type([askers/0]).

-opaque askers() :: {aco_branch:round_number(), [pid()]}.

%% @doc Nobody has asked yet.
-spec new() -> askers().
new() -> {0, []}.

%% @doc This one has asked for that round.
-spec add(pid(), aco_branch:round_number(), askers()) -> askers().
add(Asker, Round, {Round, Askers}) -> {Round, [Asker | lists:delete(Asker, Askers)]};
add(Asker, Round, {Before, _}) when Round > Before -> {Round, [Asker]};
add(_, _, Askers) -> Askers.

%% @doc Sends it to each that can be reached.
-spec tell(term(), askers()) -> ok.
tell(Message, {_, Askers}) ->
    lists:foreach(fun(Asker) -> aco_gather:send(Asker, Message) end, Askers).
