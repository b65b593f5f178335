"""Colors of a console block: commands, and what they printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import Generic, Text
from sphinx.application import Sphinx


class ConsoleLexer(Lexer):  # type: ignore[misc]  # Pygments has no types
    """A line that begins with ``$ `` is a command, up to one that does not end with a backslash.

    Pygments' own takes more for a prompt: lines of output that begin with ``#`` or ``(word)``.
    """

    name = "Console"
    aliases: ClassVar[list[str]] = ["console"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Prompts, commands and output, line by line."""
        place, goes_on = 0, False
        for line in text.splitlines(keepends=True):
            prompt = line[:2] if line.startswith("$ ") and not goes_on else ""
            kind = Text if prompt or goes_on else Generic.Output
            if prompt:
                yield place, Generic.Prompt, prompt
            yield place + len(prompt), kind, line[len(prompt) :]
            goes_on = kind is Text and line.rstrip("\n").endswith("\\")
            place += len(line)


def setup(app: Sphinx) -> None:
    """In place of the lexer of that name."""
    app.add_lexer("console", ConsoleLexer)
