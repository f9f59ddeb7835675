%% SPDX-License-Identifier: Apache-2.0
%% @doc The plugin of Tsung for sessions whose requests call functions of nodes. It is compiled with
%% the include files of the Tsung that is installed, when a scenario is run: its records are Tsung's.
%% What a request means, and does, is in {@link atoll_tsung_rpc}.
-module(ts_rpc).
-behaviour(ts_plugin).

-include("ts_profile.hrl").
-include("ts_config.hrl").
-include_lib("xmerl/include/xmerl.hrl").

-export([session_defaults/0, new_session/0, parse_config/2, add_dynparams/4, get_message/2]).
-export([parse/2, parse_bidi/2, decode_buffer/2, dump/2]).

%% @private Whether a connection is kept from one request of a user to the next.
-spec session_defaults() -> {ok, true}.
session_defaults() -> {ok, true}.

%% @private A user has no state of its own.
-spec new_session() -> none.
new_session() -> none.

%% @private A request of the scenario, put where Tsung's users find it. What is wrong ends the run.
-spec parse_config(#xmlElement{} | term(), #config{}) -> #config{}.
parse_config(#xmlElement{name = rpc, attributes = Given, content = Content}, Config) ->
    #config{curid = Id, session_tab = Tab, sessions = [Session | _], subst = Subst, match = Match, dynvar = Variables} = Config,
    Keep = not lists:member(Match, [undefined, []]) orelse not lists:member(Variables, [undefined, []]),
    case atoll_tsung_rpc:read([{atom_to_list(Name), Value} || #xmlAttribute{name = Name, value = Value} <- Given], Subst =:= true, Keep) of
        {ok, Request} ->
            _ = ts_config:mark_prev_req(Id - 1, Tab, Session),
            true = ets:insert(Tab, {
                {Session#session.id, Id},
                #ts_request{ack = parse, endpage = true, dynvar_specs = Variables, subst = Subst, match = Match, param = Request}
            }),
            lists:foldl(fun ts_config:parse/2, Config#config{dynvar = []}, Content);
        {error, {_, Sentence}} ->
            exit({error, lists:flatten(Sentence)})
    end;
parse_config(#xmlElement{} = Element, Config) ->
    ts_config:parse(Element, Config);
parse_config(_, Config) ->
    Config.

%% @private The request with the values of its variables.
-spec add_dynparams(Subst :: boolean(), {Variables :: term(), Session :: term()}, atoll_tsung_rpc:request(), Host :: term()) -> atoll_tsung_rpc:request().
add_dynparams(true, {Variables, _Session}, Request, _Host) ->
    atoll_tsung_rpc:subst(Request, fun(Text) -> ts_search:subst(Text, Variables) end);
add_dynparams(_, _, Request, _Host) ->
    Request.

%% @private What Tsung's transport `erlang' calls.
-spec get_message(atoll_tsung_rpc:request(), #state_rcv{}) -> {term(), Session :: term()}.
get_message(Request, #state_rcv{session = Session}) ->
    {atoll_tsung_rpc:message(Request), Session}.

%% @private An answer is whole, and is counted.
-spec parse({module(), atom(), [term()], atoll_tsung_rpc:answer()}, #state_rcv{}) -> {#state_rcv{}, [], false}.
parse({_, _, _, Answer}, State) ->
    {Bytes, Counters} = atoll_tsung_rpc:outcome(Answer),
    _ = [ts_mon_cache:add({count, Counter}) || Counter <- Counters],
    {State#state_rcv{ack_done = true, datasize = Bytes}, [], false}.

%% @private Nothing comes by itself.
-spec parse_bidi(term(), #state_rcv{}) -> {nodata | term(), #state_rcv{}, think | continue}.
parse_bidi(Data, State) -> ts_plugin:parse_bidi(Data, State).

%% @private An answer as text, in which Tsung looks for variables.
-spec decode_buffer(binary(), Session :: term()) -> binary().
decode_buffer(Buffer, _Session) -> atoll_tsung_rpc:text(Buffer).

%% @private For Tsung's own log of requests.
-spec dump(atom(), term()) -> ok | term().
dump(Type, Data) -> ts_plugin:dump(Type, Data).
