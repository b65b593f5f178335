"""Formulas in plain text are set; a console block knows commands from what they printed."""

from __future__ import annotations

import sys

from support.site import ROOT

sys.path.append(str(ROOT / "docs" / "_ext"))  # where the settings of the site put it, too

from incrowd_site.console_lexer import ConsoleLexer
from incrowd_site.page_style import format_formulas
from incrowd_site.session import split_commands


def parts(text: str) -> list[tuple[str, str]]:
    return [(node.tagname, node.astext()) for node in format_formulas(text) if node.astext()]


def test_exponents_are_raised_and_indices_lowered() -> None:
    assert parts("δ = e^(−ε(r+1)) of P_{n−1}") == [
        ("#text", "δ = e"), ("superscript", "−ε(r+1)"), ("#text", " of P"), ("subscript", "n−1"),
    ]  # fmt: skip
    assert parts("β^k, e^−ε Q") == [
        ("#text", "β"), ("superscript", "k"), ("#text", ", e"), ("superscript", "−ε"),
        ("#text", " Q"),
    ]  # fmt: skip


def test_the_end_of_a_sentence_is_no_exponent() -> None:
    assert parts("beyond e^ε. At e^0.5.") == [
        ("#text", "beyond e"), ("superscript", "ε"), ("#text", ". At e"), ("superscript", "0.5"),
        ("#text", "."),
    ]  # fmt: skip


def test_names_are_no_formulas() -> None:
    assert parts("salary_class, a_bc and ^ alone") == [("#text", "salary_class, a_bc and ^ alone")]


def test_output_that_looks_like_a_prompt_is_output() -> None:
    text = "$ init \\\n    --all\n# Drafted\n(zip) $ 3\n"
    kinds = [(str(kind), part) for _, kind, part in ConsoleLexer().get_tokens_unprocessed(text)]
    assert kinds == [
        ("Token.Generic.Prompt", "$ "), ("Token.Text", "init \\\n"), ("Token.Text", "    --all\n"),
        ("Token.Generic.Output", "# Drafted\n"), ("Token.Generic.Output", "(zip) $ 3\n"),
    ]  # fmt: skip


def test_commands_go_on_after_a_backslash() -> None:
    assert split_commands("$ a \\\n  b\n$ c") == ["a \\\n  b", "c"]
