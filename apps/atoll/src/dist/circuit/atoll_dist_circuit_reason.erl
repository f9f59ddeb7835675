%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Why a circuit or a path of it was refused, lost or closed: the codes that go over
%% the wire, and the sentences for people.
-module(atoll_dist_circuit_reason).

-export([code/1, why/1, format_error/1]).

-export_type([reason/0, failure/0]).

%% What became of a path.
-type failure() ::
    %% Some node on the path says so.
    {refused | path_lost, atoll_dist_circuit_frame:said()}
    %% The connection with the first node of the path has gone.
    | {down, Neighbour :: term()}
    %% Nothing came over the path, or no answer to what opens it.
    | {silent, atoll_dist_circuit_frame:name()}
    %% A frame is missing though later ones are there.
    | {gap, atoll_dist_circuit_frame:name()}
    | no_route.

%% Why a circuit has ended.
-type reason() ::
    %% It has no path any more, or never had one: what became of the last.
    failure()
    %% This end was told to close.
    | {closed_here, Why :: term()}
    %% The other end, or a relay, has closed it.
    | {closed, atoll_dist_circuit_frame:said()}
    %% Bytes that are not what the other end sent, at that position.
    | {altered, atoll_dist_circuit_frame:position()}
    %% The other end does not know the cookie, or uses no seal though it must.
    | {seal, atoll_dist_seal:error()}
    %% The other end breaks the rules.
    | window_exceeded
    | bad_packet
    | bad_ack
    | {packet_too_large, pos_integer()}.

%% Code, reason, the sentence's end; `~ts' is what it is about.
-define(TABLE, [
    {1, busy, "its memory for circuits is given away"},
    {2, circuits, "it has as many circuits as it may"},
    {3, hops, "the path is too long"},
    {4, loop, "the path has a node twice"},
    {5, no_link, "it has no connection with ~ts"},
    {6, policy, "it does not relay from ~ts"},
    {7, not_on_path, "the frame came another way than its path says"},
    {8, version, "it does not know this version of circuits"},
    {9, unknown_circuit, "it does not know the circuit any more"},
    {10, stale, "the circuit has a newer path"},
    {11, seal, "it wants circuits sealed, or cannot read the other's part of the key (~ts)"},
    {12, not_accepted, "it takes no circuit now: ~ts"},
    {13, exists, "it has this very path already"},
    {14, window, "the window of the path is too small"},
    {32, link_down, "its connection with ~ts has gone"},
    {33, moved, "the circuit has another path now"},
    {34, unknown_path, "it does not know the path"},
    {35, idle, "nothing came over the path for too long"},
    {36, silent, "nothing came from the other side"},
    {37, gap, "a frame is missing"},
    {64, closed, "it has closed the circuit: ~ts"},
    {65, window_exceeded, "more came than the window allows"},
    {66, bad_frame, "what came cannot be"},
    {67, altered, "what came is not what was sent"},
    {68, too_large, "a packet is too large"}
]).

%% @doc The code of a reason on the wire.
-spec code(atom() | byte()) -> byte().
code(Code) when is_integer(Code) -> Code;
code(Why) ->
    {Code, Why, _} = lists:keyfind(Why, 2, ?TABLE),
    Code.

%% @doc The reason; a later release's is just its code.
-spec why(byte()) -> atom() | byte().
why(Code) ->
    case lists:keyfind(Code, 1, ?TABLE) of
        {Code, Why, _} -> Why;
        false -> Code
    end.

%% @doc One sentence that says why.
-spec format_error(reason()) -> unicode:chardata().
format_error({refused, Said}) -> said("The circuit was refused", Said);
format_error({path_lost, Said}) -> said("The path of the circuit was lost", Said);
format_error({closed, Said}) -> said("The circuit was closed", Said);
format_error({closed_here, Why}) -> io_lib:format("The circuit was closed here: ~0tp.", [Why]);
format_error({down, Neighbour}) -> io_lib:format("The connection with ~0tp, over which the circuit went, has gone.", [Neighbour]);
format_error({silent, Name}) -> io_lib:format("Nothing comes from ~ts over the circuit.", [Name]);
format_error({gap, Name}) -> io_lib:format("A frame of the circuit with ~ts is missing.", [Name]);
format_error(no_route) -> "There is no way to the node.";
format_error({altered, At}) -> io_lib:format("What came over the circuit was altered on the way, at position ~b.", [At]);
format_error({seal, Error}) -> atoll_dist_seal:format_error(Error);
format_error(window_exceeded) -> "The other end of the circuit sent more than it may.";
format_error(bad_packet) -> "The other end of the circuit sent what are no packets.";
format_error(bad_ack) -> "The other end of the circuit says that it has what was never sent, or has not what it had.";
format_error({packet_too_large, Size}) -> io_lib:format("A packet of ~b bytes is too large for the circuit.", [Size]).

said(What, {At, Why, About}) ->
    [What, io_lib:format(" by ~ts: ", [shown(At)]), ending(Why, shown(About)), "."].

ending(Why, About) ->
    case lists:keyfind(Why, 2, ?TABLE) of
        {_, Why, Ending} ->
            case string:find(Ending, "~ts") of
                nomatch -> Ending;
                _ -> io_lib:format(Ending, [About])
            end;
        false ->
            io_lib:format("its reason is number ~b of a later release", [Why])
    end.

%% It came from elsewhere, and need not be text.
shown(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) -> [Char || Char <- Chars, Char >= $\s, Char =/= 127];
        _ -> "?"
    end.
