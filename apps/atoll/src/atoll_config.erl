%% @doc The configuration of the library: one typed map, made from the
%% application environment when the application starts, validated key by key, and
%% passed down as an argument. Nothing reads the environment later.
-module(atoll_config).

-export([new/1, link/1, link_options/2, group/1, format_error/1]).

-export_type([config/0, options/0, error/0]).

-type options() :: #{
    %% Pauses between two attempts to connect with a node that somebody wants:
    %% the first, and the longest.
    connect_retry_min => pos_integer(),
    connect_retry_max => pos_integer(),
    %% How long a connection that nobody wants any more stays open, and the
    %% longest pause between two looks at one that is still in use.
    linger => pos_integer(),
    linger_max => pos_integer(),
    %% How long one that nobody asked for (a program's send made it) stays after
    %% its last use. In a mesh nothing of the kind is closed.
    on_demand_linger => pos_integer() | infinity,
    %% How long a silent node can hold up a change of a group.
    group_answer_timeout => pos_integer(),
    %% How long a change of a group may wait for its turns, and then for its
    %% members to be ready.
    group_operation_timeout => pos_integer(),
    group_settle_timeout => pos_integer(),
    %% How often a member compares notes with another.
    group_gossip_interval => pos_integer(),
    %% Bounds: group operations of this node at once, of all nodes at this one at
    %% once, and deleted or left groups that are remembered.
    max_group_operations => pos_integer(),
    max_group_turns => pos_integer(),
    max_group_graves => pos_integer()
}.
%% Times are in milliseconds.

-opaque config() :: #{atom() => pos_integer() | infinity}.

-type error() :: {bad_option, Key :: term(), Why :: unknown | {not_positive_integer | not_positive_integer_or_infinity, term()}}.

%% The defaults, which are also the list of the known keys.
-define(DEFAULTS, #{
    connect_retry_min => 100,
    connect_retry_max => 2000,
    linger => 1000,
    linger_max => 30000,
    on_demand_linger => 60000,
    group_answer_timeout => 3000,
    group_operation_timeout => 10000,
    group_settle_timeout => 5000,
    group_gossip_interval => 2000,
    max_group_operations => 1000,
    max_group_turns => 4096,
    max_group_graves => 256
}).

%% @doc The configuration with these options, the others at their defaults.
-spec new([{atom(), term()}]) -> {ok, config()} | {error, error()}.
new(Options) ->
    new(Options, ?DEFAULTS).

new([], Config) ->
    {ok, Config};
new([{Key, Value} | Options], Config) ->
    case Config of
        #{Key := _} when is_integer(Value), Value > 0 -> new(Options, Config#{Key := Value});
        #{on_demand_linger := _} when Key =:= on_demand_linger, Value =:= infinity ->
            new(Options, Config#{Key := Value});
        #{on_demand_linger := _} when Key =:= on_demand_linger ->
            {error, {bad_option, Key, {not_positive_integer_or_infinity, Value}}};
        #{Key := _} -> {error, {bad_option, Key, {not_positive_integer, Value}}};
        #{} -> {error, {bad_option, Key, unknown}}
    end.

%% @doc What the link room is started with.
-spec link(config()) -> atoll_link_core:options().
link(Config) ->
    %% The kernel application has set it by the time that others start.
    link_options(Config, application:get_env(kernel, connect_all, true)).

%% @doc The same, on a node that does or does not connect with all others.
-spec link_options(config(), ConnectAll :: boolean()) -> atoll_link_core:options().
link_options(Config, true) ->
    link_options(Config#{on_demand_linger := infinity}, false);
link_options(Config, false) ->
    #{
        retry_min_ms => maps:get(connect_retry_min, Config),
        retry_max_ms => maps:get(connect_retry_max, Config),
        linger_ms => maps:get(linger, Config),
        linger_max_ms => maps:get(linger_max, Config),
        on_demand_ms => maps:get(on_demand_linger, Config)
    }.

%% @doc What the group room is started with.
-spec group(config()) -> atoll_group_core:options().
group(Config) ->
    #{
        answer_ms => maps:get(group_answer_timeout, Config),
        operation_ms => maps:get(group_operation_timeout, Config),
        settle_ms => maps:get(group_settle_timeout, Config),
        gossip_ms => maps:get(group_gossip_interval, Config),
        max_operations => maps:get(max_group_operations, Config),
        max_asks => maps:get(max_group_turns, Config),
        max_graves => maps:get(max_group_graves, Config)
    }.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({bad_option, Key, unknown}) ->
    io_lib:format("atoll has no option ~tw", [Key]);
format_error({bad_option, Key, {not_positive_integer, Value}}) ->
    io_lib:format("the option ~tw must be a whole number above 0, not ~tp", [Key, Value]);
format_error({bad_option, Key, {not_positive_integer_or_infinity, Value}}) ->
    io_lib:format("the option ~tw must be a whole number above 0, or infinity, not ~tp", [Key, Value]).
