%% SPDX-License-Identifier: Apache-2.0
%% @doc A database that keeps subscribers. {@link subscribers} bounds its callers, counts its errors and has checked
%% what it is given.
-module(subscribers_store).

%% What has to be there before the service starts; what is wrong is a sentence.
-callback start(subscribers_options:options()) -> ok | {error, unicode:chardata()}.

%% The processes that it needs.
-callback children(subscribers_options:options()) -> [supervisor:child_spec()].

-callback put(subscribers:subscriber(), subscribers_options:options()) -> ok | {error, subscribers:error()}.

-callback get(subscribers:msisdn(), subscribers_options:options()) ->
    {ok, subscribers:subscriber()} | not_found | {error, subscribers:error()}.

-callback delete(subscribers:msisdn(), subscribers_options:options()) -> ok | {error, subscribers:error()}.

-callback count(subscribers_options:options()) -> {ok, non_neg_integer()} | {error, subscribers:error()}.

%% Never fails: also when the database is away.
-callback status(subscribers_options:options()) -> #{atom() => term()}.

%% After the processes have ended.
-callback stop(subscribers_options:options()) -> ok.
