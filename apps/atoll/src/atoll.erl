%% SPDX-License-Identifier: Apache-2.0
%% @doc The public face of the library: what a user of a running node calls.
%%
%% The overlay (who is linked with whom, failure detection, broadcast) runs where the
%% application is configured to have one, see docs/configuration.md. Without it this
%% node is a member of nothing: `members/0' and `neighbours/0' are empty, and what
%% would change something answers `{error, overlay_off}'.
%%
%% == Events ==
%% A subscriber ({@link subscribe/1}) gets `{atoll, Kind, Details}':
%% <dl>
%% <dt>`member_up'</dt><dd>`#{node}': a node has joined the cluster, or a new life of
%%   one whose last life is over.</dd>
%% <dt>`member_down'</dt><dd>`#{node, reason}': it is `dead' (silent, or its VM
%%   ended), it has `left' in order, or this node's own overlay was `restarted' and
%%   does not know of it at the moment. The two alternate for each node.</dd>
%% <dt>`member_meta'</dt><dd>`#{node, meta}': what a member, or this node, says of itself
%%   from now on, see {@link set_meta/1}.</dd>
%% <dt>`neighbour_up', `neighbour_down'</dt><dd>`#{node}' and `#{node, reason}': this
%%   node holds a standing link with it, or no more (`lost', `dropped' in agreement,
%%   or `restarted').</dd>
%% <dt>`link_up', `link_down'</dt><dd>`#{node}' and `#{node, reason}': a connection,
%%   whoever made it. After a loss of the link room `link_up' comes again for those that
%%   stand.</dd>
%% <dt>`channel'</dt><dd>`#{node, channel}', every ten seconds for each channel of each connection
%%   that has any ({@link channel/1}): for what is measured of it.</dd>
%% <dt>`broadcast'</dt><dd>`#{topic, from, payload}', see {@link broadcast/2}. A
%%   subscription to `{broadcast, Topic}' is to that topic alone.</dd>
%% <dt>`missed'</dt><dd>`#{from, count}': so many broadcasts of that node cannot be had
%%   any more: those between the one before and the one after.</dd>
%% <dt>`suspect', `cleared'</dt><dd>`#{node}': a node that this one watches is silent;
%%   and is not, or is no longer for this node to judge.</dd>
%% <dt>`left'</dt><dd>`#{}': this node has left. From then on it is no member itself,
%%   and does not hear what becomes of the others.</dd>
%% <dt>`reborn'</dt><dd>`#{incarnation}': this node goes on in a new life: it has joined
%%   again, or the others held it for dead.</dd>
%% <dt>`discovery_failed'</dt><dd>`#{source, reason}': contacts could not be read from
%%   there.</dd>
%% <dt>`s_group_created', `s_group_deleted'</dt><dd>`#{group, nodes}': this node is in a
%%   group, and is no more, whoever made it, added or removed the node, or deleted the
%%   group; with its nodes then.</dd>
%% <dt>`s_group_node_added', `s_group_node_removed'</dt><dd>`#{group, node}': another node
%%   has come into a group of this node, or is no more in it.</dd>
%% <dt>`name_conflict'</dt><dd>`#{group, name, loser, winner}': two parts of a group met
%%   that had both given the name; the loser, a process of this node, has it no more. Where
%%   no one keeps it the winner is `none'.</dd>
%% <dt>`names_silent', `names_heard'</dt><dd>`#{node}': a node acknowledges nothing of what it
%%   is told of names, and is not waited for; it does again.</dd>
%% <dt>`misplaced'</dt><dd>`#{pid, node, where, values, watch}': the node of a process that this
%%   one has placed or watches does not meet its condition any more, see
%%   {@link atoll_place:watch/2}.</dd>
%% </dl>
%%
%% == Telemetry ==
%% Where `telemetry' is loaded, events go there too, as `[atoll, Kind]', with the details
%% as metadata. Measurements, for telemetry alone, are the `system_time' of each event, in
%% native units, and these:
%% <table>
%% <tr><th>kind</th><th>measured</th></tr>
%% <tr><td>`member_up'</td><td>`members', how many there are then, this one included</td></tr>
%% <tr><td>`member_down'</td><td>`members'; `duration_ms', how long it was one</td></tr>
%% <tr><td>`member_meta'</td><td>`bytes' of it in the external term format</td></tr>
%% <tr><td>`neighbour_up', `neighbour_down'</td><td>`neighbours'; `duration_ms'</td></tr>
%% <tr><td>`link_up', `link_down'</td><td>`links'; `duration_ms'</td></tr>
%% <tr><td>`channel'</td><td>`lanes', `packets' and `bytes' that this node has written since they are
%%   connected, `waiting' bytes, messages `dropped'</td></tr>
%% <tr><td>`broadcast'</td><td>`bytes' of the payload in the external term format</td></tr>
%% <tr><td>`missed'</td><td>`count'</td></tr>
%% <tr><td>`suspect', `cleared'</td><td>`silence_ms', how long this node has not heard it, or
%%   had not</td></tr>
%% <tr><td>`left'</td><td>`duration_ms' of this life in the overlay</td></tr>
%% <tr><td>`s_group_created', `s_group_deleted'</td><td>`nodes', how many</td></tr>
%% </table>
-module(atoll).

