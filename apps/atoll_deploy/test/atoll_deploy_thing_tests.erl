%% SPDX-License-Identifier: Apache-2.0
%% What is wrong with a description is a sentence that names the thing and the key.
-module(atoll_deploy_thing_tests).

-include_lib("eunit/include/eunit.hrl").

each_mistake_has_its_sentence_test_() ->
    [
        {Sentence, ?_assertEqual({error, Sentence}, said(atoll_deploy_thing:check(Kind, Name, Given)))}
     || {Kind, Name, Given, Sentence} <- [
            {provider, "1", #{}, "the name of a provider is a letter and at most 29 letters, digits, _ or -, not \"1\""},
            {provider, [16#15d | "op"], #{}, "the name of a provider is a letter and at most 29 letters, digits, _ or -, not \"" ++ [16#15d | "op\""]},
            {provider, "lab", [], "the provider lab is to be a map"},
            {provider, "lab", #{}, "the provider lab lacks driver, which is local, ssh, kubernetes or cloud"},
            {provider, "lab", #{driver => telnet}, "driver of the provider lab must be local, ssh, kubernetes or cloud"},
            {provider, "lab", #{driver => ssh, jmp => "x"}, "the provider lab has no key jmp; did you mean jump?"},
            {provider, "lab", #{driver => ssh, jump => "gate"}, "jump of the provider lab must be a host between, as \"USER@HOST:PORT\""},
            {provider, "lab", #{driver => local, jump => "me@gate"}, "the provider lab has the key jump, which is for ssh"},
            {provider, "lab", #{driver => local, ssh_dir => "x"}, "the provider lab has the key ssh_dir, which is for ssh and cloud"},
            {provider, "lab", #{driver => ssh, jump => "x;touch /tmp/x@gate"}, "jump of the provider lab must be a host between, as \"USER@HOST:PORT\""},
            {provider, "lab", #{driver => ssh, jump => "me@$(id)"}, "jump of the provider lab must be a host between, as \"USER@HOST:PORT\""},
            {provider, "lab", #{driver => ssh, jump => [16#15d, $@, $h]}, "jump of the provider lab must be a host between, as \"USER@HOST:PORT\""},
            {provider, "k", #{driver => kubernetes, namespace => [16#15d]}, "namespace of the provider k must be the name of a namespace, as a text"},
            {provider, "aws", #{driver => cloud, cloud => "ec2", size => "s"}, "the provider aws is a cloud, and lacks image"},
            {release, "r", #{}, "the release r has neither a path nor an image"},
            {release, "r", #{path => "x", sha256 => "12"}, "sha256 of the release r must be a checksum of 64 digits, as a text"},
            {domain, "d", #{provider => "p", hosts => []}, "hosts of the domain d must be a list of hosts, each \"HOST\", \"HOST:PORT\" or {\"HOST\", #{cores => N, memory_mb => N, attributes => [Text]}}"},
            {domain, "d", #{provider => "p", hosts => ["a:0"]}, "hosts of the domain d must be a list of hosts, each \"HOST\", \"HOST:PORT\" or {\"HOST\", #{cores => N, memory_mb => N, attributes => [Text]}}"},
            {domain, "d", #{provider => "p", hosts => [[16#15d]]}, "hosts of the domain d must be a list of hosts, each \"HOST\", \"HOST:PORT\" or {\"HOST\", #{cores => N, memory_mb => N, attributes => [Text]}}"},
            {domain, "d", #{provider => "p", hosts => ["a"], machines => 2}, "the domain d has hosts, and machines of a cloud in their place"},
            {domain, "d", #{provider => "p", user => "-oProxyCommand=x"}, "user of the domain d must be a user's name, as a text"},
            {domain, "d", #{provider => "p", hosts => ["a", "a:23"]}, "the domain d has the host a twice"},
            {family, "f1", #{release => "r", domains => ["d"]}, "the name of the family f1 ends with a digit, and its nodes' names are it and a number"},
            {family, "f", #{release => "r", domains => ["d"], flags => ["-setcookie", "HUSHHUSH"]}, "the flags of the family f have -setcookie, which every list of processes would show: put it in a cookie_file"},
            {family, "f", #{release => "r", domains => []}, "domains of the family f must be a list of names of domains, with one at least"},
            {family, "f", #{release => "r", domains => ["d"], needs => #{cores => 0}}, "needs of the family f must be #{cores => N, memory_mb => N, attributes => [Text]}"}
        ]
    ].

said({error, Sentence}) -> {error, lists:flatten(Sentence)};
said(Other) -> Other.

what_is_not_told_has_its_default_test() ->
    ?assertEqual(
        {ok, #{name => "rack", provider => "lab", hosts => [#{host => "10.0.0.1", port => 2222, attributes => []}, #{host => "h.example", port => 22, attributes => ["ssd"], cores => 4}], dir => ".atoll-deploy"}},
        atoll_deploy_thing:check(domain, "rack", #{provider => "lab", hosts => ["10.0.0.1:2222", {"h.example", #{cores => 4, attributes => ["ssd"]}}]})
    ),
    ?assertMatch({ok, #{jump := {"me", "gate.example", 22}}}, atoll_deploy_thing:check(provider, "lab", #{driver => ssh, jump => "me@gate.example"})).

%% A key that was put where a file's name should stand is not repeated.
what_may_be_a_secret_is_not_repeated_test() ->
    {error, Sentence} = atoll_deploy_thing:check(family, "f", #{release => "r", domains => ["d"], cookie_file => 'HUSHHUSH'}),
    ?assertEqual(nomatch, string:find(Sentence, "HUSHHUSH")).
