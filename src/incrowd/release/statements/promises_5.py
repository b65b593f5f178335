"""What the page of a certificate of format 5 says of promises, parameters and limits: HTML.

The words never change. Whatever comes from a certificate is escaped here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from incrowd.privacy.counts import law_of
from incrowd.release.statements import Parameters, rules_of
from incrowd.release.statements.format_3 import noise_of

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate

_CONTROL = "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
WRONGLY = (0.001, 0.01, 0.05)
_MOST = 700.0  # an epsilon beyond which e^epsilon is no number of a computer


def plain(text: str) -> str:
    """Text as HTML takes it for nothing but text; control characters are spelled out."""
    return escape(re.sub(_CONTROL, lambda one: f"\\x{ord(one[0]):02x}", text))


def code(text: str) -> str:
    """Text as code."""
    return f"<code>{plain(text)}</code>"


def rightly(wrongly: float, epsilon: float, delta: float) -> float:
    """How often at most somebody is said to be in the table who is.

    ``wrongly`` is how often the same is said of somebody who is not. With P the probabilities with
    and Q those without a person, P(yes) <= e^epsilon Q(yes) + delta, and Q(no) <= e^epsilon P(no)
    + delta; whichever leaves less counts.
    """
    if epsilon > _MOST:
        return 1.0
    grown = math.exp(epsilon)
    return max(min(grown * wrongly + delta, 1 - (1 - wrongly - delta) / grown, 1.0), 0.0)


def factor(epsilon: float) -> str:
    """e^epsilon in four digits, rounded up."""
    if epsilon > _MOST:
        return "more than 1e304"
    grown = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(grown)) - 3)
    return f"{math.ceil(grown / unit) * unit:.4g}"


def at_most(share: float) -> str:
    """A share in per cent, rounded up."""
    return f"{min(math.ceil(share * 10_000) / 100, 100.0):.2f} %"


def in_short(certificate: Certificate) -> list[str]:
    """What these files are, in a few sentences."""
    known, several = certificate.tables[0].parameters, len(certificate.tables) > 1
    files = "Each file" if several else "The file"
    if certificate.by_counts:
        words = [
            (
                f"{files} says how many rows of each kind the original table has. Every number has "
                "random noise in it, columns were made coarser, and kinds that are rare are left "
                "out. No line is anybody's record."
            ),
        ]
    elif certificate.method == "safe":
        words = [
            (
                f"{files} has rows of the original table that were drawn at random, with columns "
                "made coarser. A row is left out unless many that look the same were drawn."
            ),
        ]
    elif known.get("algorithm") == "duplicate":
        words = ["The file has rows of the original table as they are, each in place of others."]
    else:
        noise = " and random noise in others" if certificate.noisy else ""
        words = [
            (
                f"The file has rows of the original table with some columns made coarser{noise}, "
                "so that in the coarser columns every row looks the same as others."
            )
        ]
    if several:
        words.append("The files show different columns of one table and are not to be joined.")
    words += _protected(certificate)
    return words


def _protected(certificate: Certificate) -> list[str]:
    known, k = certificate.guarantee, certificate.k
    if certificate.randomness != "system" or certificate.rehearsal:
        return []
    if known.epsilon is not None and known.delta is not None:
        worst = at_most(rightly(0.01, known.epsilon, known.delta))
        who = "person" if known.unit == "one person" else "row"
        return [
            (
                f"What is published is nearly as likely whether or not any one {who} is in "
                f"{whole(certificate)}. Whoever says from these data that a certain "
                f"{who} is in it, and is wrong about 1 in 100 of those that are not, is right "
                f"about at most {worst} of those that are."
            )
        ]
    if certificate.parameters.get("algorithm") == "duplicate":
        return []
    return [
        (
            f"Whoever knows of a person what the coarser columns show finds at least {k:,} rows "
            "that fit, or none, and cannot tell by these columns which of them is the person's."
        )
    ]


def whole(certificate: Certificate) -> str:
    """What it is that somebody is in or not, as far as the promise goes."""
    if certificate.sampled:
        return "the population of which the original table is a random sample"
    return "the original table"


def promised(certificate: Certificate) -> str:
    """What is promised, and to whom."""
    if certificate.rehearsal:
        return _p(
            "Nothing: the table was made up. The statement below is what would hold of the real "
            "one."
        )
    if certificate.randomness != "system":
        return _p("Nothing: the random numbers came from a seed, and whoever knows it undoes them.")
    known = certificate.guarantee
    if known.epsilon is None or known.delta is None:
        return _classes(certificate)
    person = known.unit == "one person"
    row = "the row of that person" if person else "that row"
    if certificate.sampled:
        to = f"To every {'person' if person else 'row'} of {whole(certificate)}"
    elif person:
        to = "To every person, each of whom has one row in what was used of the original table"
    else:
        to = "To every single row of the original table"
    words = _p(
        f"{to}: with or without {row}, the probability of any set of releases differs by a "
        f"factor of at most e<sup>&epsilon;</sup> = {factor(known.epsilon)}, plus &delta; = "
        f"{known.delta!r}. This is differential privacy with &epsilon; = {known.epsilon!r}. It "
        "holds whatever else a reader knows, now or later, and whatever they compute"
        f"{', as far as it goes' if certificate.sampled else ''}."
    )
    rows = "".join(
        f"<tr><td>{at_most(one)}</td><td>{at_most(rightly(one, known.epsilon, known.delta))}"
        "</td></tr>"
        for one in WRONGLY
    )
    words += _p(
        "What that means for somebody who has to say, from these data, whether a certain "
        f"{'person' if person else 'row'} is in {whole(certificate)}:"
    ) + (
        '<div class="wide"><table><thead><tr><th scope="col">says &ldquo;yes&rdquo; of so '
        'many who are not</th><th scope="col">and then of at most so many who are</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    if certificate.sampled:
        words += _p(
            "It goes to everybody of whom a reader does not know whether they are in the original "
            "table; the reader may know it of all others. To somebody who is known to be in the "
            "table less is promised."
        )
    if certificate.by_counts:
        words += _p(
            f"And to all of them: at least {certificate.k:,} rows of the original table stand "
            "behind every kind of row that is shown (k-anonymity), for certain."
        )
    else:
        words += _p(f"Every row shown looks the same as at least {certificate.k - 1:,} others.")
    return words


def _classes(certificate: Certificate) -> str:
    known, k = certificate.tables[0].parameters, certificate.k
    person = certificate.guarantee.unit == "one person"
    to = "To every person, of whom one row was used" if person else "To every row"
    words = _p(
        f"{to}: in the columns that were made coarser, it looks the same as at least {k - 1:,} "
        f"other rows of the file (k-anonymity, k = {k:,})."
    )
    if known.get("suppressed") == "starred":
        words += _p(
            "Rows that show <code>*</code> in every one of these columns stand for rows that are "
            "not shown; what is promised does not speak of them."
        )
    rules = [
        f"<li>{code(column)}: {plain(kind)} {value!r}</li>"
        for column, kind, value in rules_of(known)
    ]
    if rules:
        words += _p("Among the rows that look the same, also:") + f"<ul>{''.join(rules)}</ul>"
    if certificate.noisy:
        listed = _listed(certificate.noisy)
        if known.get("bounds") == "declared":
            words += _p(
                f"In {listed}: any two values within the declared bounds lead to any released "
                "value with probabilities that differ by a factor of at most e<sup>&epsilon;</sup> "
                f"= {factor(float(known['epsilon']))}"
                f"{', plus &delta;' if 'delta' in known else ''}. This is of the value, not of the "
                "rest of the row. Whether a value is missing is shown."
            )
        else:
            words += _p(
                f"In {listed}: random noise as wide as the values of rows that look the same. It "
                "blurs which of them a value came from; no limit on what it tells is promised. "
                "Where all of them have one value, it is shown without noise."
            )
    return words


def not_promised(certificate: Certificate) -> list[str]:
    """What nobody should read into the promise."""
    known = certificate.guarantee
    found = []
    if known.epsilon is None:
        found += [
            (
                "Differential privacy: nothing is promised of what the file as a whole tells of "
                "one person."
            ),
            (
                "That nobody learns a sensitive value. Where all rows that look the same share "
                "one, everybody who knows that a person is among them learns it."
            ),
            (
                "Anything against readers who know more of a person than the coarser columns show, "
                "or who know others among the rows that look the same: they can rule rows out."
            ),
        ]
        if certificate.kept:
            found.append(
                f"Anything of the columns that are shown as they are: {_listed(certificate.kept)}."
            )
        several = (
            "What several releases of one table tell together: this promise does not add up, and "
            "comparing releases may undo it."
        )
    else:
        several = (
            "What this release tells together with others of the same table: promises add up, to "
            "at most the sum of all &epsilon; and of all &delta;."
        )
    if known.unit == "one row":
        found.append(
            "The same to a person with several rows in the original table: the promise is to each "
            "row by itself, and weaker for all of a person's rows together."
        )
    found += [
        several,
        (
            "That nothing is learnt about people. What holds of many is likely to hold of a person "
            "who is like them, whether or not the original table has a row of that person."
        ),
        "That the data are exact. What was changed is under &lsquo;What was done&rsquo;.",
        "That the original table was complete or correct, or lawfully collected.",
        (
            "That a law or a contract is met. This page says what was done and what follows from "
            "it; what a law asks for, and whether this is enough, is for its reader to judge."
        ),
    ]
    if known.epsilon is not None:
        found.append(
            "What its publisher asserts and this folder cannot prove: that columns, levels, ranges "
            "and groups, as far as no mechanism named here chose them from the table, are public "
            "knowledge and do not depend on it."
        )
    return found


def done(certificate: Certificate) -> list[str]:
    """How the rows came about."""
    found: dict[str, list[str]] = {}
    for table in certificate.tables:
        known = {**certificate.parameters, **table.parameters}
        found.setdefault(_drawn(certificate, known), []).append(code(table.release.file))
    words = [
        text if len(found) == 1 else f"{', '.join(files)}: {text}" for text, files in found.items()
    ]
    if certificate.guarantee.unit == "one person":
        words.insert(0, "Of each person one row was used, drawn at random.")
    if certificate.guarantee.without_id:
        words.insert(1, "Rows without an id were left out.")
    if any(
        column.level is None for table in certificate.tables for column in table.scheme.values()
    ):
        words.append(
            "Where the table below says <em>any level</em>, fine and coarse labels stand side by "
            "side."
        )
    return words


def _drawn(certificate: Certificate, known: Parameters) -> str:
    if certificate.by_counts:
        law, r, k = law_of(noise_of(known)), int(known["r"]), int(known["k"])
        return (
            "Every column was made coarser, to the level named below. All rows that look the same "
            f"then were counted, random noise of at most {r} either way (standard deviation "
            f"{law.variance**0.5:.3g}) was added to each number, and kinds whose number came to "
            f"less than {r + k} were left out."
        )
    if certificate.method == "safe":
        return (
            "Every column was made coarser, to the level named below. Each row was drawn with "
            f"probability {float(known['beta'])!r}, and rows of which fewer than {int(known['k'])} "
            "that look the same were drawn were left out."
        )
    how = {
        "ola": "Each column was made coarser to one level, chosen by a search over the table.",
        "mondrian": "Rows were put into classes by cutting the table; each class shows labels that "
        "cover its rows.",
        "cluster": "Near rows were put into classes; each class shows labels that cover its rows.",
        "duplicate": "One row of each class was drawn, and is shown unchanged in place of all.",
    }
    words = how.get(str(known.get("algorithm")), "")
    words += (
        " Rows that would have stood out show <code>*</code> in every coarser column."
        if known.get("suppressed") == "starred"
        else " Rows that would have stood out, if there were any, were left out."
    )
    if certificate.noisy:
        words += f" Random noise was added to {_listed(certificate.noisy)}."
    return words


def explained(certificate: Certificate) -> list[tuple[str, str, str]]:
    """Every parameter with its value and what it means; in files that differ, of each."""
    rows: dict[tuple[str, str, str], None] = {}
    known = certificate.guarantee
    if known.epsilon is not None and known.delta is not None:
        rows[("&epsilon; (epsilon)", repr(known.epsilon), _MEANS["guarantee epsilon"])] = None
        rows[("&delta; (delta)", repr(known.delta), _MEANS["guarantee delta"])] = None
    for parameters in (certificate.parameters, *(one.parameters for one in certificate.tables)):
        for name, value in sorted(parameters.items()):
            if name.startswith("rule "):
                meaning = "a rule for every class of rows that look the same"
            elif name == "k":
                meaning = _MEANS["counts k" if certificate.by_counts else "k"]
            else:
                meaning = _MEANS.get(name, "")
            text = value if isinstance(value, str) else f"{value!r}".removesuffix(".0")
            rows[(code(name), plain(text), meaning)] = None
    return list(rows)


_MEANS = {
    "guarantee epsilon": "how much one row can change the probability of what is published; the "
    "smaller, the more private",
    "guarantee delta": "an addition to that probability, for what is not covered by the factor; "
    "the smaller, the more private",
    "k": "rows that look the same, at least",
    "counts k": "rows of the original table behind every kind that is shown, at least",
    "beta": "the probability with which each row was drawn",
    "r": "the most that the noise changes a number by",
    "noise": "the law of the noise",
    "noise_epsilon": "how narrow geometric noise is: the larger, the less noise",
    "noise_variance": "how wide Gaussian noise is, before it is bounded",
    "coin": "the probability with which a coin that saw no data settled r as one less than coin_r",
    "coin_r": "the larger of the two values that r could have",
    "search_epsilon": "the part of epsilon that was spent on choosing levels from the table",
    "slices_epsilon": "the part of epsilon that was spent on choosing which columns stand together",
    "already_sampled": "the probability with which everybody of the population is in the original "
    "table, as its publisher asserts",
    "algorithm": "how rows were put into classes that look the same",
    "suppressed": "what became of rows that would have stood out",
    "epsilon": "how narrow the noise of the noisy columns is: the larger, the less noise",
    "delta": "the delta of the Gaussian noise of the noisy columns",
    "bounds": "what the width of the noise follows: the values of a class, or the declared bounds",
    "confidence": "rows were left out whose noisy value would have pointed, with this confidence, "
    "to fewer than k rows of their class",
}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))


def _p(words: str) -> str:
    return f"<p>{words}</p>"