-export([version/0]).
-export([join/1, leave/0, members/0, members/1, set_meta/1, neighbours/0, broadcast/2, broadcast/3, tell/1]).
-export([route/1, reachable/0]).
-export([channel/1, send/3]).
-export([subscribe/1, unsubscribe/0, status/0, links/0, record/1]).
-export([format_error/1]).

-export_type([kind/0, route/0, error/0]).

-type kind() ::
    member_up
    | member_down
    | member_meta
    | neighbour_up
    | neighbour_down
    | link_up
    | link_down
    | channel
    | broadcast
    | {broadcast, Topic :: term()}
    | missed
    | suspect
    | cleared
    | left
    | reborn
    | discovery_failed
    | s_group_created
    | s_group_deleted
    | s_group_node_added
    | s_group_node_removed
    | name_conflict
    | names_silent
    | names_heard
    | misplaced.

-type route() :: #{
    %% From this node to the other one, both of them in it.
    path := [node(), ...],
    %% Why each two nodes of it that follow each other can talk: a group that both are in, or
    %% a link that one of them tells of; and how many nodes would have done as well
    %% in the place of the first one, itself among them.
    hops := [#{from := node(), to := node(), via := {group, s_group:name()} | link, choices := pos_integer()}],
    %% Other paths, the best first, three at most.
    alternatives := [[node(), ...]],
    %% What there is at this moment: no connection, one of its own, or one over these nodes,
    %% of which one that is no atom here stands as text.
    now := none | link | {relay, [node() | binary(), ...]}
}.

-type error() ::
    atoll_overlay:error()
    | atoll_handler:own_error()
    | atoll_route:error()
    | {not_a_node, term()}
    | {no_such_event, term()}
    | atoll_dist_send:error()
    | {bad_acknowledgement, term()}
    | not_recording
    | {not_a_folder, term()}
    %% The folder cannot be made, or a file in it not be written.
    | {folder, file:filename_all(), file:posix()}
    | {recording, atoll_recording:error()}.

%% The rooms with a protocol, and how large the recording of one may become.
-define(ROOMS, [
    {link, atoll_link}, {overlay, atoll_overlay}, {route, atoll_route}, {group, atoll_group}, {name, atoll_name},
    {attr, atoll_attr}, {distance, atoll_distance}, {place, atoll_place_watch}
]).
-define(MAX_RECORDING, 1 bsl 28).
%% How long acknowledgements are waited for, unless the caller says, and at most: a caller that is
%% gone takes the place of another for as long.
-define(ACK_MS, 5000).
-define(MAX_ACK_MS, 60000).
%% How many other paths a route is told with.
-define(ALTERNATIVES, 3).

-define(KINDS, [
    member_up,
    member_down,
    member_meta,
    neighbour_up,
    neighbour_down,
    link_up,
    link_down,
    channel,
    broadcast,
    missed,
    suspect,
    cleared,
    left,
    reborn,
    discovery_failed,
    s_group_created,
    s_group_deleted,
    s_group_node_added,
    s_group_node_removed,
    name_conflict,
    names_silent,
    names_heard,
    misplaced
]).

