"""What tests of HTML pages share: the outline of a page, and what it would load from elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_LOADING = {"src", "srcset", "data", "action", "formaction", "poster", "background", "ping"}
_VOID = {"meta", "img", "br", "hr", "input", "link"}


@dataclass
class Outline:
    """The elements of a page, their attributes, its text, and what stands in code."""

    tags: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    text: str = ""
    codes: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)


def read_outline(page: str) -> Outline:
    """What a browser would make of a page, more or less."""
    reader = _PageReader()
    reader.feed(page)
    reader.close()
    reader.found.text = " ".join("".join(reader.words).split())
    return reader.found


def list_external_loads(page: str) -> list[str]:
    """What a page would run, or load from anywhere: nothing, where it is self-contained."""
    reader = _PageReader()
    reader.feed(page)
    external_loads = [*reader.loads, *(tag for tag in reader.found.odd)]
    for style in re.findall(r"<style>(.*?)</style>", page, re.DOTALL):
        external_loads += re.findall(r"url\(|@import|expression", style)
    return external_loads


class _PageReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = Outline()
        self.words: list[str] = []
        self.loads: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.tags.append(tag)
        self.words.append(" " if tag not in ("code", "sup", "em") else "")
        if tag in ("script", "iframe", "object", "embed", "link", "base", "form", "image"):
            self.found.odd.append(tag)
        for name, value in attrs:
            self.found.attributes.append(f"{tag} {name}")
            link = name in ("href", "xlink:href") and not (value or "").startswith("#")
            if name in _LOADING or link or name.startswith("on"):
                self.loads.append(f"{tag} {name}={value}")
        if tag == "code":
            self.found.codes.append("")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["style"]:
            return
        self.words.append(data)
        if self._open[-1:] == ["code"]:
            self.found.codes[-1] += data
