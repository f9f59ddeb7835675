%% @doc What a node remembers of a run for those that may be killed there: a table that
%% belongs to the node's host, which is not killed.
%%
%% It has the state of each colony here after each generation, so that one that is started
%% again goes on from there; what was told after each round, from which a colony
%% that is started on another node is brought to where it was; and the processes
%% and counts of this node.
-module(aco_keep).

-export([new/0, put_colony/4, colony/2, put_told/2, told/3]).
-export([put_role/3, delete_role/2, role/2, roles/1]).
-export([made/3, got_on/2, count/2, counted/2]).

-export_type([keep/0, told/0, span/0]).

-type keep() :: ets:table().

%% The best of all colonies in a round, and whose it is.
-type told() :: {aco_schedule:solution(), Owner :: aco_colony:id()}.

%% The rounds after which the same was told.
-type span() :: {First :: pos_integer(), Last :: pos_integer(), told()}.

%% @doc An empty one, which goes with the calling process.
-spec new() -> keep().
new() ->
    ets:new(?MODULE, [ordered_set, public]).

%% @doc The state of a colony that has begun so many rounds.
-spec put_colony(aco_colony:id(), Began :: non_neg_integer(), aco_colony:colony(), keep()) -> ok.
put_colony(Id, Began, Colony, Keep) ->
    put_row({{colony, Id}, {Began, Colony}}, Keep).

%% @doc What was put last.
-spec colony(aco_colony:id(), keep()) -> {ok, {Began :: non_neg_integer(), aco_colony:colony()}} | none.
colony(Id, Keep) ->
    row({colony, Id}, Keep).

%% @doc What was told after these rounds. It seldom changes from one to the next, so there is
%% a row for each change, not for each round. Of two that put at the same moment one may undo
%% that a row was made longer: then it is asked for again.
-spec put_told(span(), keep()) -> ok.
put_told({First, Last, Told}, Keep) ->
    case span(First, Keep) of
        {_, Until, _} when Until >= Last -> ok;
        {From, Until, Told} when Until >= First - 1 -> put_row({{told, From}, {Last, Told}}, Keep);
        _ -> put_row({{told, First}, {Last, Told}}, Keep)
    end.

%% @doc What was told after these rounds; none if any of it is not known here.
-spec told(First :: pos_integer(), Last :: non_neg_integer(), keep()) -> {ok, [span()]} | none.
told(First, Last, Keep) ->
    told(First, Last, Keep, []).

told(First, Last, _, Spans) when First > Last ->
    {ok, lists:reverse(Spans)};
told(First, Last, Keep, Spans) ->
    case span(First, Keep) of
        {_, Until, Told} when Until >= First ->
            told(Until + 1, Last, Keep, [{First, min(Until, Last), Told} | Spans]);
        _ ->
            none
    end.

%% The last one that begins with that round or before.
span(Round, Keep) ->
    case ets:prev(Keep, {told, Round + 1}) of
        {told, First} = Key ->
            {ok, {Last, Told}} = row(Key, Keep),
            {First, Last, Told};
        _ ->
            none
    end.

%% @doc The process of a submaster or a colony of this node.
-spec put_role(aco_tree:id(), pid(), keep()) -> ok.
put_role(Id, Pid, Keep) ->
    put_row({{role, Id}, Pid}, Keep).

%% @doc That process is no more.
-spec delete_role(pid(), keep()) -> ok.
delete_role(Pid, Keep) ->
    true = ets:match_delete(Keep, {{role, '_'}, Pid}),
    ok.

%% @doc The process of that one, if it lives.
-spec role(aco_tree:id(), keep()) -> {ok, pid()} | none.
role(Id, Keep) ->
    case row({role, Id}, Keep) of
        %% The news of its end may be on the way yet.
        {ok, Pid} -> case is_process_alive(Pid) of true -> {ok, Pid}; false -> none end;
        none -> none
    end.

%% @doc All of them.
-spec roles(keep()) -> [{aco_tree:id(), pid()}].
roles(Keep) ->
    [{Id, Pid} || [Id, Pid] <- ets:match(Keep, {{role, '$1'}, '$2'})].

%% @doc A process of that one was made on this node. It is counted among those that were started
%% again if there has been one in the run, here or elsewhere. Answers how often that was here
%% since it last got on, while it had something to do.
-spec made(aco_tree:id(), aco_branch:how(), keep()) -> non_neg_integer().
made(Id, How, Keep) ->
    Key = {made, Id},
    case How =:= build andalso ets:insert_new(Keep, {Key, 0}) of
        true ->
            0;
        false ->
            ok = count(restarts, Keep),
            ets:update_counter(Keep, Key, case How of idle -> 0; _ -> 1 end, {Key, 0})
    end.

%% @doc That one has got something done that is not lost with it.
-spec got_on(aco_tree:id(), keep()) -> ok.
got_on(Id, Keep) ->
    put_row({{made, Id}, 0}, Keep).

%% @doc Counts one.
-spec count(kills | restarts, keep()) -> ok.
count(What, Keep) ->
    _ = ets:update_counter(Keep, What, 1, {What, 0}),
    ok.

%% @doc How many were counted.
-spec counted(kills | restarts, keep()) -> non_neg_integer().
counted(What, Keep) ->
    case row(What, Keep) of
        {ok, Count} -> Count;
        none -> 0
    end.

put_row(Row, Keep) ->
    true = ets:insert(Keep, Row),
    ok.

row(Key, Keep) ->
    case ets:lookup(Keep, Key) of
        [{_, Value}] -> {ok, Value};
        [] -> none
    end.
