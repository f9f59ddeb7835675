%% SPDX-License-Identifier: Apache-2.0
%% An experiment that measures nothing: one ask works, one fails, one is of no benchmark. It has no
%% time at all.
-module(atoll_experiments_fake).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).

about() ->
    #{name => fake, title => "Fake | one", question => "Does the rest go on?", minutes => 0, cannot => "anything."}.

asks(Context) ->
    [
        #{key => works, do => {rows, ["works for ", atom_to_list(maps:get(size, Context))], fun() -> {ok, [#{answer => yes}]} end}},
        #{key => fails, do => {rows, "fails", fun() -> {error, "a reason"} end}},
        #{key => unknown, do => {bench, "fish", #{sweep => #{}, rounds => 1, starts => 1}}}
    ].

tables() ->
    [#{caption => "Answers:", from => works, kind => counted, head => ["answer"], rows => fun({rows, Rows}) -> [[Answer] || #{<<"answer">> := Answer} <- Rows] end}].

questions() ->
    [#{figure => "Figure 0", says => "It works.", kind => counted, from => works, by => fun({rows, [#{<<"answer">> := <<"yes">>}]}) -> {true, "It did."} end}].
