%% SPDX-License-Identifier: Apache-2.0
%% A discovery source written outside of the library: it does what its term says.
-module(atoll_source_probe).

-behaviour(atoll_source).

-export([check/1, read/1, deadline/1, label/1, format_error/1]).

check(#{check := Check}) -> Check();
check(#{}) -> ok.

read(#{read := {M, F, Args}}) -> apply(M, F, Args);
read(#{read := Read}) -> Read().

deadline(#{deadline := Deadline}) -> Deadline.

label(#{label := Label}) -> Label.

format_error({said, Text}) -> Text.
