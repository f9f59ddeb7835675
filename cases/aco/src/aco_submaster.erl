%% @doc The process of a submaster. It answers whoever has asked for the present round: its
%% parent may be another one from round to round, and a message of the one before may come
%% late. It holds nothing that could be lost with it: started again it is asked again,
%% and finds those below it where they are.
-module(aco_submaster).

-export([start_link/4]).
-export([init/4]).

-export_type([message/0]).

-type message() ::
    %% from above
    {round, Asker :: pid(), aco_branch:round_number(), aco_branch:told()}
    | {told, [aco_keep:span()]}
    | aco_gather:message().

%% @doc Starts it, linked to the caller, the host of its node.
-spec start_link(pid(), aco_keep:keep(), aco_tree:branch(), Reliable :: boolean()) -> pid().
start_link(Host, Keep, Branch, Reliable) ->
    spawn_link(?MODULE, init, [Host, Keep, Branch, Reliable]).

%% @private
-spec init(pid(), aco_keep:keep(), aco_tree:branch(), boolean()) -> no_return().
init(Host, Keep, #{path := Path} = Branch, Reliable) ->
    loop(aco_askers:new(), {Host, Path}, aco_gather:new(Host, Keep, Branch, Reliable)).

loop(Askers, Self, Gather) ->
    receive
        {round, From, Round, Told} ->
            done(aco_gather:ask(Round, Told, Gather), aco_askers:add(From, Round, Askers), Self);
        {told, Rows} ->
            loop(Askers, Self, aco_gather:told(Rows, Gather));
        Message ->
            done(aco_gather:handle(Message, Gather), Askers, Self)
    end.

done({Outcome, Gather}, Askers, {Host, Path} = Self) ->
    case Outcome of
        none -> ok;
        {answer, Round, Best} -> aco_askers:tell({best, Path, Round, Best}, Askers);
        {behind, Round} -> aco_askers:tell({behind, self(), Round}, Askers);
        {fail, Reason} -> aco_gather:send(Host, {failed, Reason})
    end,
    loop(Askers, Self, Gather).