%% @doc The version of the running library, as `atoll.app' states it.
-spec version() -> string().
version() ->
    case application:load(atoll) of
        ok -> ok;
        {error, {already_loaded, atoll}} -> ok
    end,
    {ok, Vsn} = application:get_key(atoll, vsn),
    Vsn.

%% @doc Joins the cluster by any of these nodes, its contacts, and waits until this
%% node has a neighbour, at most `join_timeout'. After a timeout they are still tried,
%% and they are contacts from then on. A node that has left joins again in a new life.
-spec join(node() | [node()]) -> ok | {error, error()}.
join([_ | _] = Nodes) when length(Nodes) > 0 ->
    case [Node || Node <- Nodes, not atoll_strategy:is_node_name(Node)] of
        [] -> atoll_overlay:join(Nodes);
        [Char | _] when is_integer(Char) -> {error, {not_a_node, Nodes}};
        [Bad | _] -> {error, {not_a_node, Bad}}
    end;
join(Node) when is_atom(Node) ->
    join([Node]);
join(Bad) ->
    {error, {not_a_node, Bad}}.

%% @doc Leaves the cluster: the others hear that this node has left, and hold it for no
%% failure. Returns when its neighbours know, or after two seconds. Connections that
%% something else uses stay. A node whose application is stopped leaves by itself.
%%
%% Groups are not left: who is in one is what its members have agreed on, and not even a stop
%% changes that. A node that has left the cluster and is in groups still is told so,
%% `{still_in, Groups}': to take it out of service for good another member removes
%% it ({@link s_group:remove_nodes/2}), best before this.
-spec leave() -> ok | {still_in, [s_group:name(), ...]} | {error, error()}.
leave() ->
    case {atoll_overlay:leave(), s_group:own_s_groups()} of
        {ok, [_ | _] = Groups} -> {still_in, [Name || {Name, _} <- Groups]};
        {Answer, _} -> Answer
    end.

%% @doc The nodes of the cluster as far as this one knows, in the order of their
%% names, itself included.
-spec members() -> [node()].
members() ->
    atoll_overlay:members().

%% @doc As members/0; with `meta' each with what it says of itself ({@link set_meta/1}), an
%% empty map if that is nothing, or is not known here yet.
-spec members(#{meta => boolean()}) -> [{node(), Meta :: map()}] | [node()].
members(#{meta := true} = Options) when map_size(Options) =:= 1 ->
    atoll_overlay:metas();
members(Options) when Options =:= #{}; Options =:= #{meta => false} ->
    members().

%% @doc Says what this node is like, in the place of what it said before: a map of 1,024
%% bytes at most in the external term format. All members hear of it, as `member_meta', and
%% keep it for as long as this node is a member. It outlives a loss of the overlay's process,
%% and no restart of the application, which begins with the option `meta'. Of two changes
%% that follow each other closely the others may see the last alone.
-spec set_meta(map()) -> ok | {error, error()}.
set_meta(Meta) ->
    atoll_overlay:set_meta(Meta).

%% @doc The nodes with which this one holds a standing link, in the order of their
%% names.
-spec neighbours() -> [node()].
neighbours() ->
    atoll_overlay:neighbours().

%% @doc Sends a payload to all members: the subscribers to `broadcast', or to
%% `{broadcast, Topic}', get it on each of them, on this one too. `{error, overloaded}' says
%% that this node sends faster than the others can be sure to get it: nothing was sent, and the
%% caller is to send it again later, or to leave it. What is promised, and what is not, is said
%% in docs/overlay.md.
-spec broadcast(Topic :: term(), Payload :: term()) -> ok | {error, error()}.
broadcast(Topic, Payload) ->
    atoll_overlay:broadcast(Topic, Payload).

%% @doc As `broadcast/2', and waits until members have acknowledged that their subscribers got it.
%%
%% With `#{ack => all}' these are all members at this moment, this node among them: the
%% answer is `{ok, Nodes}', all of them in the order of their names, or
%% `{error, {unanswered, Nodes}}' with those that did not acknowledge in time; a member that dies
%% or leaves meanwhile does not, and where all others have that is said at once. With
%% `#{ack => N}' it is `{ok, Nodes}' when N members, this one counted, have acknowledged,
%% and `{error, {acknowledged, K, N}}' when only K have in time, or no more can. The time is
%% `timeout', in milliseconds, 5000 unless given and 60000 at most. When this node leaves
%% meanwhile the answer is `{error, left}'.
%%
%% Who is in the `ok' has delivered it. Who is not may have, or may do so yet: after an
%% error the message is not taken back. Each caller waits for itself; so many wait
%% at once at most (`waits_max', 64), any other is told `{error, overloaded}'. It takes a roster.
-spec broadcast(Topic :: term(), Payload :: term(), #{ack := all | pos_integer(), timeout => pos_integer()}) ->
    {ok, [node(), ...]} | {error, error()}.
broadcast(Topic, Payload, Options) ->
    case is_map(Options) andalso maps:merge(#{timeout => ?ACK_MS}, Options) of
        #{ack := Need, timeout := Ms} = All when
            map_size(All) =:= 2, Need =:= all orelse is_integer(Need) andalso Need > 0, is_integer(Ms), 0 < Ms, Ms =< ?MAX_ACK_MS
        ->
            atoll_overlay:broadcast(Topic, Payload, Need, Ms);
        _ ->
            {error, {bad_acknowledgement, Options}}
    end.

%% @doc Tells the strategy what only it knows: `{join, Node}' and `{part, Node}' under
%% `static', for instance. A strategy does nothing with a term that it does not know,
%% but counts it.
-spec tell(term()) -> ok | {error, error()}.
tell(Term) ->
    atoll_overlay:tell(Term).

%% @doc How this node reaches another one, by what the directory says at this moment: the
%% path that a new connection would take under the carrier, where none of its own is
%% wanted. Without the carrier it says what would be possible. Whether it works is not tried.
-spec route(node()) -> {ok, route()} | {error, error()}.
route(Node) when Node =:= node() ->
    {error, {route, {same, Node}}};
route(Node) when is_atom(Node) ->
    case atoll_route:explain(Node, ?ALTERNATIVES, #{}) of
        {ok, #{route := Path, hops := Hops, alternatives := Others}} ->
            {ok, #{
                path => Path,
                hops => [Hop#{via := via(Via)} || #{via := Via} = Hop <- Hops],
                alternatives => Others,
                now => now_to([Link || #{node := N} = Link <- links(), N =:= Node])
            }};
        {error, _} = Error ->
            Error
    end;
route(Bad) ->
    {error, {not_a_node, Bad}}.

via({clique, Group}) -> {group, Group};
via(link) -> link.

now_to([]) -> none;
now_to([#{kind := relay, path := [From | _] = Path} | _]) when From =:= node() -> {relay, Path};
now_to([#{kind := relay, path := Path} | _]) -> {relay, lists:reverse(Path)};
now_to([_ | _]) -> link.

%% @doc The nodes of the directory to which a chain of groups and links leads from here, in
%% the order of their names. Those who relay on the way may refuse to: `route/1' says so
%% of each.
-spec reachable() -> {ok, [node()]} | {error, error()}.
reachable() ->
    atoll_route:reachable().

%% @doc From now on the signals of the calling process to other nodes use the lanes of that
%% channel (`channels' of the carrier, docs/carrier.md), `default' for none; they keep their order
%% with those before. It is in no channel on connections without lanes, nor on those that go
%% over other nodes. On a node without the carrier this does nothing.
-spec channel(atom()) -> ok | {error, error()}.
channel(Name) ->
    atoll_dist_member:join(Name).

%% @doc Sends a single message in a channel, whatever channel the caller is in: that of `channel',
%% or with its `key' on one of the lanes that the channel has. Messages of a caller with the
%% same channel and key, or none, come to a receiver in order. They have no order with those of
%% another key, or with what the caller sends by itself. To a process of this node, and on a
%% node without the carrier, it is sent as with `!'. A monotonic channel takes no key. The caller
%% waits while too many of its messages wait.
-spec send(pid() | reference() | atom() | {atom(), node()}, term(), #{channel => atom(), key => term()}) -> ok | {error, error()}.
send(To, Message, Options) ->
    atoll_dist_send:send(To, Message, Options).

%% @doc From now on the caller gets `{atoll, Kind, Details}' for events of these kinds
%% too, until it ends.
-spec subscribe(all | kind() | [kind()]) -> ok | {error, error()}.
subscribe(all) ->
    subscribe(?KINDS);
subscribe(Kinds) when length(Kinds) >= 0 ->
    case [Kind || Kind <- Kinds, not is_kind(Kind)] of
        [] -> subscribe_all(Kinds);
        [Bad | _] -> {error, {no_such_event, Bad}}
    end;
subscribe(Kind) ->
    subscribe([Kind]).

subscribe_all(Kinds) ->
    case atoll_interpreter:asking(atoll_events, fun() -> atoll_events:subscribe(Kinds) end) of
        {ok, ok} -> ok;
        {error, _} = Error -> Error
    end.

%% @doc The caller gets no more events.
-spec unsubscribe() -> ok | {error, restarting}.
unsubscribe() ->
    case atoll_interpreter:asking(atoll_events, fun atoll_events:unsubscribe/0) of
        {ok, ok} -> ok;
        %% There is nobody who would send any.
        {error, not_running} -> ok;
        {error, restarting} = Error -> Error
    end.

%% @doc For people and dashboards: what the rooms hold, and what was sent, received and
%% dropped. `strategy' is what the overlay's is called, or `off'; `overlay' is `off' or a map with a part each for strategy, detector,
%% broadcast, roster and discovery; `links' has each known peer, and `connections' what
%% `links/0' returns; `route' is `off' or what the directory holds and for whom this node
%% relays; `groups' this node's
%% groups with their nodes; `names' how many names and operations on names there are, and
%% what was counted, or `restarting'; `place' how many placed processes are watched and misplaced.
-spec status() -> not_running | #{atom() => term()}.
status() ->
    case whereis(atoll_sup) of
        undefined -> not_running;
        _ -> rooms()
    end.

rooms() ->
    #{
        node => node(),
        strategy => atoll_overlay:strategy(),
        overlay => atoll_overlay:status(),
        sources => sources(),
        members => length(members()),
        neighbours => neighbours(),
        links => atoll_link:links(),
        connections => links(),
        route => atoll_route:status(),
        groups => s_group:own_s_groups(),
        names => names(),
        place => atoll_place_watch:status(),
        dropped_events => atoll_events:dropped()
    }.

%% @doc The connections of this node with other nodes, hidden ones too, sorted by node: of
%% each its `kind' (`direct', `{lanes, N}', `stock', Erlang's own distribution, or `relay', over
%% the nodes of its `path', which can read and alter it unless it is `sealed', and of which it has
%% taken another one so many times, `moves'), the round trip in microseconds (`rtt_us'), which end connected (`started': `here' or
%% `there'), for how many milliseconds it has been up (`age_ms'), and how many bytes it
%% has carried (`bytes_in', `bytes_out'). Where it has channels, `channels' says of each, by its
%% name, how many `lanes' it has, what this node has written in it (`bytes', `packets'), and how many
%% bytes wait (`waiting'); one that goes over other nodes has none. What only the carrier knows (`-proto_dist atoll')
%% is `unknown' without it. It does not need the application to run.
-spec links() -> [atoll_connections:connection()].
links() ->
    atoll_connections:all().

%% @doc Records what happens to this node's protocols, with all effects, in a folder:
%% `link.rec', `overlay.rec', `route.rec', `group.rec', `name.rec', `attr.rec', `distance.rec' and
%% `place.rec', each of 256 MB at most, in place of those that were there. `bin/atoll sim replay' replays them. `off' ends it, and says what the
%% files hold.
-spec record(file:filename_all()) -> ok | {error, error()};
            (off) -> {ok, #{link | overlay | route | group | name | attr | distance | place => atoll_recording:held()}} | {error, error()}.
record(off) ->
    Ended = [{Name, atoll_interpreter:record(Room, off)} || {Name, Room} <- recorders()],
    case [Error || {_, {error, Error}} <- Ended] of
        [Error | _] ->
            {error, {recording, Error}};
        [] ->
            case [{Name, Held} || {Name, {ok, Held}} <- Ended] of
                [] -> {error, not_recording};
                Held -> {ok, maps:from_list(Held)}
            end
    end;
record(Folder) ->
    case {atoll_source:is_path(Folder), recorders()} of
        {false, _} ->
            {error, {not_a_folder, Folder}};
        {true, []} ->
            {error, not_running};
        {true, Recorders} ->
            case filelib:ensure_dir(filename:join(Folder, "any")) of
                ok -> record(Recorders, Folder);
                {error, Reason} -> {error, {folder, Folder, Reason}}
            end
    end.

record([], _Folder) ->
    ok;
record([{Name, Room} | Rooms], Folder) ->
    File = filename:join(Folder, atom_to_list(Name) ++ ".rec"),
    case atoll_interpreter:record(Room, {file, File, ?MAX_RECORDING}) of
        ok ->
            record(Rooms, Folder);
        {error, Error} ->
            %% All or none.
            _ = [atoll_interpreter:record(Other, off) || {_, Other} <- recorders()],
            {error, {recording, Error}}
    end.

recorders() ->
    [Recorder || {_, Room} = Recorder <- ?ROOMS, whereis(Room) =/= undefined].

names() ->
    try {atoll_name:info(), atoll_interpreter:counters(atoll_name)} of
        {#{} = Info, Counters} -> Info#{counters => Counters};
        {{error, _}, _} -> restarting
    catch
        exit:{_, {gen_server, call, _}} -> restarting
    end.

%% They run with the overlay only.
sources() ->
    case whereis(atoll_sources) of
        undefined -> [];
        _ -> atoll_sources:summary()
    end.

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error(overlay_off) ->
    "this node has no overlay; set the option overlay of atoll";
format_error(directory_off) ->
    "this node has no directory; set the option directory of atoll";
format_error({route, _} = Error) ->
    atoll_route_core:format_error(Error);
format_error(timeout) ->
    "no contact could be joined by in time; they are still tried";
format_error(not_running) ->
    "atoll does not run on this node";
format_error(restarting) ->
    "a part of atoll was lost on this node and is being started again";
format_error(left) ->
    "this node has left the cluster";
format_error({bad_meta, _} = Error) ->
    atoll_roster_meta:format_error(Error);
format_error(broadcast_off) ->
    "this node was configured without broadcast";
format_error(roster_off) ->
    "this node was configured without a roster, the list of members, which acknowledgements and metadata take";
format_error({too_few_members, Members, Need}) ->
    io_lib:format("~b are to acknowledge it, but the cluster has ~b nodes; nothing was sent", [Need, Members]);
format_error({unanswered, Nodes}) ->
    io_lib:format("not acknowledged in time, though it may have come: by ~ts", [lists:join(", ", [atom_to_list(N) || N <- Nodes])]);
format_error({acknowledged, Count, Need}) ->
    io_lib:format("acknowledged in time by ~b nodes, and ~b were to do so", [Count, Need]);
format_error({bad_acknowledgement, Term}) ->
    io_lib:format(
        "the options of an acknowledged broadcast are ack => all or a number of nodes, and timeout => milliseconds, "
        "~b at most, not ~0tp",
        [?MAX_ACK_MS, Term]
    );
format_error({no_handler, _} = Error) ->
    atoll_handler:format_error(Error);
format_error(Error) when element(1, Error) =:= bad_option; element(1, Error) =:= no_module; element(1, Error) =:= lacks ->
    atoll_handler:format_error(Error);
format_error({not_a_folder, Term}) ->
    io_lib:format("~tp is not the path of a folder", [Term]);
format_error(Error) when element(1, Error) =:= no_channel; element(1, Error) =:= bad_send; element(1, Error) =:= key_in_monotonic ->
    atoll_dist_send:format_error(Error);
format_error(overloaded) ->
    "this node is asked for more than it can do: too many callers wait to join or for acknowledgements, or it "
    "broadcasts faster than the others can be sure to get it; nothing was sent, try again some tenths of a second later";
format_error({not_a_node, Term}) ->
    io_lib:format("~tp is not the name of a node", [Term]);
format_error(not_recording) ->
    "nothing is being recorded";
format_error({folder, Folder, Reason}) ->
    io_lib:format("the folder ~ts cannot be made: ~ts", [Folder, file:format_error(Reason)]);
format_error({recording, Error}) ->
    atoll_recording:format_error(Error);
format_error({no_such_event, Term}) ->
    io_lib:format("there are no events ~tp; there are ~ts", [
        Term, lists:join(", ", [atom_to_list(Kind) || Kind <- ?KINDS])
    ]).

is_kind({broadcast, _Topic}) -> true;
is_kind(Kind) -> lists:member(Kind, ?KINDS).
