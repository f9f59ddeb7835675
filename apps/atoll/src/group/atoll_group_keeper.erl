%% SPDX-License-Identifier: Apache-2.0
%% @hidden
%% @doc Writes what the group room knows to its file ({@link atoll_group_file}), at each
%% change and in the room's stead, which must not wait for a disk.
%%
%% A change is on the disk some milliseconds after whoever made it was answered; a node
%% that dies in between comes back with what it knew before, and its co-members tell it
%% the rest. While the disk is busy only the newest is waited with. What cannot be
%% written is said in the log, and tried again with the next change.
-module(atoll_group_keeper).

-behaviour(gen_server).

-export([start_link/1, keep/1, load/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% Its table has the newest views, and whether they are to be written.
-define(VIEWS, views).
-define(STALE, stale).

%% @doc Starts the process that writes this file.
-spec start_link(file:filename_all()) -> gen_server:start_ret().
start_link(Path) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Path, []).

%% @doc These are to be kept. Does not wait.
-spec keep([atoll_group_view:view()]) -> ok.
keep(Views) ->
    true = ets:insert(?MODULE, {?VIEWS, Views}),
    %% There is never more than one message under way.
    case ets:insert_new(?MODULE, {?STALE, true}) of
        true -> gen_server:cast(?MODULE, write);
        false -> ok
    end.

%% @doc What was kept in that file. One that is wrong is put aside, with a line in the
%% log.
-spec load(file:filename_all()) -> [atoll_group_view:view()].
load(Path) ->
    case atoll_group_file:read(Path, node()) of
        {ok, Views} ->
            Views;
        {error, Error} ->
            Aside = unicode:characters_to_list([Path, ".bad"]),
            Moved = file:rename(Path, Aside),
            logger:warning(#{
                what => groups_not_read,
                file => Path,
                put_aside => {Aside, Moved},
                why => unicode:characters_to_list(atoll_group_file:format_error(Error))
            }),
            []
    end.

%% @private
-spec init(file:filename_all()) -> {ok, file:filename_all()}.
init(Path) ->
    false = process_flag(trap_exit, true),
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    {ok, Path}.

%% @private
-spec handle_call(term(), gen_server:from(), file:filename_all()) -> no_return().
handle_call(Request, _From, _Path) ->
    error({unexpected, Request}).

%% @private
-spec handle_cast(write, State) -> {noreply, State} when State :: file:filename_all().
handle_cast(write, Path) ->
    ok = write(Path),
    {noreply, Path}.

%% @private
-spec handle_info({'EXIT', pid(), Reason}, State) -> {stop, Reason, State}.
handle_info({'EXIT', _Pid, Reason}, Path) ->
    {stop, Reason, Path}.

%% @private
-spec terminate(term(), file:filename_all()) -> ok.
terminate(_Reason, Path) ->
    write(Path).

write(Path) ->
    case ets:take(?MODULE, ?STALE) of
        [] ->
            ok;
        [_] ->
            [{_, Views}] = ets:lookup(?MODULE, ?VIEWS),
            case atoll_group_file:write(Path, node(), Views) of
                ok ->
                    ok;
                {error, Error} ->
                    Why = unicode:characters_to_list(atoll_group_file:format_error(Error)),
                    logger:error(#{what => groups_not_kept, file => Path, why => Why})
            end
    end.
