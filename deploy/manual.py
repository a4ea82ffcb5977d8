"""Writes the manual pages and the shell completions that a package brings, from the command line.

python deploy/manual.py DIRECTORY

makes share/man/man1/, share/bash-completion/completions/, share/zsh/vendor-completions/ and
share/fish/vendor_completions.d/ in it.
"""

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from service.cli import app, installed_version

SHELLS = {
    "bash": "bash-completion/completions/walltimed",
    "zsh": "zsh/vendor-completions/_walltimed",
    "fish": "fish/vendor_completions.d/walltimed.fish",
}
WALLTIMED = Path(sys.executable).with_name("walltimed")


def main(directory: Path) -> None:
    """Write all pages and completions."""
    share = directory / "share"
    for name, page in pages().items():
        file = share / "man" / "man1" / f"{name}.1.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(page.encode(), mtime=0))
    for shell, place in SHELLS.items():
        file = share / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(completion(shell), encoding="utf-8")


def completion(shell: str) -> str:
    """Return the completion script for a shell."""
    environment = os.environ | {"_WALLTIMED_COMPLETE": f"source_{shell}"}
    command = [str(WALLTIMED)]
    return subprocess.run(  # noqa: S603 - our own command
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def pages() -> dict[str, str]:
    """Return the manual pages by name: one of walltimed and one of each command."""
    whole: Any = get_command(app)
    commands = dict(walk("walltimed", whole.commands))
    found = {name_of(words): page_of(words, command) for words, command in commands.items()}
    summary = [
        f".TP\n.BR {roff(name_of(words))} (1)\n{roff(first_line(command))}"
        for words, command in commands.items()
    ]
    body = [roff(whole.help), ".SH COMMANDS", *summary, ".SH EXIT STATUS", roff(whole.epilog)]
    found["walltimed"] = page("walltimed", whole.help.rstrip("."), body, "COMMAND ...")
    return found


def walk(before: str, commands: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every command with its words; a group comes as its members."""
    for name, command in commands.items():
        inner = getattr(command, "commands", None)
        if inner:
            yield from walk(f"{before} {name}", inner)
        else:
            yield f"{before} {name}", command


def name_of(words: str) -> str:
    """Return the name of the page of a command."""
    return words.replace(" ", "-")


def page_of(words: str, command: Any) -> str:
    """Return the page of one command."""
    options = [each for each in command.params if each.param_type_name == "option"]
    arguments = [each for each in command.params if each.param_type_name != "option"]
    called = " ".join(each.metavar or each.name.upper() for each in arguments)
    listed = [f".TP\n.B {roff(spelt(each))}\n{roff(meaning(each))}" for each in options]
    body = [*paragraphs(command.help), *([".SH OPTIONS", *listed] if listed else [])]
    return page(words, first_line(command), body, f"[OPTIONS] {called}".strip())


def page(words: str, summary: str, body: list[str], called: str) -> str:
    """Return a page with its headings."""
    name = name_of(words)
    return "\n".join(
        [
            f'.TH "{roff(name.upper())}" 1 "" "walltimed {installed_version()}" "User Commands"',
            ".SH NAME",
            f"{roff(name)} \\- {roff(summary)}",
            ".SH SYNOPSIS",
            f".B {roff(words)}\n{roff(called)}",
            ".SH DESCRIPTION",
            *body,
            ".SH SEE ALSO",
            ".BR walltimed (1),\nthe pages under /usr/share/doc/walltimed",
            "",
        ]
    )


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; indented examples keep their lines."""
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.strip()]
        if lines and all(line.startswith("    ") for line in lines):
            yield "\n".join([".nf", *(roff(line) for line in lines), ".fi"])
        else:
            yield f".PP\n{roff(' '.join(block.split()))}"


def first_line(command: Any) -> str:
    """Return the first sentence of the help."""
    return " ".join(command.help.split("\n\n")[0].split()).rstrip(".")


def spelt(option: Any) -> str:
    """Return all names of an option, with the one that turns a switch off."""
    on, off = ", ".join(option.opts), ", ".join(option.secondary_opts)
    return f"{on} / {off}" if off else on


def meaning(option: Any) -> str:
    """Return the help of an option, with its default."""
    text = " ".join((option.help or "").split())
    plain = isinstance(option.default, (str, int, float)) and not isinstance(option.default, bool)
    return f"{text} Default: {option.default}." if plain else text


def roff(text: str) -> str:
    """Return text with the characters escaped that roff would interpret."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return f"\\&{safe}" if safe[:1] in {".", "'"} else safe


if __name__ == "__main__":
    main(Path(sys.argv[1]))
