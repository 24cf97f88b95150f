"""Bash completion for ``serene-switch``, generated from its option parsers."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

FILES, FOLDERS = {"FILE"}, {"DIR"}  # by the metavar that the option's help shows
SCRIPT = """\
_serene_switch() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} options={own} each
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
        [[ $each == -- ]] && options={further}
    done
    case $before in
{values}
        *)
            if [[ $word == -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
            else
                mapfile -t COMPREPLY < <(compgen -f -X '!*.json' -- "$word"; compgen -d -- "$word")
            fi ;;
    esac
}}
complete -o filenames -F _serene_switch serene-switch serene-switch-grpc
"""


def script(own: argparse.ArgumentParser, further: argparse.ArgumentParser) -> str:
    """The completion script for the options before and after the ``--``."""
    return SCRIPT.format(
        own=shlex.quote(" ".join([*_options(own), "--"])),
        further=shlex.quote(" ".join(_options(further))),
        values="\n".join(_values([*own._actions, *further._actions])),
    )


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [option for action in parser._actions for option in action.option_strings if option.startswith("--")]


def _values(actions: Sequence[argparse.Action]) -> list[str]:
    """A case for each option that takes a value."""
    cases = []
    for action in actions:
        if not action.option_strings or action.nargs == 0:
            continue
        if action.choices:
            found = f"compgen -W {shlex.quote(' '.join(map(str, action.choices)))}"
        elif action.metavar in FILES | FOLDERS:
            found = "compgen -f" if action.metavar in FILES else "compgen -d"
        else:
            found = "true"  # any text: nothing to complete
        cases.append(f'        {"|".join(action.option_strings)}) mapfile -t COMPREPLY < <({found} -- "$word") ;;')
    return cases
