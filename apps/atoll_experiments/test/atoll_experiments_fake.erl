%% An experiment that measures nothing: one step works, one fails, one is of no benchmark. It has no
%% time at all.
-module(atoll_experiments_fake).
-behaviour(atoll_experiment).

-export([about/0, steps/1, verdict/1]).

about() ->
    #{name => fake, title => "Fake | one", question => "Does the rest go on?", minutes => 0, cannot => "anything."}.

steps(_Context) ->
    [
        #{key => works, says => "works", run => {job, fun() -> {ok, #{answer => yes}} end}},
        #{key => fails, says => "fails", run => {job, fun() -> {error, "a reason"} end}},
        #{key => unknown, says => "is no benchmark", run => {bench, "fish", #{sweep => #{}, rounds => 1, starts => 1}}}
    ].

verdict(#{works := {ok, #{<<"answer">> := <<"yes">>}}, fails := {error, Why}}) ->
    #{tables => [], claims => [atoll_experiment:claim("Figure 0", "It works.", true, ["It did; and ", Why], "")]};
verdict(#{}) ->
    #{tables => [], claims => [atoll_experiment:claim("Figure 0", "It works.", unknown, "It was cut short.", "")]}.
