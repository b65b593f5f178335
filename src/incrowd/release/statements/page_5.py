"""The page of a certificate of format 5, from the certificate alone: HTML for readers of contracts.

Whoever verifies a release writes it again and compares, so its words never change. It loads
nothing, runs nothing, and reads well on paper, on a phone, in light and in dark.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from incrowd.release.statements.promises_5 import (
    code,
    done,
    explained,
    in_short,
    not_promised,
    plain,
    promised,
)

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate, SchemeColumn

_STYLE = """\
:root { color-scheme: light dark; --ink: #1d2733; --soft: #51606f; --ground: #ffffff;
  --panel: #f3f6f9; --line: #cfd8e1; --accent: #0b4f8a; --warn: #8a1c14; --warn-ground: #fdecea; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4eaf0; --soft: #a9b6c3; --ground: #14191f;
  --panel: #1e252d; --line: #3a4652; --accent: #8cc4f5; --warn: #ffb4ab; --warn-ground: #3b1512; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.2rem 3rem; max-width: 50rem; color: var(--ink);
  background: var(--ground); font: 1rem/1.6 "Iowan Old Style", Charter, Georgia, serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0.2rem 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.5rem; padding-top: 0.9rem;
  border-top: 1px solid var(--line); }
p, ul, ol { margin: 0.6rem 0; } li { margin: 0.35rem 0; } ul, ol { padding-left: 1.3rem; }
code, pre { font: 0.87em/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, monospace;
  overflow-wrap: anywhere; }
pre { background: var(--panel); padding: 0.7rem 0.9rem; white-space: pre-wrap; }
.kind { color: var(--accent); margin: 0; font-weight: 600; letter-spacing: 0.02em; }
.short { background: var(--panel); border-left: 4px solid var(--accent); padding: 0.3rem 1.1rem; }
.warn { background: var(--warn-ground); color: var(--warn); border-left: 4px solid var(--warn);
  padding: 0.7rem 1.1rem; font-weight: 600; }
.wide { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; width: 100%; font-size: 0.95rem; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.9rem 0.4rem 0;
  border-bottom: 1px solid var(--line); }
td:first-child code { white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 600; width: 11rem; }
blockquote { margin: 0.8rem 0; padding: 0 1.1rem; border-left: 4px solid var(--line); }
@media (max-width: 30rem) { body { padding: 1.2rem 0.9rem 2rem; } h1 { font-size: 1.4rem; }
  tbody th { width: auto; } }
