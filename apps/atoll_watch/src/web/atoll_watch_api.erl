%% SPDX-License-Identifier: Apache-2.0
%% @doc What a watch answers at /api/v1 and /metrics, as priv/openapi.json describes it. Who asks is allowed to: see
%% {@link atoll_watch_http}. Everything that changes something is logged.
-module(atoll_watch_api).

-export([answer/1, body/2]).

-compile({no_auto_import, [nodes/1]}).

-export_type([reply/0]).

-type reply() ::
    {ok, 200..299, atoll_cli_json:object() | none}
    | {text, iodata()}
    %% From this event on.
    | {events, After :: binary()}
    %% Frames of what flows, see atoll_flow_frame.
    | {traffic, atoll_watch_traffic:wants()}
    | {not_allowed, [string(), ...]}
    | {error, 400..599, unicode:chardata()}.

-type field() :: {Name :: binary(), text, Min :: pos_integer(), Max :: pos_integer()}.

%% How many may ask at once; event streams are counted on their own.
-define(AT_ONCE, 64).
-define(SERIES, 200).
-define(LINKS, 5000).

%% @doc The answer to a request.
-spec answer(atoll_watch_http:request()) -> reply().
answer(Request) ->
    case atoll_watch_store:added(busy, 1) > ?AT_ONCE of
        true ->
            _ = atoll_watch_store:added(busy, -1),
            {error, 503, "Too many questions are being answered: ask again."};
        false ->
            try
                routed(Request)
            catch
                throw:{error, Status, Sentence} -> {error, Status, Sentence}
            after
                atoll_watch_store:added(busy, -1)
            end
    end.

