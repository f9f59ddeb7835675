%% SPDX-License-Identifier: Apache-2.0
%% @doc What a run of traffic ({@link im_traffic}) can be told, and what follows from it for the
%% client nodes. Pure.
-module(im_traffic_options).

-export([new/1, settings/2, csv/1, format_error/1]).

-export_type([asked/0, options/0, error/0]).

-type asked() :: #{
    client_nodes := [node(), ...],
    routers := [node(), ...],
    clients := pos_integer(),
    mode := paper | closed | open,
    %% That are measured; before them so many of load that is not (1000).
    ms := pos_integer(),
    ramp_ms => non_neg_integer(),
    %% Half of the clients, rounded up.
    conversations => non_neg_integer(),
    time_scale => number(),
    %% Messages under way in a conversation: in a closed loop 1, in an open one 64.
    window => 1..64,
    %% Messages of a chain, 13 to 60.
    messages => {pos_integer(), pos_integer()},
    %% Of an open loop: messages in a second, in time evenly or as they come (poisson).
    rate => number(),
    arrivals => even | poisson,
    %% How many clients of a node may wait for their login at once (100), and how many a second try
    %% to log in under a name that somebody has (0).
    logins => pos_integer(),
    rivals => number(),
    %% For the quality of service (10,000).
    threshold_us => pos_integer(),
    %% Until all are logged in (300,000), and until all conversations are finished (30,000).
    login_ms => pos_integer(),
    drain_ms => pos_integer(),
    routers_per_node => pos_integer(),
    %% The paper's files, with what they are called after, in windows that begin with the measured time.
    log => #{dir := file:filename(), technology := string(), servers := pos_integer(), seconds := pos_integer(), trials := pos_integer(), latency => boolean()},
    seed => integer()
}.

-type options() :: #{atom() => term()}.
%% The same, with all that was not said.

-type error() :: {option, Key :: term(), Must :: string()}.

%% @doc The options with all that was not said.
-spec new(asked()) -> {ok, options()} | {error, error()}.
new(Asked) ->
    try
        {ok, checked(Asked)}
    catch
        throw:{option, _, _} = Error -> {error, Error}
    end.

-spec bad(Key :: term(), Must :: string()) -> no_return().
bad(Key, Must) -> throw({option, Key, Must}).

checked(Asked) when is_map(Asked) ->
    Keys = keys(),
    _ = [bad(Key, "is not known") || Key <- maps:keys(Asked), not lists:keymember(Key, 1, Keys)],
    _ = [bad(Key, Must) || {Key, Must, Is} <- Keys, #{Key := Value} <- [Asked], not Is(Value)],
    _ = [bad(Key, Must) || {Key, Must, _} <- Keys, lists:member(Key, [client_nodes, routers, clients, mode, ms]), not is_map_key(Key, Asked)],
    #{mode := Mode, clients := Clients} = Asked,
    %% One too many would be looked for again and again.
    _ = [bad(conversations, "must not be more than there are pairs of clients") || #{conversations := N} <- [Asked], N > im_traffic_pairs:count(Clients)],
    _ = [bad(rate, "is how many messages begin in a second in the mode open, and in no other") || (Mode =:= open) =/= is_map_key(rate, Asked)],
    _ = [bad(Key, "is for the mode paper") || Key <- [time_scale], is_map_key(Key, Asked), Mode =/= paper],
    Window = case Mode of open -> 64; _ -> 1 end,
    Defaults = #{
        ramp_ms => 1000, conversations => (Clients + 1) div 2, time_scale => 1, window => Window, messages => {13, 60}, rate => none,
        arrivals => poisson, logins => 100, rivals => 0, threshold_us => 10000, login_ms => 300000, drain_ms => 30000,
        routers_per_node => 4, seed => 1
    },
    maps:merge(Defaults, Asked);
checked(_) ->
    bad(options, "must be a map").

keys() ->
    Positive = fun(N) -> is_integer(N) andalso N > 0 end,
    From0 = fun(N) -> is_integer(N) andalso N >= 0 end,
    Above0 = fun(N) -> is_number(N) andalso N > 0 end,
    Nodes = fun(L) -> is_list(L) andalso L =/= [] andalso lists:all(fun is_atom/1, L) andalso length(lists:usort(L)) =:= length(L) end,
    Whole = "must be a whole number above 0",
    Ms = "must be a whole number of milliseconds above 0",
    [
        {client_nodes, "must be a list of nodes, each once", Nodes},
        {routers, "must be a list of router nodes, each once", Nodes},
        {clients, Whole, Positive},
        {mode, "must be paper, closed or open", fun(M) -> lists:member(M, [paper, closed, open]) end},
        {ms, Ms, Positive},
        {ramp_ms, "must be a whole number of milliseconds", From0},
        {conversations, "must be a whole number", From0},
        {time_scale, "must be a number above 0", Above0},
        {window, "must be a whole number from 1 to 64", fun(W) -> Positive(W) andalso W =< 64 end},
        {messages, "must be {From, To}, two whole numbers above 0, the second not the smaller one",
            fun({From, To}) -> Positive(From) andalso Positive(To) andalso From =< To; (_) -> false end},
        {rate, "must be a number above 0", Above0},
        {arrivals, "must be even or poisson", fun(A) -> lists:member(A, [even, poisson]) end},
        {logins, Whole, Positive},
        {rivals, "must be a number, 0 or more", fun(R) -> is_number(R) andalso R >= 0 end},
        {threshold_us, "must be a whole number of microseconds above 0", Positive},
        {login_ms, Ms, Positive},
        {drain_ms, Ms, Positive},
        {routers_per_node, Whole, Positive},
        {log, "must be a map with dir, technology, servers, seconds and trials, the last three whole numbers above 0, and latency, true or false, if wanted",
            fun
                (#{dir := Dir, technology := Technology, servers := Servers, seconds := Seconds, trials := Trials} = Log) ->
                    is_list(Dir) andalso is_list(Technology) andalso lists:all(Positive, [Servers, Seconds, Trials]) andalso
                        is_boolean(maps:get(latency, Log, false)) andalso
                        maps:keys(Log) -- [dir, technology, servers, seconds, trials, latency] =:= [];
                (_) ->
                    false
            end},
        {seed, "must be a whole number", fun is_integer/1}
    ].

%% @doc What a client node is told, but for its place.
-spec settings(Run :: pid(), options()) -> #{atom() => term()}.
settings(Run, #{mode := Mode} = Options) ->
    Messages = case Mode of open -> monologue; _ -> maps:get(messages, Options) end,
    Log = maps:get(log, Options, none),
    (maps:with([routers, routers_per_node, clients, conversations, rate, arrivals, logins, rivals, threshold_us, seed], Options))#{
        run => Run,
        messages => Messages,
        doped => #{think_ms => think(Options), window => maps:get(window, Options)},
        log => case Log of none -> none; _ -> #{dir => maps:get(dir, Log), latency => maps:get(latency, Log, false), run => csv(Options)} end
    }.

think(#{mode := paper, time_scale := Scale}) -> {round(1000 / Scale), round(20000 / Scale)};
think(_) -> {0, 0}.

%% @doc What the paper's files are called after.
-spec csv(options()) -> im_csv:run().
csv(#{log := Log, routers := Routers, clients := Clients, threshold_us := Threshold}) ->
    (maps:with([technology, servers, seconds, trials], Log))#{routers => length(Routers), clients => Clients, threshold_us => Threshold}.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({option, Key, Must}) -> io_lib:format("~0tp ~ts", [Key, Must]).
