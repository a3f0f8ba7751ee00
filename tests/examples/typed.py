"""Is this a command line that Betimes would take? It is held against the real commands, and not run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from betimes.cli.app import app

TREE = get_command(app)
USAGE_ERROR = cast(
    "type[Exception]", typer.BadParameter.__base__
)  # whatever is wrong with the use of a command
ENDS = {"|", "&&", "||", ";", "&", ">", "done"}


def logical_lines(text: str) -> list[str]:
    """Return the lines of a block, those that go on after a backslash as one, comments left out."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = [re.sub(r"(^|\s)#(\s.*)?$", "", line).strip() for line in joined.splitlines()]
    return [line for line in lines if line]


def betimes_words(line: str) -> Iterator[list[str]]:
    """Return what follows each `betimes` of a line."""
    words = shlex.split(line)
    for at, word in enumerate(words):
        if word == "betimes" and (at == 0 or words[at - 1] in ENDS):
            rest = words[at + 1 :]
            end = next((number for number, each in enumerate(rest) if each in ENDS), len(rest))
            yield rest[:end]


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the command and its values; a ValueError says what is wrong with a line."""
    command: Any = TREE
    context = typer.Context(command, info_name="betimes")
    names: list[str] = []
    try:
        while isinstance(command, TyperGroup):
            if not words:
                raise ValueError("a command is missing")
            name, command, words = command.resolve_command(context, words)
            names.append(str(name))
        return " ".join(names), command.make_context(names[-1], list(words), parent=context).params
    except USAGE_ERROR as error:
        raise ValueError(str(error)) from error


def named_files(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the files and folders that a command is given, with what it calls them."""
    for name, value in values.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, Path):
                yield name, str(each)


def unknown_words(words: list[str]) -> list[str]:
    """Return the command, or the options, that there are not; what values options are given is not looked at.

    >>> unknown_words(["sub", "--also", "URL"]), unknown_words(["sub", "--als"]), unknown_words(["subs"])
    ([], ['--als'], ['subs'])
    """
    command: Any = TREE
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        found = command.commands.get(words[0])
        if found is None:
            return [words[0]]
        command, words = found, words[1:]
    known = {option for each in command.params for option in each.opts + each.secondary_opts} | {"--help"}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
