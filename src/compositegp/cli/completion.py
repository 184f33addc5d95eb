"""compositegp completion: what a shell needs to complete the command."""

import argparse

from compositegp.cli.output import Output

_BASH = """_compositegp() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" verb="${{COMP_WORDS[1]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then words="{verbs}"; else
    case "$verb" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ "$current" == -* || "$COMP_CWORD" -eq 1 ]] || COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _compositegp compositegp
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("shell", choices=("bash", "zsh"), help="the shell")


def run(arguments: argparse.Namespace, output: Output) -> None:
    """Print a script to be sourced."""
    from compositegp.cli.app import build_parser

    commands = next(
        action.choices
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction) and isinstance(action.choices, dict)
    )
    cases = []
    for verb, parser in commands.items():
        options = " ".join(option for action in parser._actions for option in action.option_strings)
        cases.append(f'      {verb}) words="{options}" ;;')
    script = _BASH.format(verbs=" ".join(commands), cases="\n".join(cases))
    if arguments.shell == "zsh":
        script = "autoload -U +X bashcompinit && bashcompinit\n" + script
    print(script)