@media print { @page { margin: 18mm; } :root { color-scheme: light; --ink: #000; --soft: #333;
  --ground: #fff; --panel: #f3f3f3; --line: #bbb; --accent: #0b4f8a; --warn: #8a1c14;
  --warn-ground: #fff; }
  body { max-width: none; padding: 0; font-size: 10.5pt; } h2 { break-after: avoid; }
  tr, .short, blockquote, pre { break-inside: avoid; } .wide { overflow: visible; } }"""
_REHEARSAL = (
    "This is a rehearsal. The table was made up from its description, no row tells of anybody, and "
    "nothing is promised. The page shows what would be said of a release of the real table."
)
_SEEDED = (
    "Not private. The random numbers of this release came from a seed, for tests; whoever knows or "
    "guesses it can undo them. Nothing is promised."
)


def page(certificate: Certificate) -> str:
    """The page."""
    files = [table.release.file for table in certificate.tables]
    title = (
        f"Certificate of {files[0]}" if len(files) == 1 else f"Certificate of {len(files)} files"
    )
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        (
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "style-src 'unsafe-inline'\">"
        ),
        f"<title>{plain(title)}</title>",
        f"<style>\n{_STYLE}\n</style>",
        "</head>",
        "<body>",
        "<main>",
        f'<p class="kind">{plain(certificate.guarantee.kind)}</p>',
        f"<h1>{plain(title)}</h1>",
        *_warnings(certificate),
        f'<div class="short">{"".join(f"<p>{words}</p>" for words in in_short(certificate))}</div>',
        _facts(certificate),
        _section("What is promised, and to whom", promised(certificate)),
        _section("What is not promised", _list(not_promised(certificate))),
        _section(
            "The statement, word for word",
            f"<blockquote><p>{plain(certificate.guarantee.statement)}</p></blockquote>",
        ),
        _section("What was done", "".join(f"<p>{words}</p>" for words in done(certificate)))
        + _columns(certificate),
        _section("The parameters, explained", _parameters(certificate)),
        _section("The files", _files(certificate)),
        _section("How to check this", _check(certificate)),
        _section("Seal and signature", _signature(certificate)),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _warnings(certificate: Certificate) -> list[str]:
    words = [_REHEARSAL] if certificate.rehearsal else []
    words += [_SEEDED] if certificate.randomness != "system" else []
    return [f'<p class="warn">{text}</p>' for text in words]


def _facts(certificate: Certificate) -> str:
    known, tables = certificate.guarantee, certificate.tables
    rows = sum(table.release.rows for table in tables)
    smallest = min((table.release.smallest_class for table in tables), default=0)
    promise = plain(known.kind)
    if known.epsilon is not None and known.delta is not None:
        promise += f"; &epsilon; = {known.epsilon!r}, &delta; = {known.delta!r}"
    signed = (
        "not signed"
        if certificate.signature is None
        else f"with the key {code(certificate.signature.public_key)}"
    )
    groups = f"{rows:,} in {len(tables):,} files" if len(tables) > 1 else f"{rows:,}"
    return _table(
        [],
        [
            ["Released on", plain(certificate.date)],
            ["Kind of promise", promise],
            ["Protects", plain(known.unit)],
            [
                "Rows published",
                f"{groups}; the smallest group that looks alike has {smallest:,}",
            ],
            ["Method", f"{code(certificate.method)}, Incrowd {plain(certificate.incrowd)}"],
            ["Signed", signed],
        ],
        named=True,
    )


def _columns(certificate: Certificate) -> str:
    rows = []
    for table in certificate.tables:
        several = f" ({code(table.release.file)})" if len(certificate.tables) > 1 else ""
        rows += [
            [f"{code(name)}{several}", *_shown(column)] for name, column in table.scheme.items()
        ]
    rows += [[code(name), "as it was", ""] for name in certificate.kept]
    for name, grid in certificate.noisy.items():
        bounds = f", from {plain(grid.bounds[0])} to {plain(grid.bounds[1])}" if grid.bounds else ""
        what = "a day" if grid.kind == "date" else "a number"
        rows.append([code(name), f"{what} with noise", f"in steps of {plain(grid.step)}{bounds}"])
    return _table(["column", "shows", "by"], rows)


def _shown(column: SchemeColumn) -> list[str]:
    level = "any level" if column.level is None else f"level {column.level}"
    shows = "nothing" if column.labels == "nothing" else f"{plain(str(column.labels))}, {level}"
    if column.file is not None:
        by = f"{code(column.file)}, which lists every value"
    else:
        by = f"a rule: {code(json.dumps(column.rule, sort_keys=True))}"
    if column.other is not None:
        by += f"; {code(column.other)} is any other value"
    return [shows, by]


def _parameters(certificate: Certificate) -> str:
    return _table(["parameter", "value", "meaning"], [list(row) for row in explained(certificate)])


def _files(certificate: Certificate) -> str:
    rows = []
    listed: dict[str, str] = {}
    for table in certificate.tables:
        release = table.release
        rows.append(
            [
                code(release.file),
                (
                    f"{release.rows:,} rows, {release.classes:,} groups that look the same, the "
                    f"smallest of {release.smallest_class:,}"
                ),
                code(release.sha256),
            ]
        )
        for column in table.scheme.values():
            if column.file is not None:
                listed[column.file] = column.sha256 or ""
    rows += [
        [code(file), "how a column was made coarser", code(sha)] for file, sha in listed.items()
    ]
    return _table(["file", "holds", "SHA-256"], rows)


def _check(certificate: Certificate) -> str:
    first = certificate.tables[0].release.file
    computed = (
        "epsilon and delta are computed anew from the steps that the certificate lists under "
        "<code>events</code>"
        if certificate.guarantee.epsilon is not None
        else "the statement is the one that follows from the parameters"
    )
    return (
        "<p>Whoever has this folder can check it, without asking its publisher:</p>"
        "<pre>pip install incrowd\nincrowd verify .</pre><p>That checks:</p>"
        + _list(
            [
                (
                    "no file was changed, is missing, or was added since the certificate was made, "
                    "and this page says what the certificate says"
                ),
                (
                    "every value is one that the column may show, and every group of rows that "
                    "look the same is as large as promised"
                ),
                computed,
            ]
        )
        + f"<p>One file by itself: <code>sha256sum {plain(first)}</code>, compared with the hash "
        "above. What nobody can check from this folder: what the original table was, that the "
        "random numbers were random, and what the publisher asserts of public knowledge.</p>"
        "<p>The certificate is <code>certificate.json</code>. This page is made from it and adds "
        "nothing to it; where the two differ, the certificate counts.</p>"
    )


def _signature(certificate: Certificate) -> str:
    rows = [["seal (SHA-256 of the certificate without it)", code(certificate.seal)]]
    if certificate.signature is None:
        words = (
            "<p>The certificate is not signed. It can be checked, but nothing here says who made "
            "it.</p>"
        )
    else:
        words = (
            "<p>Signed with Ed25519. The signature shows that whoever holds the private key made "
            "this certificate. Whose key it is, it does not show: compare it with one that you "
            "have from the publisher, or let the check do it: "
            "<code>incrowd verify . --key KEY</code>.</p>"
        )
        rows.append(["public key", code(certificate.signature.public_key)])
        rows.append(["signature", code(certificate.signature.value)])
    return words + _table([], rows, named=True)


def _section(title: str, content: str) -> str:
    return f"<h2>{title}</h2>\n{content}"


def _list(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, named: bool = False) -> str:
    """A table of markup; ``named`` if the first cell of each row says what the row is."""
    top = "".join(f'<th scope="col">{text}</th>' for text in head)
    lines = []
    for row in rows:
        cells = [f"<td>{cell}</td>" for cell in row]
        if named:
            cells[0] = f'<th scope="row">{row[0]}</th>'
        lines.append(f"<tr>{''.join(cells)}</tr>")
    top = f"<thead><tr>{top}</tr></thead>" if head else ""
    return (
        f'<div class="wide" tabindex="0"><table>{top}<tbody>{"".join(lines)}</tbody></table></div>'
    )
