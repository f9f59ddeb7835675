%% SPDX-License-Identifier: Apache-2.0
%% @doc A client whose owner is a process: it gets `{im_client, Client, Event}' with all that happens
%% ({@link im_client_core:told()}).
%%
%% A client whose login was refused ends. Not promised: a bound on what waits in the owner's mailbox. Who may be slow has `resume', so that it is
%% sent no more than it has acknowledged.
-module(im_client_owner).

-behaviour(im_client).

-export([init/1, handle_im/2]).

%% @private
-spec init(pid()) -> pid().
init(Owner) -> Owner.

%% @private
-spec handle_im(im_client_core:told(), pid()) -> {[im_client:action()], pid()}.
handle_im(Told, Owner) ->
    Owner ! {im_client, self(), Told},
    case Told of
        {login_refused, _} -> {[stop], Owner};
        _ -> {[], Owner}
    end.
