%% SPDX-License-Identifier: Apache-2.0
%% The experiment with a fifth planted in one variant.
-module(atoll_experiments_slowed_one).
-behaviour(atoll_experiment).

-export([about/0, asks/1, tables/0, questions/0]).
-export([of_planted/1]).

about() -> #{name => slowed, title => "Slowed", question => "Is it slower?", minutes => 3, cannot => "anything else."}.

asks(_) -> of_planted(20).

of_planted(Percent) ->
    [#{key => both, do => {bench, atoll_experiments_slowed, #{sweep => #{planted => [Percent]}, rounds => 6, starts => 6}}}].

tables() -> [#{caption => "Time:", from => both, down => planted, across => {variant, [a, b]}, quantity => us}].

questions() ->
    [#{figure => none, says => "The second one is slower.", kind => {differs, more}, from => both,
       by => #{quantity => us, called => "It takes as many times as long", first => #{variant => b}, over => #{variant => a}, at => [#{}]}}].
