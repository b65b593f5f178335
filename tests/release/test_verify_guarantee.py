"""The guarantee of a certificate is recomputed from its events, for each method and form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.formats import FORMATS

from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import parse_event
from incrowd.release.certificate import Certificate
from incrowd.release.verify import read_certificate
from incrowd.release.verify_guarantee import check_guarantee

FOLDERS = sorted(path for path in FORMATS.glob("*/*") if path.is_dir())
PRIVATE = [folder for folder in FOLDERS if read_certificate(folder).events]


def change_guarantee(certificate: Certificate, **update: Any) -> Certificate:
    """A certificate with another guarantee, whose statement fits."""
    guarantee = certificate.guarantee.model_copy(update=update)
    return certificate.model_copy(update={"guarantee": guarantee}).with_statement()


def list_codes(certificate: Certificate) -> list[str]:
    return [finding.code for finding in check_guarantee(certificate)]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_guarantee_of_a_release_holds(folder: Path) -> None:
    assert list_codes(read_certificate(folder)) == []


@pytest.mark.parametrize("folder", PRIVATE, ids=lambda path: path.name)
def test_an_epsilon_or_delta_a_little_too_small_is_named(folder: Path) -> None:
    certificate = read_certificate(folder)
    epsilon = certificate.guarantee.epsilon
    assert epsilon is not None
    true = Accountant([parse_event(event) for event in certificate.events]).delta(epsilon=epsilon)
    assert list_codes(change_guarantee(certificate, delta=true)) == []
    for update in ({"delta": true * 0.999}, {"delta": true, "epsilon": epsilon * 0.99}):
        assert list_codes(change_guarantee(certificate, **update)) == ["GUARANTEE_FALSE"]


@pytest.mark.parametrize("folder", PRIVATE, ids=lambda path: path.name)
def test_an_event_too_few_or_none_is_named(folder: Path) -> None:
    certificate = read_certificate(folder)
    for events in (certificate.events[:-1], []):
        assert list_codes(certificate.model_copy(update={"events": events})) != []


def test_a_guarantee_without_numbers_is_named() -> None:
    for folder in PRIVATE:
        bare = change_guarantee(read_certificate(folder), epsilon=None, delta=None)
        assert list_codes(bare) == ["GUARANTEE_KIND_DIFFERS"]


def test_k_anonymity_claims_no_epsilon() -> None:
    for folder in FOLDERS:
        if folder not in PRIVATE:
            certificate = change_guarantee(read_certificate(folder), epsilon=1.0, delta=1e-6)
            assert list_codes(certificate) == ["EVENTS_UNEXPECTED"]
