%% SPDX-License-Identifier: Apache-2.0
-module(im_client_tests).

-include_lib("eunit/include/eunit.hrl").

%% A server drops what names nobody, and who has asked would wait for ever.
what_is_wrong_is_said_at_once_test() ->
    Start = fun(Name, Options) -> im_client:start_link(Name, [node()], Options) end,
    [?assertError({not_a_name, Name}, Start(Name, #{})) || Name <- ["ann", ann, <<>>, <<255>>, binary:copy(<<"a">>, 65)]],
    ?assertError({unknown_option, max_chat}, Start(<<"ann">>, #{max_chat => 1})),
    ?assertError(function_clause, im_client:start_link(<<"ann">>, [], #{})),
    ?assertError({not_a_name, "bob"}, im_client:say(self(), "bob", <<"x">>)),
    ?assertError(function_clause, im_client:say(self(), <<"bob">>, "x")),
    ?assertError({not_a_name, <<>>}, im_client:chat(self(), <<>>)).
