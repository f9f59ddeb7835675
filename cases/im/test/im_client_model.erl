%% SPDX-License-Identifier: Apache-2.0
%% @doc Two clients, pure, and a made-up server between them: what is said goes over queues, of which a step takes
%% one message on. Sessions die and are started again, connections break, clients are killed and go on
%% with what their owners know, messages come twice.
%%
%% The server keeps a row as the real ones do; it accepts a message only from the client process that greeted it last.
-module(im_client_model).

-export([new/1, step/2, settle/1, faults/1, said/2, told/2, done/2, ended/1]).

-export_type([step/0, side/0]).

-type side() :: a | b.

-type step() ::
    {say, side()}
    %% so many messages of a queue
    | {up | down, side(), pos_integer()}
    %% the next one comes twice
    | {twice, side()}
    | {pass, pos_integer()}
    %% dies; and is there again at once, or when it is asked for
    | {kill_session, now | later}
    | {cut, side()}
    | {restart, side()}
    | finish_idle
    | {finish, side()}
    | {full, side(), boolean()}
    | {acknowledge, side()}.

%% Two clients that have a few messages to say are done after so many at the latest.
-define(MOVES, 3000).
-define(OTHER(Side), case Side of a -> b; b -> a end).

%% @doc Both are logged in. `resume' says whether the owners keep what is not done.
-spec new(resume | plain) -> map().
new(Kind) ->
    Owner = #{mark => none, said => 0, accepted => 0, received => 0, unaccepted => [], arriving => []},
    World = #{
        kind => Kind, now => 0, row => none, incs => 0, pids => 10, session => none, online => #{},
        up => #{a => [], b => []}, down => #{a => [], b => []}, full => #{a => false, b => false}, wake => #{a => infinity, b => infinity}, watches => #{a => [], b => []},
        said => #{a => [], b => []}, told => #{a => [], b => []}, sure => #{a => [], b => []}, unsure => #{a => [], b => []}, owner => #{a => Owner, b => Owner}, faults => [], ended => 0, count => 0
    },
    lists:foldl(fun started/2, World, [a, b]).

started(Side, #{kind := Kind, pids := Pids, owner := Owners} = W) ->
    #{mark := Mark, said := Said, accepted := Accepted, received := Received} = maps:get(Side, Owners),
    Resume = case Kind of
        plain -> none;
        resume when Mark =:= none, Said =:= Accepted -> #{};
        resume -> #{name(?OTHER(Side)) => #{mark => Mark, said => Said, accepted => Accepted, received => Received}}
    end,
    Core = im_client_core:new(name(Side), #{self => {client, Side, Pids}, routers => [{router_1, n}], resume => Resume}),
    event(Side, start, W#{pids := Pids + 1, {core, Side} => Core}).

name(a) -> <<"a">>;
name(b) -> <<"b">>.

side(<<"a">>) -> a;
side(<<"b">>) -> b.

%% @doc What was done wrong.
-spec faults(map()) -> [term()].
faults(#{faults := Faults}) -> Faults.

%% @doc What an owner has said, what it was told, and of what it said: what is certainly accepted.
-spec said(side(), map()) -> [binary()].
said(Side, #{said := Said}) -> lists:reverse(maps:get(Side, Said)).

-spec told(side(), map()) -> [binary()].
told(Side, #{told := Told}) -> lists:reverse(maps:get(Side, Told)).

-spec done(side(), map()) -> {Accepted :: [binary()], Unsure :: [binary()]}.
done(Side, #{sure := Sure, unsure := Unsure}) -> {lists:reverse(maps:get(Side, Sure)), lists:reverse(maps:get(Side, Unsure))}.

-spec ended(map()) -> non_neg_integer().
ended(#{ended := Ended}) -> Ended.

%% @doc One step.
-spec step(step(), map()) -> map().
step({say, Side}, #{count := Count, said := Said, owner := Owners} = W) ->
    Body = integer_to_binary(Count),
    #{said := Last, unaccepted := Unaccepted} = Owner = maps:get(Side, Owners),
    Next = W#{count := Count + 1, said := Said#{Side := [Body | maps:get(Side, Said)]},
              owner := Owners#{Side := Owner#{said := Last + 1, unaccepted := Unaccepted ++ [{Last + 1, Body}]}}},
    event(Side, {say, name(?OTHER(Side)), Last + 1, Body, none}, Next);
step({Way, Side, N}, W) when Way =:= up; Way =:= down -> lists:foldl(fun(_, Is) -> moved(Way, Side, Is) end, W, lists:seq(1, N));
step({twice, Side}, #{down := Down} = W) ->
    case maps:get(Side, Down) of
        [First | Rest] -> W#{down := Down#{Side := [First, First | Rest]}};
        [] -> W
    end;
step({pass, Ms}, #{now := Now} = W) -> lists:foldl(fun ticked/2, W#{now := Now + Ms}, [a, b]);
step({kill_session, _}, #{session := none} = W) -> W;
step({kill_session, When}, #{session := #{pid := Pid}} = W0) ->
    W = died(Pid, W0#{session := none}),
    case When of
        now -> tell_both(session_up(W));
        later -> W
    end;
step({cut, Side}, W) -> cut(Side, W);
step({restart, _}, #{kind := plain} = W) -> W;
step({restart, Side}, #{owner := Owners} = W0) ->
    W = W0#{owner := Owners#{Side := (maps:get(Side, Owners))#{arriving := []}}},
    resaid(Side, started(Side, cut(Side, W#{watches := (maps:get(watches, W))#{Side := []}, wake := (maps:get(wake, W))#{Side := infinity}})));
step(finish_idle, #{row := #{accepted := Same, delivered := Same}} = W) -> over(idle, W);
step(finish_idle, W) -> W;
step({finish, Side}, W) -> event(Side, {finish, name(?OTHER(Side))}, W);
step({full, Side, Is}, #{full := Full} = W) -> W#{full := Full#{Side := Is}};
step({acknowledge, Side}, #{kind := resume} = W0) ->
    #{owner := Owners} = W = arrived(Side, W0),
    #{received := Received} = maps:get(Side, Owners),
    event(Side, flush, event(Side, {received, name(?OTHER(Side)), Received}, W));
step({acknowledge, Side}, W) -> event(Side, flush, W).

%% The owner has lost its connection, and says again what it does not know to be accepted.
resaid(Side, #{owner := Owners} = W) ->
    #{unaccepted := Unaccepted} = maps:get(Side, Owners),
    lists:foldl(fun({Seq, Body}, Is) -> event(Side, {say, name(?OTHER(Side)), Seq, Body, none}, Is) end, W, Unaccepted).

%% @doc All goes on without faults, until nothing moves.
-spec settle(map()) -> map().
settle(W) ->
    Whole = W#{full := #{a => false, b => false}},
    lists:foldl(
        fun(_, Is) -> step({pass, 3000}, lists:foldl(fun(Side, Was) -> step({acknowledge, Side}, drained(Side, Was)) end, Is, [a, b, a, b])) end,
        Whole, lists:seq(1, 12)).

drained(Side, W) -> drained(Side, ?MOVES, W).

drained(Side, 0, W) -> fault({without_end, Side}, W);
drained(Side, Moves, #{up := Up, down := Down} = W) ->
    case {maps:get(Side, Up), maps:get(Side, Down)} of
        {[], []} -> W;
        {[], _} -> drained(Side, Moves - 1, moved(down, Side, W));
        {_, _} -> drained(Side, Moves - 1, moved(up, Side, W))
    end.

ticked(Side, #{now := Now, wake := Wakes} = W) ->
    case maps:get(Side, Wakes) of
        At when At =< Now -> event(Side, tick, W#{wake := Wakes#{Side := infinity}});
        _ -> W
    end.

%% The clients

event(Side, Event, #{now := Now} = W) ->
    {Effects, Core} = im_client_core:handle(Event, Now, maps:get({core, Side}, W)),
    lists:foldl(fun(Effect, Is) -> effect(Side, Effect, Is) end, W#{{core, Side} := Core}, Effects).

effect(Side, {send, To, Message}, #{up := Up} = W) -> W#{up := Up#{Side := maps:get(Side, Up) ++ [{To, Message}]}};
effect(Side, {monitor, Pid}, #{watches := Watches, session := Session} = W) ->
    case {Pid, Session} of
        {{session, _}, #{pid := Pid}} -> W#{watches := Watches#{Side := [Pid | maps:get(Side, Watches)]}};
        {{session, _}, _} -> down(Side, {down, Pid}, W);
        {{monitor, _}, _} -> W#{watches := Watches#{Side := [Pid | maps:get(Side, Watches)]}}
    end;
effect(Side, {wake, At}, #{wake := Wakes} = W) -> W#{wake := Wakes#{Side := min(At, maps:get(Side, Wakes))}};
effect(_, {said, _, _, ok}, W) -> W;
effect(Side, {said, _, Seq, Why}, W) -> fault({not_said, Side, Seq, Why}, W);
effect(Side, {tell, Told}, #{owner := Owners} = W) -> owner(Told, Side, maps:get(Side, Owners), W).

owner({mark, _, Mark}, Side, Owner, W) -> put_owner(Side, Owner#{mark := Mark}, W);
%% An owner that keeps something has it when it says so: before that it may be lost on the way to it.
owner({message, _, Seq, Body, none}, Side, #{arriving := Arriving} = Owner, #{kind := Kind} = W) ->
    Is = put_owner(Side, Owner#{arriving := Arriving ++ [{Seq, Body}]}, W),
    case Kind of
        plain -> arrived(Side, Is);
        resume -> Is
    end;
owner({How, _, UpTo}, Side, Owner, W) when How =:= accepted; How =:= delivered -> taken(UpTo, sure, Side, Owner, W);
owner({refused, _, Seq, unsure}, Side, #{unaccepted := [{Seq, _} | _]} = Owner, W) -> taken(Seq, unsure, Side, Owner, W);
owner({refused, _, Seq, full}, Side, Owner, W) ->
    case [1 || {Is, _} <- maps:get(unaccepted, Owner), Is =:= Seq] of
        [1] -> W;
        [] -> fault({refused_and_accepted, Side, Seq}, W)
    end;
owner({refused, _, _, _} = Told, Side, _, W) -> fault({Side, Told}, W);
owner({ended, _, Why}, Side, Owner, #{ended := Ended} = W) when Why =:= idle; Why =:= finished; Why =:= expired ->
    put_owner(Side, Owner#{mark := none, received := 0}, W#{ended := Ended + 1});
owner({ended, _, _} = Told, Side, _, W) -> fault({Side, Told}, W);
owner(_, _, _, W) -> W.

arrived(Side, #{owner := Owners} = W) ->
    #{arriving := Arriving} = Owner = maps:get(Side, Owners),
    lists:foldl(fun({Seq, Body}, #{owner := Are, told := Told} = Is) ->
        #{received := Received} = Now = maps:get(Side, Are),
        Next = put_owner(Side, Now#{received := Seq}, Is#{told := Told#{Side := [Body | maps:get(Side, Told)]}}),
        case Seq =:= Received + 1 of
            true -> Next;
            false -> fault({number, Side, Seq, Received}, Next)
        end
    end, put_owner(Side, Owner#{arriving := []}, W), Arriving).

taken(UpTo, Which, Side, #{unaccepted := Unaccepted, accepted := Accepted} = Owner, W) ->
    {Now, Left} = lists:splitwith(fun({Seq, _}) -> Seq =< UpTo end, Unaccepted),
    #{Which := Are} = W,
    put_owner(Side, Owner#{unaccepted := Left, accepted := max(Accepted, UpTo)}, W#{Which := Are#{Side := lists:reverse([Body || {_, Body} <- Now]) ++ maps:get(Side, Are)}}).

put_owner(Side, Owner, #{owner := Owners} = W) -> W#{owner := Owners#{Side := Owner}}.

fault(Fault, #{faults := Faults} = W) -> W#{faults := [Fault | Faults]}.

%% The queues

moved(up, Side, #{up := Up} = W) ->
    case maps:get(Side, Up) of
        [{To, Message} | Rest] -> server(To, Message, Side, W#{up := Up#{Side := Rest}});
        [] -> W
    end;
moved(down, Side, #{down := Down} = W) ->
    case maps:get(Side, Down) of
        [Message | Rest] -> event(Side, Message, W#{down := Down#{Side := Rest}});
        [] -> W
    end.

down(Side, Message, #{down := Down} = W) -> W#{down := Down#{Side := maps:get(Side, Down) ++ [Message]}}.

%% All that was on the way is lost, and both ends hear of it.
cut(Side, #{up := Up, down := Down, watches := Watches} = W0) ->
    Pids = [Pid || {down, Pid} <- maps:get(Side, Down)] ++ maps:get(Side, Watches),
    Gone = lists:foldl(fun(Pid, Is) -> down(Side, {down, Pid}, Is) end, W0#{up := Up#{Side := []}, down := Down#{Side := []}, watches := Watches#{Side := []}}, Pids),
    not_ready(Side, Gone).

not_ready(Side, #{session := #{ready := Ready} = Session} = W) -> W#{session := Session#{ready := maps:remove(Side, Ready)}};
not_ready(_, W) -> W.

died(Pid, #{watches := Watches} = W) ->
    lists:foldl(fun(Side, Is) ->
        case lists:member(Pid, maps:get(Side, Watches)) of
            true -> down(Side, {down, Pid}, Is#{watches := (maps:get(watches, Is))#{Side := maps:get(Side, Watches) -- [Pid]}});
            false -> Is
        end
    end, W, [a, b]).

%% The server

server({router_1, n}, {im, login, Client, C}, Side, #{row := Row, online := Online, pids := Pids} = W) ->
    Sessions = [{<<"a">>, <<"b">>} || Row =/= none],
    Monitor = {monitor, Pids},
    Side = side(Client),
    down(Side, {im, login_success, Monitor, Sessions}, W#{online := Online#{Side => C}, pids := Pids + 1});
server({router_1, n}, {im, chat, _, _, _}, Side, #{row := none, incs := Incs} = W) ->
    Row = #{finishing => false, inc => Incs + 1, accepted => #{a => 0, b => 0}, delivered => #{a => 0, b => 0}, kept => #{a => [], b => []}},
    tell_session(Side, tell_both(session_up(W#{row := Row, incs := Incs + 1})));
server({router_1, n}, {im, open, Session, _, _}, Side, #{row := none, incs := Incs} = W) -> down(Side, {im, ended, Session, Incs + 1, expired}, W);
server({router_1, n}, _, Side, #{session := none} = W) -> tell_session(Side, session_up(W));
server({router_1, n}, _, Side, W) -> tell_session(Side, W);
server({monitor, _}, _, _, W) -> W;
server({session, _} = Pid, Message, Side, #{session := #{pid := Pid}, row := #{inc := Inc}} = W) when element(3, Message) =:= Inc -> session(Message, Side, W);
server({session, _}, _, _, W) -> W.

session_up(#{pids := Pids, row := #{}} = W) -> W#{session := #{pid => {session, Pids}, ready => #{}}, pids := Pids + 1};
session_up(W) -> W.

tell_both(#{session := none} = W) -> W;
tell_both(#{online := Online} = W) -> lists:foldl(fun tell_session/2, W, lists:sort(maps:keys(Online))).

tell_session(Side, #{session := #{pid := Pid}, row := #{inc := Inc, accepted := Accepted}} = W) ->
    down(Side, {im, session, {<<"a">>, <<"b">>}, Inc, Pid, maps:get(Side, Accepted), online}, W).

session({im, hello, _, _, C, Received}, Side, #{session := #{ready := Ready} = Session, row := #{delivered := Delivered}} = W) ->
    From = ?OTHER(Side),
    #{From := Before} = Delivered,
    Is = delivered(From, Received, W#{session := Session#{ready := Ready#{Side => C}}}),
    lists:foldl(fun(Message, Was) -> down(Side, Message, Was) end, Is, [message(From, Kept, Is) || {Seq, _} = Kept <- kept(From, Is), Seq > max(Before, Received)]);
session({im, say, _, _, _, _, _, _}, _, #{row := #{finishing := true}} = W) -> W;
session({im, say, Inc, _, Seq, Body, none, C}, Side, #{session := #{ready := Ready} = Session, row := #{accepted := Accepted, kept := Kept} = Row, full := Full} = W) ->
    #{Side := Last} = Accepted,
    To = ?OTHER(Side),
    case Ready of
        #{Side := C} when Seq =< Last -> down(Side, {im, accepted, {<<"a">>, <<"b">>}, Inc, Last}, W);
        #{Side := C} when Seq > Last + 1 -> not_ready(Side, tell_session(Side, W));
        #{Side := C} ->
            case Full of
                #{Side := true} -> not_ready(Side, down(Side, {im, refused, {<<"a">>, <<"b">>}, Inc, Seq, full}, W));
                #{} ->
                    Is = W#{session := Session, row := Row#{accepted := Accepted#{Side := Seq}, kept := Kept#{Side := maps:get(Side, Kept) ++ [{Seq, Body}]}}},
                    Told = down(Side, {im, accepted, {<<"a">>, <<"b">>}, Inc, Seq}, Is),
                    case Ready of
                        #{To := _} -> down(To, message(Side, {Seq, Body}, Told), Told);
                        #{} -> Told
                    end
            end;
        #{} -> W
    end;
session({im, received, _, _, UpTo}, Side, W) -> delivered(?OTHER(Side), UpTo, W);
session({im, finish, _, _}, _, #{row := Row} = W) -> finished(W#{row := Row#{finishing := true}}).

%% It ends when all is delivered, and accepts nothing meanwhile.
finished(#{row := #{finishing := true, accepted := Same, delivered := Same}} = W) -> over(finished, W);
finished(W) -> W.

message(From, {Seq, Body}, #{row := #{inc := Inc}}) -> {im, message, {<<"a">>, <<"b">>}, Inc, name(From), Seq, Body, none}.

kept(_, #{row := none}) -> [];
kept(From, #{row := #{kept := Kept}}) -> maps:get(From, Kept).

delivered(From, UpTo, #{row := #{inc := Inc, delivered := Delivered, kept := Kept} = Row} = W) ->
    case Delivered of
        #{From := Before} when UpTo > Before ->
            Is = W#{row := Row#{delivered := Delivered#{From := UpTo}, kept := Kept#{From := [Is || {Seq, _} = Is <- maps:get(From, Kept), Seq > UpTo]}}},
            finished(down(From, {im, delivered, {<<"a">>, <<"b">>}, Inc, UpTo}, Is));
        #{} -> W
    end.

over(Why, #{row := #{inc := Inc}, session := Session, online := Online} = W) ->
    Told = case Session of
        none -> W;
        #{} -> lists:foldl(fun(Side, Is) -> down(Side, {im, ended, {<<"a">>, <<"b">>}, Inc, Why}, Is) end, W, lists:sort(maps:keys(Online)))
    end,
    Gone = Told#{row := none, session := none},
    case Session of
        #{pid := Pid} -> died(Pid, Gone);
        none -> Gone
    end.
