%% SPDX-License-Identifier: Apache-2.0
%% @doc Reads what a job's runner has written: surefire files of EUnit and Common Test.
-module(atoll_test_result).

-export([read/2, name/2, is_case/1]).

-export_type([result/0, outcome/0]).

-type outcome() :: passed | failed | skipped.

-type result() :: #{
    %% The module.
    suite := string(),
    %% The case: of Common Test its function, behind its groups (`outer.inner:case'); of EUnit
    %% what eunit calls it.
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

%% @doc What a case of Common Test is called, that stands in such groups, the innermost first.
-spec name([atom()], atom()) -> string().
name(Groups, Case) -> grouped(lists:concat(lists:join(".", lists:reverse(Groups))), atom_to_list(Case)).

grouped("", Case) -> Case;
grouped(Groups, Case) -> Groups ++ ":" ++ Case.

%% @doc What sets up and takes down is no case.
-spec is_case(string()) -> boolean().
is_case(Name) -> re:run(Name, "(^|:)(init|end)_per_") =:= nomatch.

event({startElement, _, "testsuite", _, Attributes}, _, R) ->
    R#reading{suite = suite(value("name", Attributes))};
event({startElement, _, "testcase", _, Attributes}, _, R) ->
    Case = #{
        suite => R#reading.suite,
        name => grouped(value("group", Attributes), value("name", Attributes)),
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

%% What is no case counts if it fails.
add(Kind, #{outcome := Outcome, name := Name} = Case, Results) ->
    case Kind =:= eunit orelse Outcome =:= failed orelse is_case(Name) of
        true -> [told(Kind, Case) | Results];
        false -> Results
    end.

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
