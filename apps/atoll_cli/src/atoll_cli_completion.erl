%% SPDX-License-Identifier: Apache-2.0
%% @doc `atoll completion': what a shell is told so that it completes command lines, made of the
%% tables of the commands and of their options.
-module(atoll_cli_completion).
-behaviour(atoll_cli_command).

-export([summary/0, options/0, operands/0, examples/0, run/2]).

-type command() :: {Words :: [string()], [atoll_cli_options:option()], Summary :: string()}.

-spec summary() -> string().
summary() -> "print what makes bash, zsh or fish complete command lines of atoll".

-spec options() -> [atoll_cli_options:option()].
options() -> [].

-spec operands() -> [string()].
operands() -> ["SHELL"].

-spec examples() -> [string()].
examples() -> ["atoll completion bash", "atoll completion zsh", "atoll completion fish"].

-spec run(atoll_cli_options:values(), [string()]) -> atoll_cli_command:outcome().
run(_, [Shell]) ->
    case Shell of
        "bash" -> atoll_cli_io:print(bash(all()));
        "zsh" -> atoll_cli_io:print(["#compdef atoll\n", "autoload -U +X bashcompinit && bashcompinit\n", bash(all())]);
        "fish" -> atoll_cli_io:print(fish(all()));
        _ -> {usage, ["SHELL must be bash, zsh or fish, not \"", Shell, $"]}
    end.

-spec all() -> [command()].
all() ->
    [{string:lexemes(Name, " "), Module:options(), Module:summary()} || {Name, Module} <- atoll_cli_commands:all()].

firsts(Commands) ->
    lists:uniq([First || {[First | _], _, _} <- Commands]).

%% In zsh too, which reads bash's words. `$words' are those before the one that is typed.
bash(Commands) ->
    [
        "# atoll completion bash, or zsh: put it where your shell reads it, or  eval \"$(atoll completion bash)\"\n"
        "_atoll() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
        "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n",
        [branch([First, Second], Options, []) || {[First, Second], Options, _} <- Commands],
        "    *)\n"
        "        case \"${COMP_WORDS[1]}\" in\n",
        [["    ", branch([First], Options, [Second || {[Its, Second], _, _} <- Commands, Its =:= First])] || {[First], Options, _} <- Commands],
        [["        ", First, ") [ \"$COMP_CWORD\" -ne 2 ] || words='", spaced(atoll_cli_commands:members(First)), "' ;;\n"] || {First, _} <- atoll_cli_commands:groups()],
        "        esac ;;\n"
        "    esac\n"
        "    [ \"$COMP_CWORD\" -ne 1 ] || words='", spaced(firsts(Commands)), "'\n"
        "    if [ \"${COMP_WORDS[1]}\" = help ]; then words='", spaced(firsts(Commands)), "'; fi\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
        "}\n"
        "complete -o default -F _atoll atoll\n"
    ].

%% A word that is a command may be the first of others, too.
branch(Words, Options, Seconds) ->
    ["    \"", spaced(Words), "\") [ \"$COMP_CWORD\" -le ", integer_to_list(length(Words)), " ] || case $before in ",
     [[lists:join($|, Valued), ") ;; "] || Valued <- [[Flag || #{value := _} = Option <- Options, Flag <- spellings(Option)]], Valued =/= []],
     "*) words='", spaced(Seconds ++ flags(Options)), "' ;; esac ;;\n"].

%% After these comes a value: a file, maybe.
spellings(#{name := Name, short := Short}) -> [atoll_cli_options:flag(Name), [$-, Short]];
spellings(#{name := Name}) -> [atoll_cli_options:flag(Name)].

flags(Options) ->
    [atoll_cli_options:flag(Name) || #{name := Name} <- Options] ++ ["--help"].

fish(Commands) ->
    [
        "# atoll completion fish: put it into ~/.config/fish/completions/atoll.fish\n"
        "function __atoll_is; set -l words (commandline -opc); test \"$words[2..]\" = \"$argv\"; end\n"
        "function __atoll_in; set -l words (commandline -opc); string match -q -- \"$argv *\" \"$words[2..] \"; end\n",
        [["complete -c atoll -f -n '__atoll_is' -a ", First, " -d ", quoted(said(First, Commands)), $\n] || First <- firsts(Commands)],
        [
            ["complete -c atoll -f -n '__atoll_is ", First, "' -a ", Second, " -d ", quoted(Summary), $\n]
         || {[First, Second], _, Summary} <- Commands
        ],
        [
            ["complete -c atoll -n '__atoll_in ", spaced(Words), "'", [[" -s ", Short] || #{short := Short} <- [Option]],
             " -l ", tl(tl(atoll_cli_options:flag(Name))), [" -r" || is_map_key(value, Option)], " -d ", quoted(Help), $\n]
         || {Words, Options, _} <- Commands, #{name := Name, help := Help} = Option <- Options
        ],
        ["complete -c atoll -f -n '__atoll_is help' -a '", spaced(firsts(Commands)), "'\n"],
        "complete -c atoll -l help -d 'say how it is used'\n"
    ].

said(First, Commands) ->
    case [Summary || {[Word], _, Summary} <- Commands, Word =:= First] of
        [Summary] -> Summary;
        [] -> element(2, lists:keyfind(First, 1, atoll_cli_commands:groups()))
    end.

spaced(Words) -> lists:join($\s, Words).

%% For fish.
quoted(Text) ->
    [$', [case C of $' -> "\\'"; $\\ -> "\\\\"; _ -> C end || C <- unicode:characters_to_list(Text)], $'].
