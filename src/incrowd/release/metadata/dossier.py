"""The dossier: what a privacy officer asks of a release, answered in the order of four frameworks.

The page is made from the certificate and from the curator's assertions. Each answer says whether it
is computed, asserted, or not covered. The private part, with attacks and utility, is a page of its
own in the curator's folder (:mod:`incrowd.evaluation.report.private_dossier`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from incrowd.release.certificate import CertifiedGuarantee
from incrowd.release.metadata import answers
from incrowd.release.metadata.description import ReleaseDescription
from incrowd.release.noise_sentences import format_exact
from incrowd.release.pages import list_success_rates
from incrowd.release.render import make_environment
from incrowd.release.statement import TECHNICAL

if TYPE_CHECKING:
    import jinja2


def write_dossier(release: ReleaseDescription) -> bytes:
    """Return the public part of the dossier."""
    return _make_template().render(_make_model(release)).encode()


def _start_sentence(text: str) -> str:
    """Return a text with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def _describe_classes(guarantee: CertifiedGuarantee) -> str:
    """Return the sentence on how many rows look the same; empty where nothing is said of it."""
    keys = ("k_anonymity", "k_epsilon_anonymity", "wildcards")
    return " ".join(text.text for text in guarantee.statement if text.key in keys)


def _make_template() -> jinja2.Template:
    environment = make_environment("incrowd.release")
    return environment.get_template("dossier.html")


def _make_model(release: ReleaseDescription) -> dict[str, Any]:
    """Return the values that the template is filled with."""
    certificate, about = release.certificate, release.about
    guarantee = certificate.guarantee
    technical = [text for text in guarantee.statement if text.key in TECHNICAL]
    return {
        "cap": _start_sentence,
        "certificate": certificate,
        "guarantee": guarantee,
        "epsilon": None if guarantee.epsilon is None else format_exact(guarantee.epsilon),
        "delta": None if guarantee.delta is None else format_exact(guarantee.delta),
        "is_private": release.is_differentially_private,
        "is_counts": certificate.has_noisy_counts,
        "is_synthetic": certificate.synthetic is not None,
        "is_tables": certificate.tabulation is not None,
        "classes": _describe_classes(guarantee),
        "title": release.title,
        "said": {name: about.read_text(name) for name in type(about).model_fields},
        "stated": release.assertions.list_stated(),
        "statement": [text for text in guarantee.statement if text.key not in TECHNICAL],
        "technical": technical,
        "sentence": defaultdict(str, {text.key: text.text for text in guarantee.statement}),
        "rates": list_success_rates(certificate) if certificate.is_private else [],
        "meaning": answers.describe_meaning(release),
        "guarantee_words": answers.describe_guarantee(release),
        "mechanisms": answers.list_mechanisms(release),
        "composition": answers.COMPOSITION,
        "unprotected": answers.list_unprotected(release),
        "limits": answers.list_limits(release),
        "floating_point": answers.FLOATING_POINT,
        "side_channels": answers.SIDE_CHANNELS,
        "random_bits": answers.describe_random_bits(release),
        "checks": answers.CHECKS,
        "files": release.files,
        "other_files": list(release.list_other_files()),
        "ledger": release.ledger,
        "ledger_words": answers.describe_ledger(release),
    }
