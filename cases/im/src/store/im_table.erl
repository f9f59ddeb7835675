%% SPDX-License-Identifier: Apache-2.0
%% @doc A table that is kept in two copies ({@link im_replica}), as a behaviour.
%%
%% An operation is applied on each copy in turn. So what becomes of it hangs on the table and on
%% the operation alone, never on a clock, on the node or on chance. An operation may come twice, as its
%% answer may be lost with the first copy: the second time it must change nothing, and answer
%% as the first time.
-module(im_table).

-export_type([table/0, op/0, reply/0, limits/0]).

-type table() :: term().
-type op() :: term().
-type reply() :: term().

%% Of the plan, so the same on all nodes.
-type limits() :: #{max_sessions := pos_integer(), away_messages := pos_integer()}.

-callback new(limits()) -> table().

%% What has changed nothing is not sent to the other copy.
-callback apply(op(), table()) -> {reply(), table()} | {reply(), unchanged}.

%% All rows, as others see them.
-callback rows(table()) -> [{Key :: term(), Row :: map()}].

%% The process that serves a row: the client monitor, or the session.
-callback pid(Row :: map()) -> pid().
