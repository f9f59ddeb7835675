%% SPDX-License-Identifier: Apache-2.0
%% @doc Tells on standard error how far something has come: a bar on a terminal,
%% which is gone when it is full, and a few plain lines elsewhere.
-module(atoll_cli_progress).

-export([bar/1, virtual_time/0, now_doing/1, done/0, render/5]).

-type total() :: pos_integer().

-define(CELLS, 30).
-define(TELLING_MS, 3000).

%% @doc What to call whenever one more is done; with 0 at the start.
-spec bar(Label :: string()) -> fun((Done :: non_neg_integer(), total()) -> ok).
bar(Label) ->
    Begun = erlang:monotonic_time(millisecond),
    fun(Done, Total) ->
        show(render(atoll_cli_io:columns(), Label, Done, Total, erlang:monotonic_time(millisecond) - Begun))
    end.

%% @doc What to call whenever the virtual time of a simulation has come to a new
%% second. Only a terminal shows it.
-spec virtual_time() -> fun((Ms :: non_neg_integer()) -> ok).
virtual_time() ->
    fun(Ms) -> atoll_cli_io:say_over(["Virtual time ", atoll_cli_table:count(Ms div 1000), " s"]) end.

%% @doc Says what is being done that cannot tell how far it is.
-spec now_doing(unicode:chardata()) -> ok.
now_doing(Text) ->
    case atoll_cli_io:columns() of
        none -> atoll_cli_io:say(Text);
        _ -> atoll_cli_io:say_over(Text)
    end.

%% @doc Takes what stands on the terminal away.
-spec done() -> ok.
done() ->
    atoll_cli_io:say_over("").

show({over, Text}) -> atoll_cli_io:say_over(Text);
show({line, Text}) -> atoll_cli_io:say(Text);
show(nothing) -> ok.

%% @doc What is shown on a terminal of so many columns, or on none, after so many
%% milliseconds.
-spec render(pos_integer() | none, string(), non_neg_integer(), total(), Ms :: non_neg_integer()) ->
    {over, iolist()} | {line, iolist()} | nothing.
render(none, Label, Done, Total, _Ms) ->
    case Done > 0 andalso quarter(Done, Total) =/= quarter(Done - 1, Total) of
        true -> {line, [Label, ": " | so_far(Done, Total)]};
        false -> nothing
    end;
render(_, _, Total, Total, _Ms) ->
    {over, ""};
render(_, Label, Done, Total, Ms) ->
    Full = Done * ?CELLS div Total,
    {over, [Label, " [", lists:duplicate(Full, $#), lists:duplicate(?CELLS - Full, $\s), "] ",
            so_far(Done, Total) | left(Done, Total, Ms)]}.

%% Too early there is no telling, and what is over soon needs none.
left(Done, Total, Ms) when Done > 0, Ms >= ?TELLING_MS ->
    case Ms * (Total - Done) div Done div 1000 of
        Seconds when Seconds >= 120 -> [", ", integer_to_list(Seconds div 60), " minutes left"];
        Seconds -> [", ", integer_to_list(Seconds), " s left"]
    end;
left(_Done, _Total, _Ms) ->
    [].

quarter(Done, Total) ->
    4 * Done div Total.

so_far(Done, Total) ->
    [integer_to_list(Done), " of ", integer_to_list(Total)].