routed(#{path := <<"/metrics">>, method := Method} = Request) ->
    only(Method, [{<<"GET">>, fun() ->
        _ = query(Request, []),
        {text, atoll_watch_prometheus:text(atoll_watch_metric:all(), atoll_watch:nodes(atoll_watch_store:watch()))}
    end}]);
routed(#{path := <<"/api/v1/", Path/binary>>, method := Method} = Request) ->
    only(Method, routes([decoded(Part) || Part <- binary:split(Path, <<"/">>, [global])], Request));
routed(_) ->
    nothing().

nothing() -> {error, 404, "There is nothing by that path: /openapi.json says what there is."}.

only(_, []) ->
    nothing();
only(Asked, Routes) ->
    Method = case Asked of <<"HEAD">> -> <<"GET">>; _ -> Asked end,
    case lists:keyfind(Method, 1, Routes) of
        {_, Answer} -> Answer();
        false -> {not_allowed, [binary_to_list(Is) || {Is, _} <- Routes]}
    end.

decoded(Part) ->
    %% It throws in one version of OTP what it returns in another.
    case catch uri_string:percent_decode(Part) of
        Text when is_binary(Text) -> Text;
        {error, _, _} -> throw({error, 400, "The path cannot be read."})
    end.

reads(Answer) -> [{<<"GET">>, Answer}].

routes([<<"cluster">>], Request) -> reads(fun() -> _ = query(Request, []), {ok, 200, atoll_watch_json:cluster()} end);
routes([<<"topology">>], Request) -> reads(fun() -> _ = query(Request, []), topology() end);
routes([<<"families">>], Request) -> reads(fun() -> families(Request) end);
routes([<<"links">>], Request) -> reads(fun() -> links(Request) end);
routes([<<"nodes">>], Request) -> [{<<"GET">>, fun() -> nodes(Request) end}, {<<"POST">>, fun() -> add(Request) end}];
routes([<<"nodes">>, Name], Request) ->
    [{<<"GET">>, fun() -> _ = query(Request, []), {ok, 200, atoll_watch_json:node(row(Name))} end}, {<<"DELETE">>, fun() -> remove(Name, Request) end}];
routes([<<"nodes">>, Name, <<"metrics">>], Request) -> reads(fun() -> readings(Name, Request) end);
routes([<<"nodes">>, Name, <<"series">>], Request) ->
    reads(fun() ->
        Asked = query(Request, page()),
        Names = lists:sort(atoll_watch_series:names(atoll_watch_store:series_dir(), known(Name))),
        with(series, {[{node, Name}]}, paged(asc, [{key(Metric, Label), {[{metric, Metric}, {label, atoll_watch_json:null(Label)}]}} || {Metric, Label} <- Names], Asked))
    end);
routes([<<"nodes">>, Name, <<"processes">>], Request) -> reads(fun() -> processes(Name, Request) end);
routes([<<"nodes">>, Name, <<"processes">>, Pid], Request) ->
    reads(fun() -> _ = query(Request, []), {ok, 200, object(explored(Name, {process, named(Pid)}))} end);
routes([<<"nodes">>, Name, <<"tables">>], Request) ->
    reads(fun() ->
        #{limit := Most} = query(Request, [{limit, {whole, 1, 100, 20}}]),
        {ok, 200, of_node(Name, explored(Name, {tables, Most}))}
    end);
routes([<<"nodes">>, Name, <<"supervision">>], Request) ->
    reads(fun() ->
        #{root := Root} = query(Request, [{root, {text, none}}]),
        {ok, 200, of_node(Name, explored(Name, {supervision, case Root of none -> top; _ -> named(Root) end}))}
    end);
routes([<<"managers">>], Request) -> reads(fun() -> _ = query(Request, []), {ok, 200, {[{items, [atoll_watch_json:manager(Is) || Is <- atoll_watch:managers(atoll_watch_store:watch())]}]}} end);
routes([<<"metrics">>], Request) -> reads(fun() -> paged(asc, [{Name, atoll_watch_json:metric(Metric)} || {Name, Metric} <- metrics()], query(Request, page())) end);
routes([<<"rules">>], Request) -> reads(fun() -> paged(asc, lists:sort([{atom_to_binary(Id), atoll_watch_json:rule(Rule)} || #{id := Id} = Rule <- atoll_watch_store:rules()]), query(Request, page())) end);
routes([<<"series">>], Request) -> reads(fun() -> series(Request) end);
routes([<<"alarms">>], Request) -> reads(fun() -> alarms(Request) end);
routes([<<"alarms">>, Id], Request) -> reads(fun() -> _ = query(Request, []), alarm(200, number(Id)) end);
routes([<<"alarms">>, Id, <<"acknowledge">>], Request) -> [{<<"POST">>, fun() -> acknowledge(number(Id), Request) end}];
routes([<<"alarms">>, Id, <<"comments">>], Request) -> [{<<"POST">>, fun() -> comment(number(Id), Request) end}];
routes([<<"deploy">>], Request) -> reads(fun() -> _ = query(Request, []), atoll_watch_deploy:read() end);
routes([<<"deploy">>, Kind], Request) -> [{<<"POST">>, fun() -> deployed(atoll_watch_deploy:register(Kind, any_body(Request)), Request, "registered a ~ts", [Kind]) end}];
routes([<<"deploy">>, <<"archive">>, Sum], Request) -> [{<<"PUT">>, fun() -> deployed(atoll_watch_deploy:archive(Sum, map_get(body, Request)), Request, "sent the archive ~ts", [Sum]) end}];
routes([<<"deploy">>, Kind, Name], Request) -> [{<<"DELETE">>, fun() -> deployed(atoll_watch_deploy:forget(Kind, Name), Request, "forgot the ~ts ~ts", [Kind, Name]) end}];
routes([<<"deploy">>, <<"family">>, Name, What], Request) when What =:= <<"run">>; What =:= <<"plan">>; What =:= <<"roll">>; What =:= <<"terminate">> ->
    [{<<"POST">>, fun() -> deployed(atoll_watch_deploy:start(What, Name, any_body(Request)), Request, "began ~ts of the family ~ts", [What, Name]) end}];
routes([<<"notifications">>], Request) -> reads(fun() -> notifications(Request) end);
routes([<<"events">>], #{headers := Headers} = Request) ->
    reads(fun() -> _ = query(Request, []), {events, case lists:keyfind(<<"last-event-id">>, 1, Headers) of {_, Last} -> Last; false -> <<>> end} end);
routes([<<"traffic">>], Request) ->
    reads(fun() ->
        #{trace := Trace, load := Load} = query(Request, [{trace, {one_of, [<<"true">>, <<"false">>], <<"false">>}}, {load, {text, none}}]),
        {traffic, #{trace => Trace =:= <<"true">>, load => case Load of none -> none; _ -> known(Load) end}}
    end);
routes(_, _) -> [].

%% Deployments

deployed({ok, _, _} = Answer, Request, Format, Args) ->
    logged(Request, Format, Args),
    Answer;
deployed({error, _, _} = Error, _, _, _) ->
    Error.

%% What is asked

-type kind() :: {whole, integer(), integer(), Else :: integer() | none} | {text, Else :: binary() | none} | texts | {one_of, [binary()], Else :: binary() | none}.

page() -> [{limit, {whole, 1, 1000, 100}}, {cursor, {text, none}}].

-spec query(atoll_watch_http:request(), [{atom(), kind()}]) -> #{atom() => term()}.
query(#{query := Text}, Kinds) ->
    Given = case uri_string:dissect_query(Text) of
        Pairs when is_list(Pairs) -> Pairs;
        {error, _, _} -> throw({error, 400, "The query cannot be read."})
    end,
    Known = [atom_to_binary(Name) || {Name, _} <- Kinds],
    lists:foreach(fun({Name, Value}) ->
        lists:member(Name, Known) orelse wrong(["There is no parameter ", Name, " here."]),
        Value =/= true andalso unicode:characters_to_binary(Value) =:= Value orelse wrong([Name, " has no value that can be read."]),
        length([N || {N, _} <- Given, N =:= Name]) =:= 1 orelse wrong([Name, " is given twice."])
    end, Given),
    maps:from_list([{Name, read(Name, lists:keyfind(atom_to_binary(Name), 1, Given), Kind)} || {Name, Kind} <- Kinds]).

-spec wrong(unicode:chardata()) -> no_return().
wrong(Sentence) -> throw({error, 400, Sentence}).

read(_, false, {whole, _, _, Else}) -> Else;
read(_, false, {text, Else}) -> Else;
read(_, false, {one_of, _, Else}) -> Else;
read(_, false, texts) -> none;
read(Name, {_, Text}, {whole, Min, Max, _}) ->
    case whole(Text) of
        {ok, N} when N >= Min, N =< Max -> N;
        _ -> wrong(io_lib:format("~s must be a whole number from ~b to ~b.", [Name, Min, Max]))
    end;
read(Name, {_, Text}, {one_of, Words, _}) ->
    case lists:member(Text, Words) of
        true -> Text;
        false -> wrong([atom_to_list(Name), " must be one of ", lists:join(", ", Words), $.])
    end;
read(Name, {_, <<>>}, texts) -> wrong([atom_to_list(Name), " has no value that can be read."]);
read(_, {_, Text}, texts) -> binary:split(Text, <<",">>, [global]);
read(_, {_, Text}, {text, _}) -> Text.

whole(Text) when byte_size(Text) =< 18 ->
    try {ok, binary_to_integer(Text)} catch error:badarg -> error end;
whole(_) ->
    error.

number(Text) ->
    case whole(Text) of
        {ok, N} -> N;
        error -> throw({error, 404, "An alarm has a number."})
    end.

%% @doc The fields of a body, which has these and no others.
-spec body(atoll_watch_http:request(), [field()]) -> {ok, #{binary() => binary()}} | {error, unicode:chardata()}.
body(Request, Fields) ->
    case object_of(Request) of
        {ok, Given} -> fields(Given, Fields);
        {error, _} = Error -> Error
    end.

object_of(#{body := Body, headers := Headers}) ->
    case [Type || {<<"content-type">>, Type} <- Headers, re:run(Type, "^application/json *(;|$)", [caseless, {capture, none}]) =:= match] of
        [] -> {error, "The body is to be application/json."};
        _ ->
            case atoll_watch_json:decode(Body) of
                {ok, #{} = Given} -> {ok, Given};
                _ -> {error, "The body is to be one JSON object."}
            end
    end.

any_body(Request) ->
    case object_of(Request) of
        {ok, Given} -> Given;
        {error, Sentence} -> wrong(Sentence)
    end.

fields(Given, Fields) ->
    case {maps:keys(Given) -- [Name || {Name, _, _, _} <- Fields], [Wrong || {Name, text, Min, Max} <- Fields, Wrong <- [is_text(Name, Given, Min, Max)], Wrong =/= ok]} of
        {[Unknown | _], _} -> {error, ["There is no field ", Unknown, " here."]};
        {[], [Wrong | _]} -> {error, Wrong};
        {[], []} -> {ok, Given}
    end.

is_text(Name, Given, Min, Max) ->
    case Given of
        #{Name := Text} when is_binary(Text) ->
            case string:length(Text) of
                N when N >= Min, N =< Max -> ok;
                _ -> io_lib:format("~ts must have ~b to ~b characters.", [Name, Min, Max])
            end;
        #{Name := _} -> [Name, " must be a text."];
        #{} -> [Name, " is missing."]
    end.

fields_of(Request, Fields) ->
    case body(Request, Fields) of
        {ok, Given} -> Given;
        {error, Sentence} -> wrong(Sentence)
    end.

%% Pages: a cursor is the key of the last item that was seen. Keys are texts that go up, or pairs of numbers
%% that go down.

paged(Order, Items, #{limit := Limit, cursor := Cursor}) ->
    Rest = case Cursor =/= none andalso place(Order, Cursor) of
        false -> Items;
        Last -> lists:dropwhile(fun({Key, _}) -> is_seen(Order, Key, Last) end, Items)
    end,
    {Now, Later} = lists:split(min(Limit, length(Rest)), Rest),
    {ok, 200, {[{items, [Item || {_, Item} <- Now]}, {next, case {Now, Later} of {[_ | _], [_ | _]} -> cursor(Order, element(1, lists:last(Now))); _ -> null end}, {total, length(Items)}]}}.

is_seen(asc, Key, Last) -> Key =< Last;
is_seen(desc, Key, Last) -> Key >= Last.

cursor(asc, Key) -> base64:encode(Key);
cursor(desc, {A, B}) -> base64:encode(<<(integer_to_binary(A))/binary, $., (integer_to_binary(B))/binary>>).

place(Order, Cursor) ->
    Text = try base64:decode(Cursor) catch error:_ -> not_one() end,
    case Order of
        asc -> Text;
        desc ->
            case [whole(Part) || Part <- binary:split(Text, <<".">>, [global])] of
                [{ok, A}, {ok, B}] -> {A, B};
                _ -> not_one()
            end
    end.

-spec not_one() -> no_return().
not_one() -> wrong("The cursor is none that was given here.").

%% A page that is a part of an object, where its items have a name of their own.
with(Items, {Pairs}, {ok, 200, {[{items, Page} | More]}}) -> {ok, 200, {Pairs ++ [{Items, Page} | More]}}.

key(Name, Label) -> <<(key(Name))/binary, 0, (key(Label))/binary>>.

key(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
key(Text) -> unicode:characters_to_binary(Text).

%% Nodes. No atom is made of what somebody asks for, unless he adds a node.

known(Name) ->
    try binary_to_existing_atom(Name) of
        Node -> case atoll_watch_store:node(Node) of {ok, _} -> Node; error -> no_node(Name) end
    catch
        error:_ -> no_node(Name)
    end.

-spec no_node(binary()) -> no_return().
no_node(Name) -> throw({error, 404, ["There is no node ", Name, " here."]}).

row(Name) ->
    {ok, Row} = atoll_watch_store:node(known(Name)),
    Row.

nodes(Request) ->
    #{state := State, search := Search, family := Family} = Asked =
        query(Request, page() ++ [{state, {one_of, [<<"unknown">>, <<"up">>, <<"silent">>, <<"down">>, <<"refused">>], none}}, {search, {text, none}}, {family, {text, none}}]),
    Rows = lists:keysort(1, [
        {Name, Row}
     || #{node := Node, state := Is} = Row <- atoll_watch_store:nodes(), State =:= none orelse atom_to_binary(Is) =:= State,
        Name <- [atom_to_binary(Node)], Search =:= none orelse has(Search, Name), Family =:= none orelse atoll_watch_family:of_node(Node) =:= Family
    ]),
    Alarms = atoll_watch_json:alarms_by_node(),
    case paged(asc, Rows, Asked) of
        {ok, 200, {[{items, Chosen} | More]}} -> {ok, 200, {[{items, [atoll_watch_json:node(Row, Alarms) || Row <- Chosen]} | More]}}
    end.

families(Request) ->
    Asked = query(Request, page()),
    paged(asc, [{Name, atoll_watch_json:family(Family)} || #{name := Name} = Family <- atoll_watch_family:all(atoll_watch_store:nodes(), atoll_watch_json:alarms_by_node())], Asked).

has(Part, Text) -> string:find(string:lowercase(Text), string:lowercase(Part)) =/= nomatch.

add(Request) ->
    #{<<"node">> := Name} = fields_of(Request, [{<<"node">>, text, 3, 255}]),
    case atoll_view_join:node_names(unicode:characters_to_list(Name)) of
        {ok, [Node]} ->
            case same_kind_of_name(Node) andalso atoll_watch:add(atoll_watch_store:watch(), Node) of
                ok ->
                    ok = atoll_watch_store:said(added, Node, info, ["added by hand", from(Request)]),
                    logged(Request, "added the node ~ts", [Name]),
                    {ok, 201, atoll_watch_json:node(row(Name))};
                {error, too_many} -> {error, 409, "As many nodes are watched as can be."};
                false -> {error, 400, "Nodes with long names and nodes with short ones are not of one cluster."}
            end;
        _ ->
            {error, 400, "node must be the name of a node, as in shop@10.0.0.7."}
    end.

same_kind_of_name(Node) ->
    IsLong = fun(Is) -> [_, Host] = binary:split(atom_to_binary(Is), <<"@">>), binary:match(Host, [<<".">>, <<":">>]) =/= nomatch end,
    IsLong(Node) =:= IsLong(node()).

remove(Name, Request) ->
    Node = known(Name),
    ok = atoll_watch_store:said(removed, Node, info, ["removed by hand", from(Request)]),
    ok = atoll_watch:remove(atoll_watch_store:watch(), Node),
    ok = atoll_watch_store:sync(),
    logged(Request, "removed the node ~ts", [Name]),
    {ok, 204, none}.

from(#{peer := Peer}) -> [" from ", Peer].

logged(#{peer := Peer}, Format, Args) ->
    logger:notice("atoll watch: ~ts " ++ Format, [Peer | Args]).

readings(Name, Request) ->
    #{metric := Metrics} = Asked = query(Request, [{metric, texts}, {limit, {whole, 1, 1000, 1000}}, {cursor, {text, none}}]),
    Node = known(Name),
    _ = [metric(Metric) || Metrics =/= none, Metric <- Metrics],
    case {atoll_watch:node(atoll_watch_store:watch(), Node), atoll_watch_store:node(Node)} of
        {{ok, Seen}, {ok, #{at := At}}} ->
            {Readings, Object} = atoll_watch_json:readings(Seen, At, Metrics),
            with(readings, Object, paged(asc, [{key(Metric, Label), Reading} || {Metric, Label, Reading} <- Readings], Asked));
        _ -> no_node(Name)
    end.

metrics() -> lists:sort([{atom_to_binary(Name), Metric} || #{name := Name} = Metric <- atoll_watch_metric:all()]).

metric(Name) ->
    lists:keymember(Name, 1, metrics()) orelse wrong(["There is no metric ", Name, $.]).

%% Series

series(Request) ->
    #{window := Named, metric := Metrics, node := Names, label := Label, points := Points} =
        query(Request, [{window, {text, none}}, {metric, texts}, {node, texts}, {label, {text, none}}, {points, {whole, 10, 400, 400}}]),
    Window = case Named =/= none andalso atoll_watch_window:find(Named) of
        {ok, Is} -> Is;
        _ -> wrong("window must be one of 15min, hour, day, week, month.")
    end,
    Metrics =/= none orelse wrong("metric is missing: \"/api/v1/metrics\" says which there are."),
    _ = [metric(Metric) || Metric <- Metrics],
    Nodes = case Names of
        none -> [Node || #{node := Node} <- atoll_watch_store:nodes()];
        _ -> [known(Name) || Name <- Names]
    end,
    Wanted = fun({Metric, Of}) -> lists:member(Metric, Metrics) andalso (Label =:= none orelse Of =:= Label) end,
    Now = erlang:system_time(millisecond),
    Dir = atoll_watch_store:series_dir(),
    {Found, Omitted} = lists:foldl(fun(Node, {Acc, Left}) ->
        case length([Series || Series <- atoll_watch_series:names(Dir, Node), Wanted(Series)]) of
            N when length(Acc) + N > ?SERIES -> {Acc, Left + N};
            0 -> {Acc, Left};
            _ -> {Acc ++ [{Node, Series, Is} || {Series, Is} <- lists:sort(atoll_watch_series:read(Dir, Node, Window, Now, Wanted))], Left}
        end
    end, {[], 0}, Nodes),
    Step = atoll_watch_window:step(Window),
    Each = ceil(atoll_watch_window:points(Window) / Points) * Step,
    {ok, 200, {[
        {window, Named}, {from_ms, (atoll_watch_window:slot(Window, Now) - atoll_watch_window:points(Window) + 1) * Step}, {to_ms, Now}, {step_ms, Each},
        {series, [
            {[{node, atom_to_binary(Node)}, {metric, Metric}, {label, atoll_watch_json:null(Of)},
              {points, [[Time, Average, Min, Max] || {Time, Average, Min, Max} <- fewer(Each, Step, Is)]}]}
         || {Node, {Metric, Of}, Is} <- Found
        ]},
        {omitted, Omitted}
    ]}}.

%% Neighbours are put together.
fewer(Step, Step, Points) ->
    Points;
fewer(Each, Step, [{Time, _, _, _} | _] = Points) ->
    Begin = Time div Each * Each,
    {Now, Later} = lists:splitwith(fun({T, _, _, _}) -> T < Begin + Each end, Points),
    [{Begin, lists:sum([A || {_, A, _, _} <- Now]) / length(Now), lists:min([Min || {_, _, Min, _} <- Now]), lists:max([Max || {_, _, _, Max} <- Now])} | fewer(Each, Step, Later)];
fewer(_, _, []) ->
    [].

%% Alarms

alarms(Request) ->
    #{state := Which, severity := Severity, node := Node} = Asked =
        query(Request, page() ++ [{state, {one_of, [<<"standing">>, <<"cleared">>, <<"all">>], <<"standing">>}}, {severity, {one_of, [<<"critical">>, <<"major">>, <<"minor">>, <<"warning">>], none}}, {node, {text, none}}]),
    Standing = [{{Id, 0}, Alarm} || Which =/= <<"cleared">>, #{id := Id} = Alarm <- atoll_watch_store:alarms(standing)],
    %% Those that stand come first: their numbers are no times, and are not to be among them.
    Cleared = [{{Time, Id}, Alarm} || Which =/= <<"standing">>, #{id := Id, cleared := Time} = Alarm <- atoll_watch_store:alarms(cleared)],
    Items = case Which of
        <<"all">> -> lists:reverse(lists:sort([{{Raised, Id}, Alarm} || {_, #{id := Id, raised := Raised} = Alarm} <- Standing ++ Cleared]));
        _ -> Standing ++ Cleared
    end,
    Chosen = [{Key, Alarm} || {Key, #{severity := Is, nodes := At} = Alarm} <- Items, Severity =:= none orelse atom_to_binary(Is) =:= Severity,
                              Node =:= none orelse lists:any(fun(One) -> atom_to_binary(One) =:= Node end, At)],
    case paged(desc, Chosen, Asked) of
        {ok, 200, {[{items, Now} | More]}} -> {ok, 200, {[{items, [atoll_watch_json:alarm(Alarm) || Alarm <- Now]} | More]}}
    end.

alarm(Status, Id) ->
    case atoll_watch_store:alarm(Id) of
        {ok, Alarm} -> {ok, Status, atoll_watch_json:alarm(Alarm)};
        error -> {error, 404, atoll_watch_alarm:format_error({no_alarm, Id})}
    end.

acknowledge(Id, Request) ->
    #{<<"who">> := Who} = fields_of(Request, [{<<"who">>, text, 1, 100}]),
    done(200, Id, atoll_watch:acknowledge(atoll_watch_store:watch(), Id, Who), Request, "acknowledged alarm ~b for ~ts", [Id, Who]).

comment(Id, Request) ->
    #{<<"who">> := Who, <<"text">> := Text} = fields_of(Request, [{<<"who">>, text, 1, 100}, {<<"text">>, text, 1, 1000}]),
    done(201, Id, atoll_watch:comment(atoll_watch_store:watch(), Id, Who, Text), Request, "commented on alarm ~b for ~ts", [Id, Who]).

done(Status, Id, ok, Request, Format, Args) ->
    ok = atoll_watch_store:sync(),
    logged(Request, Format, Args),
    alarm(Status, Id);
done(_, _, {error, {no_alarm, _} = Error}, _, _, _) ->
    {error, 404, atoll_watch_alarm:format_error(Error)};
done(_, _, {error, Error}, _, _, _) ->
    {error, 409, atoll_watch_alarm:format_error(Error)}.

-define(SEVERITIES, [<<"critical">>, <<"major">>, <<"minor">>, <<"warning">>, <<"info">>]).

notifications(Request) ->
    #{search := Search, severity := Severity, node := Node, kind := Kind} = Asked =
        query(Request, page() ++ [{search, {text, none}}, {severity, {one_of, ?SEVERITIES, <<"info">>}}, {node, {text, none}}, {kind, {text, none}}]),
    {As, [_ | _]} = lists:splitwith(fun(Is) -> Is =/= Severity end, ?SEVERITIES),
    Severe = [binary_to_existing_atom(Is) || Is <- [Severity | As]],
    Chosen = [
        {{Id, 0}, Note}
     || #{id := Id, severity := Is, kind := Of, node := At, text := Text} = Note <- atoll_watch_store:notes(), lists:member(Is, Severe),
        Kind =:= none orelse atom_to_binary(Of) =:= Kind, Node =:= none orelse atom_to_binary(At) =:= Node,
        Search =:= none orelse has(Search, Text) orelse (At =/= none andalso has(Search, atom_to_binary(At)))
    ],
    case paged(desc, Chosen, Asked) of
        {ok, 200, {[{items, Now} | More]}} -> {ok, 200, {[{items, [atoll_watch_json:note(Note) || Note <- Now]} | More]}}
    end.

%% What runs on a node

processes(Name, Request) ->
    #{sort := Sort, limit := Most} = query(Request, [{sort, {one_of, [<<"memory">>, <<"reductions">>, <<"queue">>], <<"memory">>}}, {limit, {whole, 1, 100, 20}}]),
    Item = case Sort of <<"memory">> -> memory; <<"reductions">> -> reductions; <<"queue">> -> message_queue_len end,
    {Pairs} = of_node(Name, explored(Name, {processes, Item, Most})),
    {ok, 200, {[{sort, Sort} | Pairs]}}.

of_node(Name, Told) ->
    {Pairs} = object(Told),
    {[{node, Name} | Pairs]}.

%% Of maps, lists and what is in them.
object(#{} = Map) -> {[{Key, object(Value)} || {Key, Value} <- maps:to_list(Map)]};
object(List) when is_list(List) -> [object(Value) || Value <- List];
object(Value) -> Value.

named(Text) when byte_size(Text) =< 255 -> unicode:characters_to_list(Text);
named(_) -> wrong("A process has a shorter name.").

explored(Name, Question) ->
    case row(Name) of
        #{node := Node, state := up} ->
            case atoll_watch_explore:ask(atoll_watch_store:watch(), Node, Question) of
                {ok, Told} -> Told;
                {error, Reason} ->
                    Status = case Reason of not_found -> 404; not_connected -> 409; _ -> 504 end,
                    throw({error, Status, atoll_watch_explore:format_error(Node, Reason)})
            end;
        #{state := State} ->
            throw({error, 409, [Name, " is ", atom_to_list(State), "; only a node that is up can be asked."]})
    end.

topology() -> {ok, 200, atoll_watch_json:topology(told(), ?LINKS)}.

told() ->
    case atoll_watch_topology:ask() of
        {ok, Told} -> Told;
        {error, Sentence} -> throw({error, 503, Sentence})
    end.

%% All of them, circuits among them, however many.
links(Request) ->
    #{node := Node} = Asked = query(Request, page() ++ [{node, {text, none}}]),
    #{links := Links} = told(),
    paged(asc, lists:sort([
        {<<(key(From))/binary, 0, (key(To))/binary, 0, (iolist_to_binary(io_lib:format("~0tp", [Kind])))/binary>>, atoll_watch_json:link(Link)}
     || #{from := From, to := To, kind := Kind} = Link <- Links, Node =:= none orelse Node =:= key(From) orelse Node =:= key(To)
    ]), Asked).
