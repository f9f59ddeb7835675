%% SPDX-License-Identifier: Apache-2.0
%% @doc The provisioning service: subscribers of a mobile network, kept in a database.
%%
%% It is the same over any store, a module of {@link subscribers_store}; which one, and how, the settings of the application
%% say ({@link subscribers_options}).
%%
%% Promised: what {@link put/1} has answered with `ok' is kept as the store's settings say. At most so many callers are
%% within at once (`callers'): one more is refused at once. With MySQL nobody waits longer than `wait_ms' for a connection
%% and `query_ms' for an answer. Each error has one sentence. While the database is away callers are
%% told so; a few seconds after it is back the service is whole, and nobody has to do anything.
%%
%% Not promised: that what was answered with an error was not done. A connection may be lost after the database
%% has done it. Whoever is told so asks again: both writing and deleting may be done twice.
-module(subscribers).
-compile({no_auto_import, [get/1]}).

-export([put/1, get/1, delete/1, count/0, write/1, read/1, status/0, format_error/1]).

-export_type([msisdn/0, subscriber/0, error/0, counts/0, status/0]).

-type msisdn() :: 1..999_999_999_999_999.
%% The telephone number, the key: 15 digits at most, as E.164 has it.

-type subscriber() :: #{
    msisdn := msisdn(),
    %% of the card, and of the device that it was last seen in: 15 digits at most each
    imsi := binary(),
    imei := binary(),
    %% What the device is called, 64 bytes at most, and what it was last configured with, 1,024 at most.
    device := binary(),
    settings := binary(),
    %% seconds since 1970
    updated := non_neg_integer()
}.

-type error() ::
    %% As many callers as there may be are within.
    {overloaded, Callers :: pos_integer()}
    %% All connections are in use.
    | {no_connection_free, WaitedMs :: pos_integer()}
    %% The connection is lost, and being made again.
    | disconnected
    | {timed_out, Ms :: pos_integer()}
    %% What the database complains of.
    | {database, binary()}
    %% In a partition, not more than half of the copies are here.
    | no_majority
    %% Mnesia does not run here, or loads the table.
    | no_table
    | {bad_subscriber, Key :: term(), Must :: string()}
    | not_started.

-type counts() :: #{
    %% callers that were refused, or had an error of that kind, since the start
    overloaded | no_connection_free | disconnected | timed_out | failed | no_majority := non_neg_integer(),
    %% connections that were lost, and made
    lost | connected := non_neg_integer()
}.

-type status() :: #{
    store := mysql | mnesia,
    %% within, now
    callers := non_neg_integer(),
    counts := counts(),
    %% What the store says of itself.
    atom() => term()
}.

%% @doc Writes a subscriber, over the one of that number if there is one.
-spec put(subscriber()) -> ok | {error, error()}.
put(Subscriber) ->
    case subscribers_record:check(Subscriber) of
        ok -> ask(fun(Store, Options) -> Store:put(Subscriber, Options) end);
        {error, _} = Error -> Error
    end.

%% @doc The subscriber of a number.
-spec get(msisdn()) -> {ok, subscriber()} | not_found | {error, error()}.
get(Msisdn) ->
    of_a_number(Msisdn, fun(Store, Options) -> Store:get(Msisdn, Options) end).

%% @doc Forgets the subscriber of a number, if there is one.
-spec delete(msisdn()) -> ok | {error, error()}.
delete(Msisdn) ->
    of_a_number(Msisdn, fun(Store, Options) -> Store:delete(Msisdn, Options) end).

%% @doc How many there are.
-spec count() -> {ok, non_neg_integer()} | {error, error()}.
count() -> ask(fun(Store, Options) -> Store:count(Options) end).

of_a_number(Msisdn, Fun) ->
    case subscribers_record:is_msisdn(Msisdn) of
        true -> ask(Fun);
        false -> {error, {bad_subscriber, msisdn, subscribers_record:must(msisdn)}}
    end.

%% @doc A request of the thesis: writes so many subscribers of random numbers, one after the other. Ends with the
%% first error.
-spec write(pos_integer()) -> ok | {error, error()}.
write(N) -> times(N, fun() -> put(subscribers_record:random(range())) end).

%% @doc The same of reading. A number that nobody has was looked for as well.
-spec read(pos_integer()) -> ok | {error, error()}.
read(N) ->
    times(N, fun() ->
        case get(rand:uniform(range())) of
            {ok, _} -> ok;
            not_found -> ok;
            {error, _} = Error -> Error
        end
    end).

times(0, _) -> ok;
times(N, Fun) ->
    case Fun() of
        ok -> times(N - 1, Fun);
        {error, _} = Error -> Error
    end.

range() ->
    case subscribers_options:installed() of
        {_, #{range := Range}} -> Range;
        %% It is told by the first operation.
        none -> 1
    end.

%% The one place where a store is asked: the bound, and what is counted.
ask(Fun) ->
    case subscribers_options:installed() of
        {Store, Options} ->
            case subscribers_gate:enter() of
                ok ->
                    try
                        counted(Fun(Store, Options))
                    after
                        subscribers_gate:leave()
                    end;
                {full, Callers} ->
                    counted({error, {overloaded, Callers}});
                %% The application ends.
                none ->
                    {error, not_started}
            end;
        none ->
            {error, not_started}
    end.

counted({error, Error} = Answer) ->
    ok = subscribers_gate:count(kind(Error)),
    Answer;
counted(Answer) ->
    Answer.

kind({database, _}) -> failed;
kind(no_table) -> disconnected;
kind(Error) when is_tuple(Error) -> element(1, Error);
kind(Error) -> Error.

%% @doc What this node's service says of itself.
-spec status() -> {ok, status()} | {error, not_started}.
status() ->
    case {subscribers_options:installed(), subscribers_gate:within()} of
        {{Store, #{store := Kind} = Options}, Callers} when is_integer(Callers) ->
            {ok, (Store:status(Options))#{store => Kind, callers => Callers, counts => subscribers_gate:counts()}};
        _ ->
            {error, not_started}
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({overloaded, Callers}) ->
    io_lib:format("The service has ~b callers, and takes no more.", [Callers]);
format_error({no_connection_free, Ms}) ->
    io_lib:format("All connections with the database have been in use for ~b ms.", [Ms]);
format_error(disconnected) ->
    "The database cannot be reached; the service tries again by itself.";
format_error({timed_out, Ms}) ->
    io_lib:format("The database has not answered for ~b ms.", [Ms]);
format_error({database, Said}) ->
    ["The database refuses: ", Said, "."];
format_error(no_majority) ->
    "Not more than half of the table's copies can be reached, so nothing is written.";
format_error(no_table) ->
    "The table is not there yet, or no longer: Mnesia is starting, or has stopped.";
format_error({bad_subscriber, Key, Must}) ->
    io_lib:format("~0tp of a subscriber ~ts.", [Key, Must]);
format_error(not_started) ->
    "The service is not started on this node.".
