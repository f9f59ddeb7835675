%% SPDX-License-Identifier: Apache-2.0
%% @doc What makes a load at a level: a module of this behaviour, named in the description of a service
%% as `{load, {driver, Module, Options}}'. It knows of the service only what its clients know.
%%
%% It runs in the program that measures, in a process of its own, which is killed if it takes much longer than it was told.
-module(atoll_scale_driver).

-export_type([load/0]).

%% What came of a load. A request is what the driver counts: an answer, a connection, a session.
-type load() :: #{
    requests := non_neg_integer(),
    failures := non_neg_integer(),
    %% Connections that the service has refused.
    refused => non_neg_integer(),
    %% Times of requests, in milliseconds.
    p50_ms => number(),
    p99_ms => number(),
    per_second => number(),
    %% Why requests failed: words, those of inet where there is one, such as `<<"eaddrnotavail">>'.
    reasons => #{binary() => pos_integer()}
}.

%% What is wrong with the options, before anything is started.
-callback check(Options :: map()) -> ok | {error, Sentence :: unicode:chardata()}.

%% Loads the service at a level for so many seconds.
-callback run(Level :: pos_integer(), Seconds :: pos_integer(), Options :: map()) ->
    {ok, load()} | {error, Sentence :: unicode:chardata()}.
