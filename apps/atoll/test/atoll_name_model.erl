%% SPDX-License-Identifier: Apache-2.0
%% What the operations on names mean when they happen one at a time, and whether calls
%% that overlap can be explained so.
-module(atoll_name_model).

-export([run/2, explains/3]).

%% The state: {Name, Pid} pairs of one group.
run({register, _, Name, Pid, _}, Names) ->
    case lists:keymember(Name, 1, Names) orelse lists:keymember(Pid, 2, Names) of
        true -> {no, Names};
        false -> {yes, lists:sort([{Name, Pid} | Names])}
    end;
run({re_register, _, Name, Pid, _}, Names) ->
    case lists:keymember(Pid, 2, Names) of
        true -> {no, Names};
        false -> {yes, lists:sort(lists:keystore(Name, 1, Names, {Name, Pid}))}
    end;
run({unregister, _, Name}, Names) ->
    {ok, lists:keydelete(Name, 1, Names)}.

%% Is there an order of the calls, each {Request, Answer, Asked, Answered}, in which
%% each has its answer, and which ends in Last? A call that ended before another
%% began comes before it. A `no' may be for another that was under way for the same
%% name or process.
explains([], Names, Last) ->
    Names =:= lists:sort(Last);
explains(Calls, Names, Last) ->
    lists:any(
        fun({Request, Answer, _, _} = Call) ->
            lists:all(fun({_, _, _, Ended}) -> Ended >= element(3, Call) end, Calls) andalso
                case {run(Request, Names), short(Answer)} of
                    {{Same, Next}, Same} -> explains(lists:delete(Call, Calls), Next, Last);
                    _ -> false
                end
        end,
        Calls
    ).

short({no, _}) -> no;
short(Answer) -> Answer.
