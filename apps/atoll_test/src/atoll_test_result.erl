%% @doc Reads what a job's runner has written: surefire files of EUnit and Common Test.
-module(atoll_test_result).

-export([read/2]).

-export_type([result/0, outcome/0]).

-type outcome() :: passed | failed | skipped.

-type result() :: #{
    %% The module.
    suite := string(),
    %% The case: of Common Test its function, of EUnit what eunit calls it.
    name := string(),
    outcome := outcome(),
    seconds := float(),
    %% Why it failed or was skipped.
    why := string()
}.

%% What is read of a file: the case that is open, and whether text belongs to its reason.
-record(reading, {kind :: eunit | ct, suite = "", current = none, hears = false, results = []}).

%% @doc The results of all cases in a directory, in the order of the files; an error for a
%% file that cannot be read.
-spec read(eunit | ct, file:filename()) -> {ok, [result()]} | {error, file:filename(), term()}.
read(Kind, Dir) ->
    read_all(lists:sort(filelib:wildcard(filename:join(Dir, "*.xml"))), Kind, []).

read_all([], _Kind, Results) ->
    {ok, lists:append(lists:reverse(Results))};
read_all([File | Files], Kind, Results) ->
    case xmerl_sax_parser:file(File, [{event_fun, fun event/3}, {event_state, #reading{kind = Kind}}]) of
        {ok, #reading{results = Of}, _} -> read_all(Files, Kind, [lists:reverse(Of) | Results]);
        Error -> {error, File, Error}
    end.

event({startElement, _, "testsuite", _, Attributes}, _, R) ->
    R#reading{suite = suite(value("name", Attributes))};
event({startElement, _, "testcase", _, Attributes}, _, R) ->
    Case = #{
        suite => R#reading.suite,
        name => value("name", Attributes),
        outcome => passed,
        seconds => seconds(value("time", Attributes)),
        why => ""
    },
    R#reading{current = Case};
event({startElement, _, Element, _, _}, _, #reading{current = #{} = Case} = R) ->
    case Element of
        "skipped" -> R#reading{current = Case#{outcome := skipped}, hears = true};
        "failure" -> R#reading{current = Case#{outcome := failed}, hears = true};
        "error" -> R#reading{current = Case#{outcome := failed}, hears = true};
        _ -> R
    end;
event({characters, Text}, _, #reading{hears = true, current = #{why := Why} = Case} = R) ->
    R#reading{current = Case#{why := Why ++ Text}};
event({endElement, _, "testcase", _}, _, #reading{kind = Kind, current = Case, results = Results} = R) ->
    R#reading{current = none, hears = false, results = add(Kind, Case, Results)};
event({endElement, _, Element, _}, _, R) when Element =:= "skipped"; Element =:= "failure"; Element =:= "error" ->
    R#reading{hears = false};
event(_, _, R) ->
    R.

value(Name, Attributes) ->
    case [Value || {_, _, N, Value} <- Attributes, N =:= Name] of
        [Value] -> Value;
        [] -> ""
    end.

%% EUnit says: module 'm'.
suite("module '" ++ Rest) -> string:trim(Rest, trailing, "'");
suite(Name) -> Name.

seconds(Text) ->
    case string:to_float(Text) of
        {Seconds, _} when is_float(Seconds) -> Seconds;
        {error, _} -> 0.0
    end.

%% What sets up and takes down is no case, unless it fails.
add(ct, #{outcome := Outcome, name := "init_per_" ++ _}, Results) when Outcome =/= failed -> Results;
add(ct, #{outcome := Outcome, name := "end_per_" ++ _}, Results) when Outcome =/= failed -> Results;
add(Kind, Case, Results) -> [told(Kind, Case) | Results].

%% A case that should have run, and did not, has failed: what EUnit calls skipped was
%% cancelled, and Common Test skips by itself what stands behind something that failed.
told(eunit, #{outcome := skipped} = Case) ->
    Case#{outcome := failed};
told(ct, #{outcome := skipped, why := Why} = Case) ->
    case string:find(Why, "tc_auto_skip") of
        nomatch -> Case;
        _ -> Case#{outcome := failed}
    end;
told(_Kind, Case) ->
    Case.
