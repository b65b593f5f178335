"""The terms of a guarantee follow from the certificate, and a false one is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.formats import FORMATS

from incrowd.release.certificate import Certificate
from incrowd.release.verify import read_certificate
from incrowd.release.verify_guarantee import check_guarantee

FOLDERS = sorted(path for path in FORMATS.glob("*/*") if path.is_dir())
FALSE: dict[str, Any] = {
    "adjacency": "add or remove one person of the population from which the input was sampled",
    "trust_model": None,
    "unprotected": ["the number of people in the moon"],
    "post_processing": ["rows are sorted by luck"],
    "parameter_choice": "by a search over the input, unless fixed before; the guarantee does not "
    "cover it",
}


def replace_terms(certificate: Certificate, **update: Any) -> Certificate:
    guarantee = certificate.guarantee.model_copy(update=update)
    return certificate.model_copy(update={"guarantee": guarantee})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_false_term_is_found(folder: Path) -> None:
    certificate = read_certificate(folder)
    for name, value in FALSE.items():
        if getattr(certificate.guarantee, name) == value:
            continue
        findings = check_guarantee(replace_terms(certificate, **{name: value}))
        assert [finding.code for finding in findings] == ["STATEMENT_DIFFERS"], name


def test_what_is_unprotected_is_named_by_method() -> None:
    """Nothing of a private release; of classes all that is published as it is."""
    for folder in FOLDERS:
        certificate = read_certificate(folder)
        guarantee = certificate.guarantee
        if guarantee.epsilon is not None:
            assert guarantee.unprotected == []
            assert guarantee.adjacency is not None
            assert ("person" in guarantee.adjacency) is (guarantee.unit == "one person")
            assert ("population" in guarantee.adjacency) is certificate.is_sampled
            continue
        assert guarantee.adjacency is None
        for name in certificate.kept:
            terms = {f"the {what} of '{name}'" for what in ("values", "mean", "median")}
            assert any(text.startswith(tuple(terms)) for text in guarantee.unprotected), name
        starred = certificate.parameters.get("suppressed") == "starred"
        assert ("the number of suppressed rows" in guarantee.unprotected) is starred


def test_a_private_choice_is_named() -> None:
    for folder in FOLDERS:
        certificate = read_certificate(folder)
        choice = certificate.guarantee.parameter_choice or ""
        kinds = str(certificate.events)
        is_searched = "'selection'" in kinds or "'bounded choice'" in kinds
        if certificate.guarantee.epsilon is not None:
            assert choice.startswith("in part by private choices" if is_searched else "fixed")
        else:
            assert choice.startswith("by a search")
