%% SPDX-License-Identifier: Apache-2.0
%% The configuration: what is good is kept, what is bad is one sentence.
-module(atoll_dist_config_tests).

-include_lib("eunit/include/eunit.hrl").

-import(atoll_dist_config, [new/1, format_error/1]).

nothing_said_is_the_defaults_test() ->
    {ok, Config} = new([]),
    ?assertMatch(
        #{kind := auto, lane_rtt := 5, lanes := 16, stock := refuse, profile := throughput, budget := 16777216, faults := false},
        Config
    ).

good_values_are_kept_test() ->
    Options = [
        {kind, {lanes, 64}}, {lane_rtt, 0}, {lanes, 1}, {stock, accept}, {profile, latency}, {budget, 1}, {faults, true},
        {direct_options, [{recbuf, 1000}, {raw, 6, 25, <<1:32>>}]}, {lane_options, [{keepalive, true}]}
    ],
    {ok, Config} = new(Options),
    [?assertEqual(Value, maps:get(Key, Config)) || {Key, Value} <- Options].

channels_are_kept_test() ->
    Channels = #{
        bulk => #{lanes => 4, compression => 1, members => [{name, n}, {call, {m, f, 1}}, {label, "l"}, {application, mnesia}]},
        gossip => #{monotonic => true},
        order => #{causal => true}
    },
    ?assertMatch({ok, #{channels := Channels}}, new([{channels, Channels}])).

peers_are_known_by_text_test() ->
    {ok, #{peers := Peers}} = new([{peers, [{a@h, direct}, {b@h, {lanes, 2}}]}]),
    ?assertEqual(#{<<"a@h">> => direct, <<"b@h">> => {lanes, 2}}, Peers).

bad_values_are_one_sentence_test_() ->
    [
        {lists:flatten(io_lib:format("~0tp", [Options])), fun() ->
            {error, Error} = new(Options),
            Sentence = format_error(Error),
            ?assertEqual($., lists:last(Sentence)),
            ?assertNotEqual(nomatch, string:find(Sentence, About))
        end}
     || {Options, About} <- [
            {no_list, "must be a list"},
            {[{kind, direct} | improper], "must be a list"},
            {[kind], "must be a list"},
            {[{colour, red}], "no option colour"},
            {[{kind, {lanes, 0}}], "kind must"},
            {[{kind, {lanes, 65}}], "kind must"},
            {[{kind, lanes}], "kind must"},
            {[{peers, [{"a@h", direct}]}], "peers must"},
            {[{peers, [a@h]}], "peers must"},
            {[{lane_rtt, -1}], "lane_rtt must"},
            {[{lane_rtt, 1.5}], "lane_rtt must"},
            {[{lanes, 65}], "lanes must"},
            {[{stock, yes}], "stock must"},
            {[{tls, yes}], "tls must"},
            {[{profile, fast}], "profile must"},
            {[{budget, 0}], "budget must"},
            {[{direct_options, [{packet, 4}]}], "direct_options must"},
            {[{lane_options, [binary]}], "lane_options must"},
            {[{faults, 1}], "faults must"},
            {[{channels, [{bulk, #{}}]}], "channels must be a map"},
            {[{channels, #{"bulk" => #{}}}], "channel called \"bulk\""},
            {[{channels, #{default => #{}}}], "other than default"},
            {[{channels, #{bulk => []}}], "says [] of the channel bulk: that must be a map"},
            {[{channels, #{bulk => #{lanes => 32}}}], "lanes => 32 of the channel bulk: it must be a number from 1 to 31"},
            {[{channels, #{bulk => #{lanes => 16}, b => #{lanes => 16}}}], "32 lanes together, and 31 are the most"},
            {[{channels, #{bulk => #{compression => 10}}}], "a number from 0 to 9"},
            {[{channels, #{bulk => #{monotonic => 1}}}], "true or false"},
            {[{channels, #{bulk => #{colour => red}}}], "says colour => red of the channel bulk: there are lanes"},
            {[{channels, #{bulk => #{members => [{name, "x"}]}}}], "must be a list of {name,Name}"},
            {[{channels, #{bulk => #{members => [{call, {m, f}}]}}}], "{call,{Module,Function,Arity}}"},
            {[{channels, #{bulk => #{causal => true, lanes => 2}}}], "cannot have more lanes than one"},
            {[{channels, #{bulk => #{causal => true, monotonic => true}}}], "cannot have monotonic => true"}
        ]
    ].
