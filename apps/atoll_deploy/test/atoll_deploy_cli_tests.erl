%% SPDX-License-Identifier: Apache-2.0
%% What is wrong with a command line is said before anything is opened.
-module(atoll_deploy_cli_tests).

-include_lib("eunit/include/eunit.hrl").

a_wrong_command_line_has_its_sentence_test_() ->
    atoll_cli_line:refused([
        {["deploy", "rn"], "there is no command \"deploy rn\"; did you mean deploy run?"},
        {["deploy", "run"], "the argument FAMILY is missing"},
        {["deploy", "run", "shop", "many"], "N must be a whole number from 0 to 10,000, not \"many\""},
        {["deploy", "scale", "shop"], "the argument N is missing"},
        {["deploy", "provider", "lab", "--driver", "rsh"], "--driver must be one of local, ssh, kubernetes, cloud, not \"rsh\""},
        {["deploy", "provider", "lab", "--jump", "gate"], "jump of the provider lab must be a host between, as \"USER@HOST:PORT\""},
        {["deploy", "release", "one"], "the release one has neither a path nor an image"},
        {["deploy", "domain", "rack"], "the domain rack lacks provider, which is the name of a provider, as a text"},
        {["deploy", "family", "shop1", "--release", "one", "--domain", "rack"], "the name of the family shop1 ends with a digit, and its nodes' names are it and a number"},
        {["deploy", "roll", "shop", "two", "--batch", "0"], "--batch must be a whole number from 1 to 1,000, not \"0\""}
    ]).
