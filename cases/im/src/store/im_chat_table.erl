%% SPDX-License-Identifier: Apache-2.0
%% @doc The open sessions with the messages that are not delivered yet: the rows of a chat database.
%% Pure ({@link im_table}).
%%
%% A session is that of two clients, sorted, `a' and `b'; `ab' is the direction from the first to the
%% second. The messages of a direction are numbered from 1. Those up to `accepted' were taken,
%% each once and without a gap; of these those above `delivered' are kept. An incarnation tells a
%% session from an earlier one of the same two clients: what belongs to another incarnation is refused. So is
%% what comes late from a process that was replaced: the row is that of the process that has opened it last.
-module(im_chat_table).
-behaviour(im_table).

-export([new/1, apply/2, rows/1, pid/1]).

-export_type([row/0, op/0, reply/0, direction/0, message/0, seq/0, inc/0, owner/0]).

-type seq() :: non_neg_integer().
-type inc() :: integer().
-type message() :: {seq(), Body :: binary(), Meta :: term()}.

-type owner() :: {inc(), Session :: pid()}.
%% Whose operation it is. In place of what is said below the reply is `{error, replaced}' where another process
%% has the row.

-type row() :: #{
    pid := pid(),
    inc := inc(),
    %% whether one of the clients has asked for the end
    finishing := boolean(),
    ab := direction(),
    ba := direction()
}.

-type direction() :: #{accepted := seq(), delivered := seq(), kept := [message()]}.

-type op() ::
    %% -> {ok, Row}, with the incarnation that the row has if there is one; where there is none and `none' is to be made -> none
    {open, im_plan:session(), pid(), inc() | none}
    %% -> ok, also if that number is there already | {error, gap | full | no_session}
    | {append, im_plan:session(), owner(), From :: im_plan:client(), seq(), Body :: binary(), Meta :: term(), Delivered :: {seq(), seq()}}
    %% of both directions, which frees what is kept up to there -> ok | {error, no_session}
    | {delivered, im_plan:session(), owner(), {AB :: seq(), BA :: seq()}}
    %% -> ok | {error, no_session}
    | {finishing, im_plan:session(), owner(), boolean()}
    %% -> ok, also if it is not there
    | {remove, im_plan:session(), owner()}
    %% -> {ok, Row} | none
    | {peek, im_plan:session()}
    %% -> the number of rows
    | count.

-type reply() :: term().

%% The messages of a direction from the oldest on, and how many.
-record(way, {accepted = 0 :: seq(), delivered = 0 :: seq(), kept = queue:new() :: queue:queue(message())}).
-record(row, {pid :: pid(), inc :: inc(), finishing = false :: boolean(), ab = #way{} :: #way{}, ba = #way{} :: #way{}}).

-type table() :: {#{im_plan:session() => #row{}}, MaxKept :: pos_integer()}.

%% @private
-spec new(im_table:limits()) -> table().
new(#{away_messages := Max}) -> {#{}, Max}.

%% @private
-spec apply(op(), table()) -> {reply(), table()} | {reply(), unchanged}.
apply({append, {A, _} = Session, Owner, From, Seq, Body, Meta, Delivered}, {Rows, Max} = Table) ->
    case owned(Session, Owner, Rows) of
        #row{} = Row ->
            #row{ab = AB, ba = BA} = Trimmed = trimmed(Delivered, Row),
            case From of
                A -> {Reply, Way} = appended(Seq, Body, Meta, AB, Max), {Reply, put(Session, Trimmed#row{ab = Way}, Table)};
                _ -> {Reply, Way} = appended(Seq, Body, Meta, BA, Max), {Reply, put(Session, Trimmed#row{ba = Way}, Table)}
            end;
        Why ->
            {{error, Why}, unchanged}
    end;
apply({delivered, Session, Owner, Delivered}, Table) ->
    change(Session, Owner, fun(Row) -> trimmed(Delivered, Row) end, Table);
apply({finishing, Session, Owner, Finishing}, Table) ->
    change(Session, Owner, fun(Row) -> Row#row{finishing = Finishing} end, Table);
apply({open, Session, Pid, New}, {Rows, _} = Table) ->
    case Rows of
        #{Session := #row{} = There} -> opened(Session, There#row{pid = Pid}, Table);
        #{} when New =:= none -> {none, unchanged};
        #{} -> opened(Session, #row{pid = Pid, inc = New}, Table)
    end;
apply({remove, Session, Owner}, {Rows, Max}) ->
    case owned(Session, Owner, Rows) of
        #row{} -> {ok, {maps:remove(Session, Rows), Max}};
        no_session -> {ok, unchanged};
        replaced -> {{error, replaced}, unchanged}
    end;
apply({peek, Session}, {Rows, _}) ->
    case Rows of
        #{Session := Row} -> {{ok, shown(Row)}, unchanged};
        #{} -> {none, unchanged}
    end;
apply(count, {Rows, _}) ->
    {map_size(Rows), unchanged}.

opened(Session, Row, Table) -> {{ok, shown(Row)}, put(Session, Row, Table)}.

change(Session, Owner, Fun, {Rows, _} = Table) ->
    case owned(Session, Owner, Rows) of
        #row{} = Row -> {ok, put(Session, Fun(Row), Table)};
        Why -> {{error, Why}, unchanged}
    end.

owned(Session, {Inc, Pid}, Rows) ->
    case Rows of
        #{Session := #row{inc = Inc, pid = Pid} = Row} -> Row;
        #{Session := #row{inc = Inc}} -> replaced;
        #{} -> no_session
    end.

put(Session, Row, {Rows, Max}) -> {Rows#{Session => Row}, Max}.

appended(Seq, _, _, #way{accepted = Accepted} = Way, _) when Seq =< Accepted ->
    {ok, Way};
appended(Seq, _, _, #way{accepted = Accepted} = Way, _) when Seq > Accepted + 1 ->
    {{error, gap}, Way};
appended(_, _, _, #way{accepted = Accepted, delivered = Delivered} = Way, Max) when Accepted - Delivered >= Max ->
    {{error, full}, Way};
appended(Seq, Body, Meta, #way{kept = Kept} = Way, _) ->
    {ok, Way#way{accepted = Seq, kept = queue:in({Seq, Body, Meta}, Kept)}}.

trimmed({UpToAB, UpToBA}, #row{ab = AB, ba = BA} = Row) ->
    Row#row{ab = trim(UpToAB, AB), ba = trim(UpToBA, BA)}.

%% What was not accepted cannot have been delivered.
trim(UpTo, #way{accepted = Accepted, delivered = Delivered, kept = Kept} = Way) ->
    case min(UpTo, Accepted) of
        To when To > Delivered -> Way#way{delivered = To, kept = drop(To - Delivered, Kept)};
        _ -> Way
    end.

drop(0, Kept) -> Kept;
drop(Count, Kept) -> drop(Count - 1, queue:drop(Kept)).

shown(#row{pid = Pid, inc = Inc, finishing = Finishing, ab = AB, ba = BA}) ->
    #{pid => Pid, inc => Inc, finishing => Finishing, ab => direction(AB), ba => direction(BA)}.

direction(#way{accepted = Accepted, delivered = Delivered, kept = Kept}) ->
    #{accepted => Accepted, delivered => Delivered, kept => queue:to_list(Kept)}.

%% @private
-spec rows(table()) -> [{im_plan:session(), row()}].
rows({Rows, _}) -> [{Session, shown(Row)} || {Session, Row} <- maps:to_list(Rows)].

%% @private
-spec pid(row()) -> pid().
pid(#{pid := Pid}) -> Pid.
