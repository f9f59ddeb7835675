%% SPDX-License-Identifier: Apache-2.0
%% @doc The process that holds a wire: the owner of the port to its program.
%%
%% The program ends when its standard input does, so also when this process, or the VM,
%% is killed. This process ends with the owner, and waits until the program is gone. If
%% the program ends by itself it crashes, and says what the program said.
-module(atoll_wire_server).
-behaviour(gen_server).

-export([start/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {
    owner :: reference(),
    port :: port(),
    os_pid :: pos_integer(),
    ends :: [atoll_cluster_driver:host(), ...]
}).

%% The port mappers may take a while on a busy machine.
-define(READY_MS, 30000).
-define(ANSWER_MS, 5000).
-define(LINE_BYTES, 4096).
-define(EPMD_PORT, 4369).
%% What the program exits with where there can be no wire.
-define(UNABLE, 2).

%% @doc Starts it, and returns when the program is ready.
-spec start(pid(), file:filename(), file:filename(), [string()]) -> {ok, pid()} | {error, atoll_wire:error()}.
start(Owner, Program, Nsenter, Settings) ->
    case gen_server:start(?MODULE, {Owner, Program, Nsenter, Settings}, []) of
        {ok, Wire} -> {ok, Wire};
        {error, {shutdown, Error}} -> {error, Error}
    end.

%% @private
-spec init({pid(), file:filename(), file:filename(), [string()]}) ->
    {ok, #state{}} | {stop, {shutdown, atoll_wire:error()}}.
init({Owner, Program, Nsenter, Settings}) ->
    case atoll_cluster_epmd:executable() of
        false ->
            {stop, {shutdown, {lacks, "epmd"}}};
        Epmd ->
            Port = open_port({spawn_executable, Program}, [
                {args, Settings ++ [lists:concat(["run=", epmd_port(), ":", Epmd])]},
                %% All that is in an end may ask its port mapper.
                {env, [{"ERL_EPMD_ADDRESS", false}]},
                {line, ?LINE_BYTES}, exit_status, stderr_to_stdout, binary, hide
            ]),
            case ready(Port, <<>>) of
                {ok, Ends} ->
                    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
                    Hosts = [
                        #{address => Address, wrap => [Nsenter, lists:concat(["--net=/proc/", OsPid, "/fd/", Fd])]}
                     || {Fd, Address} <- Ends
                    ],
                    {ok, #state{owner = monitor(process, Owner), port = Port, os_pid = OsPid, ends = Hosts}};
                {error, Error} ->
                    {stop, {shutdown, Error}}
            end
    end.

%% As the nodes find it.
epmd_port() ->
    case os:getenv("ERL_EPMD_PORT") of
        false -> ?EPMD_PORT;
        Text -> list_to_integer(Text)
    end.

ready(Port, Said) ->
    receive
        {Port, {data, {eol, <<"ready ", Line/binary>>}}} ->
            [Fd1, Address1, Fd2, Address2] = string:lexemes(binary_to_list(Line), " "),
            {ok, [{Fd, address(Text)} || {Fd, Text} <- [{Fd1, Address1}, {Fd2, Address2}]]};
        {Port, {data, {_, Line}}} ->
            ready(Port, Line);
        {Port, {exit_status, ?UNABLE}} ->
            {error, {unable, Said}};
        {Port, {exit_status, Status}} when Said =:= <<>> ->
            {error, {failed, iolist_to_binary(io_lib:format("The wire ended with status ~b.", [Status]))}};
        {Port, {exit_status, _}} ->
            {error, {failed, Said}}
    after ?READY_MS ->
        {error, late}
    end.

address(Text) ->
    {ok, Address} = inet:parse_ipv4_address(Text),
    Address.

%% @private
-spec handle_call(Request, gen_server:from(), #state{}) ->
    {reply, term(), #state{}} | {stop, normal, ok, #state{}}
when
    Request :: ends | os_pid | counters | stop | {set, [string()]}.
handle_call(ends, _From, State) ->
    {reply, State#state.ends, State};
handle_call(os_pid, _From, State) ->
    {reply, State#state.os_pid, State};
handle_call(counters, _From, State) ->
    <<"end 0 ", Line/binary>> = ask("counters", State),
    {reply, [counted(End) || End <- string:split(Line, " end 1 ")], State};
handle_call({set, Settings}, _From, State) ->
    %% They were checked: the program refuses none.
    _ = [<<"ok">> = ask(Setting, State) || Setting <- Settings],
    {reply, ok, State};
handle_call(stop, _From, State) ->
    ok = quit(State),
    {stop, normal, ok, State}.

%% @private
-spec handle_cast(term(), #state{}) -> {stop, term(), #state{}}.
handle_cast(Request, State) ->
    {stop, {unknown_cast, Request}, State}.

%% @private
-spec handle_info(Message, #state{}) -> {stop, term(), #state{}} when
    Message :: {'DOWN', reference(), process, pid(), term()} | {port(), {data, term()} | {exit_status, integer()}}.
handle_info({'DOWN', Owner, process, _, _}, #state{owner = Owner} = State) ->
    ok = quit(State),
    {stop, normal, State};
handle_info({Port, {data, {_, Said}}}, #state{port = Port} = State) ->
    %% Unasked it says only why it ends.
    {stop, {wire_ended, Said}, State};
handle_info({Port, {exit_status, Status}}, #state{port = Port} = State) ->
    {stop, {wire_ended, Status}, State}.

ask(Line, #state{port = Port}) ->
    true = port_command(Port, [Line, $\n]),
    receive
        {Port, {data, {eol, Answer}}} -> Answer;
        {Port, {exit_status, Status}} -> exit({wire_ended, Status})
    after ?ANSWER_MS -> exit(wire_silent)
    end.

quit(#state{port = Port}) ->
    true = port_command(Port, "quit\n"),
    receive
        {Port, {exit_status, _}} -> ok
    after ?ANSWER_MS -> exit(wire_silent)
    end.

counted(Text) ->
    counted(binary:split(Text, <<" ">>, [global]), #{}).

counted([], Counters) -> Counters;
counted([Name, Value | More], Counters) -> counted(More, Counters#{counter(Name) => binary_to_integer(Value)}).

counter(<<"taken">>) -> taken;
counter(<<"taken_bytes">>) -> taken_bytes;
counter(<<"given">>) -> given;
counter(<<"given_bytes">>) -> given_bytes;
counter(<<"lost">>) -> lost;
counter(<<"full">>) -> full;
counter(<<"crowded">>) -> crowded;
counter(<<"strange">>) -> strange;
counter(<<"refused">>) -> refused;
counter(<<"unread">>) -> unread;
counter(<<"late_us">>) -> late_us;
counter(<<"late_max_us">>) -> late_max_us;
counter(<<"held_max_bytes">>) -> held_max_bytes.
