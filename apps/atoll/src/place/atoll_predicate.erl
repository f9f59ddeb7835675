%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node must be like to be chosen: conditions on attributes, as terms or as
%% text (`atoll_predicate_text').
%%
%% <dl>
%% <dt>`{Name, Op, Const}'</dt><dd>the attribute compared with a constant. `Op' is `eq',
%%   `ne', `lt', `le', `gt' or `ge', in the order of Erlang's terms: 2000 equals 2000.0, and
%%   any number is less than any atom.</dd>
%% <dt>`{Name, true}', and with `false', `yes' and `no'</dt><dd>the attribute is exactly
%%   that.</dd>
%% <dt>`{''and'', Predicates}', `{''or'', Predicates}', `{''not'', Predicate}'</dt><dd>and a
%%   list, which says the same as `and'.</dd>
%% <dt>`{}'</dt><dd>any node; so is an empty list.</dd>
%% </dl>
%%
%% An attribute that a node does not have, or that cannot be evaluated there, is
%% `undefined', and matches nothing, neither `eq' nor `ne'. Logic has three values for that:
%% a comparison with what is undefined is `unknown', and so is its negation; `and' is unknown
%% if nothing in it is false, `or' if nothing in it is true. Only a node of which the whole is
%% true is chosen. So neither `{gpu, eq, 1}' nor `{''not'', {gpu, eq, 1}}' chooses a node that
%% says nothing of a gpu.
-module(atoll_predicate).

-export([new/1, any/0, names/1, holds/2, value/2, to_text/1, format_error/1]).

-export_type([predicate/0, source/0, name/0, value/0, values/0, truth/0, error/0]).

-type name() :: atom().
-type value() :: term().
-type values() :: #{name() => value()}.
%% What is not in it is undefined.

-type op() :: eq | ne | lt | le | gt | ge.

-opaque predicate() ::
    {all, [predicate()]}
    | {some, [predicate()]}
    | {'not', predicate()}
    | {is, name(), true | false | yes | no}
    | {op(), name(), term()}.

-type source() :: tuple() | [source()] | string() | binary().

-type truth() :: true | false | unknown.

-type error() ::
    {not_a_predicate, term()}
    | {no_such_op, Op :: term(), Whole :: tuple()}
    | {not_a_name, term(), Whole :: tuple()}
    | {text, atoll_predicate_text:error()}.

-define(OPS, [eq, ne, lt, le, gt, ge]).

%% @doc Checks a predicate; a string or a binary is read as text.
-spec new(source()) -> {ok, predicate()} | {error, error()}.
new([Char | _] = Text) when is_integer(Char) ->
    text(Text);
new(Text) when is_binary(Text) ->
    text(Text);
new(Term) ->
    try
        {ok, checked(Term)}
    catch
        throw:{?MODULE, Error} -> {error, Error}
    end.

text(Text) ->
    case atoll_predicate_text:parse(Text) of
        {ok, Term} -> new(Term);
        {error, Error} -> {error, {text, Error}}
    end.

%% @doc What every node is.
-spec any() -> predicate().
any() ->
    {all, []}.

checked({}) ->
    {all, []};
checked({'not', Term}) ->
    {'not', checked(Term)};
checked({'and', Terms}) when length(Terms) >= 0 ->
    {all, [checked(Term) || Term <- Terms]};
checked({'or', Terms}) when length(Terms) >= 0 ->
    {some, [checked(Term) || Term <- Terms]};
checked({Name, Truth} = Whole) when Truth =:= true; Truth =:= false; Truth =:= yes; Truth =:= no ->
    {is, checked_name(Name, Whole), Truth};
checked({Name, Op, Const} = Whole) ->
    case lists:member(Op, ?OPS) of
        true -> {Op, checked_name(Name, Whole), Const};
        false -> throw({?MODULE, {no_such_op, Op, Whole}})
    end;
checked(Terms) when length(Terms) >= 0 ->
    {all, [checked(Term) || Term <- Terms]};
checked(Other) ->
    throw({?MODULE, {not_a_predicate, Other}}).

checked_name(Name, _Whole) when is_atom(Name) -> Name;
checked_name(Other, Whole) -> throw({?MODULE, {not_a_name, Other, Whole}}).

%% @doc The attributes that it speaks of, each once, sorted.
-spec names(predicate()) -> [name()].
names(Predicate) ->
    lists:usort(named(Predicate)).

named({all, Parts}) -> lists:append([named(Part) || Part <- Parts]);
named({some, Parts}) -> lists:append([named(Part) || Part <- Parts]);
named({'not', Part}) -> named(Part);
named({_, Name, _}) -> [Name].

%% @doc Whether a node with these attributes fits.
-spec holds(predicate(), values()) -> boolean().
holds(Predicate, Values) ->
    value(Predicate, Values) =:= true.

%% @doc What is known of it, of a node with these attributes.
-spec value(predicate(), values()) -> truth().
value({all, Parts}, Values) ->
    conjunction(Parts, Values, true);
value({some, Parts}, Values) ->
    negated(conjunction([{'not', Part} || Part <- Parts], Values, true));
value({'not', Part}, Values) ->
    negated(value(Part, Values));
value({Op, Name, Const}, Values) ->
    case Values of
        #{Name := Value} when Value =/= undefined -> compare(Op, Value, Const);
        #{} -> unknown
    end.

conjunction([], _Values, Truth) ->
    Truth;
conjunction([Part | Parts], Values, Truth) ->
    case value(Part, Values) of
        true -> conjunction(Parts, Values, Truth);
        unknown -> conjunction(Parts, Values, unknown);
        false -> false
    end.

negated(true) -> false;
negated(false) -> true;
negated(unknown) -> unknown.

compare(is, Value, Const) -> Value =:= Const;
compare(eq, Value, Const) -> Value == Const;
compare(ne, Value, Const) -> Value /= Const;
compare(lt, Value, Const) -> Value < Const;
compare(le, Value, Const) -> Value =< Const;
compare(gt, Value, Const) -> Value > Const;
compare(ge, Value, Const) -> Value >= Const.

%% @doc The text that says the same. What text cannot say, a pid for instance, is shown as
%% Erlang shows it.
-spec to_text(predicate()) -> unicode:chardata().
to_text({all, []}) -> "{}";
to_text({all, [Part]}) -> to_text(Part);
to_text({all, Parts}) -> lists:join(" and ", [in_brackets(Part) || Part <- Parts]);
to_text({some, []}) -> "not {}";
to_text({some, [Part]}) -> to_text(Part);
to_text({some, Parts}) -> lists:join(" or ", [in_brackets(Part) || Part <- Parts]);
to_text({'not', Part}) -> ["not ", in_brackets(Part)];
to_text({is, Name, true}) -> atoll_predicate_text:name(Name);
to_text({is, Name, Const}) -> [atoll_predicate_text:name(Name), " is ", atom_to_list(Const)];
to_text({Op, Name, Const}) -> [atoll_predicate_text:name(Name), sign(Op), io_lib:format("~0tp", [Const])].

in_brackets({Kind, [_, _ | _]} = Part) when Kind =:= all; Kind =:= some -> [$(, to_text(Part), $)];
in_brackets({Kind, [Part]}) when Kind =:= all; Kind =:= some -> in_brackets(Part);
in_brackets(Part) -> to_text(Part).

sign(eq) -> " == ";
sign(ne) -> " != ";
sign(lt) -> " < ";
sign(le) -> " <= ";
sign(gt) -> " > ";
sign(ge) -> " >= ".

%% @doc One sentence for an error.
-spec format_error(error()) -> unicode:chardata().
format_error({not_a_predicate, Term}) ->
    io_lib:format(
        "~0tP is no condition on attributes, such as {mem_free, gt, 1000000} or {storage, true}", [Term, 12]
    );
format_error({no_such_op, Op, Whole}) ->
    io_lib:format("in ~0tP there is ~0tP where one of eq, ne, lt, le, gt and ge should be", [Whole, 12, Op, 8]);
format_error({not_a_name, Name, Whole}) ->
    io_lib:format("in ~0tP there is ~0tP where the name of an attribute, an atom, should be", [Whole, 12, Name, 8]);
format_error({text, Error}) ->
    atoll_predicate_text:format_error(Error).
