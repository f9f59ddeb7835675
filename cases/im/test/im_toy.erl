%% SPDX-License-Identifier: Apache-2.0
%% @doc A messenger in one process of this node, which speaks with clients as the real one does, and
%% breaks its promise when it is told to. For tests of the traffic, which must find it out.
%%
%% Clients ask the router `router_1' of this node (`routers_per_node' 1).
-module(im_toy).

-export([start_link/1]).

-export_type([fault/0]).

-type fault() ::
    none
    %% One of so many messages is accepted and thrown away; the later ones take its number.
    | {lose, pos_integer()}
    %% It is told once more, with the next number.
    | {repeat, pos_integer()}
    %% It is told after the next one.
    | {swap, pos_integer()}
    %% Its first letter is another.
    | {alter, pos_integer()}
    %% A name is given to everybody who asks.
    | generous.

-record(side, {client, said = 0, told = 0, heard = 0, held = none}).

%% @doc It ends with the caller.
-spec start_link(fault()) -> pid().
start_link(Fault) ->
    Pid = proc_lib:spawn_link(fun() -> receive go -> serve(#{fault => Fault, count => 0, inc => 0, finishing => #{}, names => #{}, sessions => #{}, going => #{}}) end end),
    true = register(router_1, Pid),
    Pid ! go,
    Pid.

serve(State) ->
    receive
        stop -> ok;
        Message -> serve(handle(Message, State))
    end.

handle({im, login, Client, C}, #{names := Names, fault := Fault} = State) ->
    case Names of
        #{Client := Other} when Other =/= C, Fault =/= generous ->
            C ! {im, login_error, already_logged_in},
            State;
        #{} ->
            C ! {im, login_success, self(), []},
            State#{names := Names#{Client => C}}
    end;
handle({im, logout, Client, C}, #{names := Names} = State) ->
    C ! {im, logged_out},
    State#{names := maps:filter(fun(Name, Pid) -> {Name, Pid} =/= {Client, C} end, Names)};
handle({im, chat, From, To, C}, #{names := Names, inc := Inc, sessions := Sessions, going := Going} = State) ->
    Session = {min(From, To), max(From, To)},
    case {is_map_key(To, Names), is_map_key(Session, Going)} of
        {false, _} ->
            C ! {im, chat_error, To, receiver_not_found},
            State;
        {true, true} ->
            State;
        {true, false} ->
            _ = [P ! {im, session, Session, Inc + 1, self(), 0, online} || P <- [C, map_get(To, Names)]],
            Sides = #{From => {To, #side{client = C}}, To => {From, #side{client = map_get(To, Names)}}},
            State#{inc := Inc + 1, sessions := Sessions#{Inc + 1 => {Session, Sides}}, going := Going#{Session => []}}
    end;
handle({im, say, Inc, From, Seq, Body, Meta, _C}, #{sessions := Sessions, fault := Fault, count := Count0} = State) when is_map_key(Inc, Sessions) ->
    {Session, #{From := {To, Side0}} = Sides} = map_get(Inc, Sessions),
    Count = Count0 + 1,
    Hits = case Fault of {_, Each} -> Count rem Each =:= 0; _ -> false end,
    {Bodies, Held} = told(Hits, Fault, Body, Side0#side.held),
    #{To := {From, #side{client = Peer}}} = Sides,
    #side{client = Sender, told = Told} = Side0,
    Sender ! {im, accepted, Session, Inc, Seq},
    _ = [Peer ! {im, message, Session, Inc, From, N, B, Meta} || {N, B} <- lists:zip(lists:seq(Told + 1, Told + length(Bodies)), Bodies)],
    Side = Side0#side{said = Seq, told = Told + length(Bodies), held = Held},
    %% What is held back, and never followed by another one, would stop a dialogue.
    State#{count := Count, sessions := Sessions#{Inc := {Session, Sides#{From := {To, Side}}}}};
handle({im, received, Inc, Client, UpTo}, #{sessions := Sessions} = State) ->
    case Sessions of
        #{Inc := {Session, #{Client := {Peer, _}} = Sides}} ->
            #{Peer := {Client, #side{client = C, said = Said, told = Told} = Side}} = Sides,
            %% Who has received all that was told has received all that was said, as it seems.
            Heard = case UpTo of Told -> Said; _ -> min(UpTo, Said) end,
            C ! {im, delivered, Session, Inc, Heard},
            ended(Inc, State#{sessions := Sessions#{Inc := {Session, Sides#{Peer := {Client, Side#side{heard = Heard}}}}}});
        #{} ->
            State
    end;
handle({im, finish, Inc, _Client}, #{finishing := Finishing} = State) ->
    ended(Inc, State#{finishing := Finishing#{Inc => []}});
handle({im, say, _, _, _, _, _, _}, State) ->
    State;
handle({im, open, _, _, _}, State) ->
    State;
handle({im, hello, _, _, _, _}, State) ->
    State.

%% When all that was told was received.
ended(Inc, #{sessions := Sessions, finishing := Finishing} = State) ->
    case Sessions of
        #{Inc := {Session, Sides}} when is_map_key(Inc, Finishing) ->
            case [S || {_, #side{said = Said, told = Told, heard = Heard} = S} <- maps:values(Sides), Told > 0, Heard < Said] of
                [] ->
                    _ = [C ! {im, ended, Session, Inc, finished} || {_, #side{client = C}} <- maps:values(Sides)],
                    State#{sessions := maps:remove(Inc, Sessions), going := maps:remove(Session, map_get(going, State))};
                _ ->
                    State
            end;
        #{} ->
            State
    end.

%% What is told of what was said, and what is held back.
told(true, {lose, _}, _, Held) -> {[], Held};
told(true, {repeat, _}, Body, Held) -> {[Body, Body], Held};
told(true, {alter, _}, Body, Held) -> {[<<(binary:part(Body, 0, byte_size(Body) - 1))/binary, "!">>], Held};
told(true, {swap, _}, Body, none) -> {[], Body};
told(_, _, Body, none) -> {[Body], none};
told(_, _, Body, Held) -> {[Body, Held], none}.
