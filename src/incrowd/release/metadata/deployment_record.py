"""A record for the public registry of deployments of differential privacy, as YAML.

Fields of the third tier are filled from the certificate, from how Incrowd works, and from what the
curator asserts. A record of a release that is not differentially private does not exist.
"""

from __future__ import annotations

import io
import re
from typing import Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from incrowd.release.metadata import answers
from incrowd.release.metadata.description import ReleaseDescription

NO_REFRESH = "none"
_SECTORS = {
    "health": "Healthcare", "education": "Education", "government": "Government",
    "energy": "Energy", "economy": "Finance", "technology": "Technology",
}  # fmt: skip
_PRODUCTS = {"synthetic": "Synthetic data", "tables": "Summary statistics"}
_BASIC = ("title", "publisher", "description", "intended_use", "region")
_ADVANCED = ("source", "epsilon_reason", "misuse", "refresh")
QUESTIONS = (*_BASIC, "theme", *_ADVANCED)  # what a complete record of the third tier asks


def write_record(release: ReleaseDescription) -> bytes:
    """Return the record of a differentially private release."""
    record = {
        "url_slug": _make_slug(release),
        "status": "Draft",
        "tier": find_tier(release),
        "deployment": {
            "basic": _describe_product(release),
            "dp_variant": _describe_variant(release),
            "privacy_loss": _describe_loss(release),
            "deployment_model": _describe_model(release),
            "accounting": {
                "post_processing": "; ".join(release.certificate.guarantee.post_processing)
                or "none",
                "composition": answers.describe_composition(release),
            },
            "implementation": _describe_implementation(release),
            "administrative": _describe_sources(release),
        },
    }
    yaml = YAML()
    yaml.width = 100
    buffer = io.BytesIO()
    yaml.dump(_fold_lines(record), buffer)
    return buffer.getvalue()


def find_tier(release: ReleaseDescription) -> Literal[1, 2, 3]:
    """Return the tier whose questions are all answered; the guarantee itself is always known."""
    stated = {*release.about.list_stated()}
    if not stated >= {*_BASIC}:
        return 1
    return 3 if stated >= {*_ADVANCED} else 2


def _fold_lines(value: Any) -> Any:
    """Return values with texts of several lines as YAML shows them best."""
    match value:
        case dict():
            return {name: _fold_lines(inner) for name, inner in value.items()}
        case list():
            return [_fold_lines(inner) for inner in value]
        case str() if "\n" in value:
            return LiteralScalarString(value)
        case _:
            return value


def _make_slug(release: ReleaseDescription) -> str:
    """Return a stable name made of the title, or of the seal where none is stated."""
    words = re.sub(r"[^a-z0-9]+", "-", (release.about.title or "").lower()).strip("-")
    return words[:80].strip("-") or f"release-{release.certificate.seal[:12]}"


def _describe_product(release: ReleaseDescription) -> dict[str, Any]:
    about = release.about
    sector = _SECTORS.get(about.theme or "")
    return {
        "name": release.title,
        "data_curators": [about.read_text("publisher")],
        "intended_use": about.read_text("intended_use"),
        "data_product_type": _PRODUCTS.get(release.certificate.method, "Dataset"),
        "data_product_region": about.read_text("region"),
        "description": about.read_text("description"),
        "publication_date": release.certificate.date,
        **({"data_product_sector": sector} if sector else {}),
    }


def _describe_variant(release: ReleaseDescription) -> dict[str, Any]:
    listed = "\n".join(
        f"- {name}: {content}" for name, content in answers.list_domains(release).items()
    )
    domain = (
        f"Source, as the curator asserts: {release.about.read_text('source')}\n"
        f"Published columns; their domains were declared before the input was read:\n{listed}"
    )
    return {
        "variant_name": "Approximate DP" if release.certificate.guarantee.delta else "Pure DP",
        "data_domain": domain,
        "unprotected_quantities": "; ".join(answers.list_unprotected(release)) or "none",
    }


def _describe_loss(release: ReleaseDescription) -> dict[str, Any]:
    guarantee = release.certificate.guarantee
    statement = [
        sentence.text
        for sentence in guarantee.statement
        if sentence.key in ("differential_privacy", "population", "unit", "without_id")
    ]
    return {
        "privacy_unit": guarantee.unit,
        "privacy_unit_details": f"Adjacent inputs: {guarantee.adjacency}. {' '.join(statement)}",
        "privacy_parameters": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
        "privacy_parameters_details": answers.describe_meaning(release)
        or answers.describe_random_bits(release),
    }


def _describe_model(release: ReleaseDescription) -> dict[str, Any]:
    about, ledger = release.about, release.ledger
    several = ledger is not None and ledger.releases > 1
    refresh = about.read_text("refresh")
    source: dict[str, Any] = {}
    if about.refresh is not None:
        static = about.refresh.lower().strip(". ") == NO_REFRESH
        source = {"data_source_type": "Static" if static else "Dynamic"}
    return {
        "model_name": "Central",
        "model_name_details": f"{release.certificate.guarantee.trust_model}.",
        "actors": (
            "The curator reads the input and is trusted. Recipients, and whoever gets the release "
            "from them, are not. Who could misuse the release, as the curator asserts: "
            f"{about.read_text('misuse')}"
        ),
        "release_type": "Many releases" if several else "One release",
        "release_type_details": (
            f"Planned refresh, as the curator asserts: {refresh}\n"
            f"{answers.describe_ledger(release)}"
        ),
        **source,
        "data_source_type_details": f"Planned refresh, as the curator asserts: {refresh}",
        "access_type": "Non-interactive",
        "access_type_details": answers.NO_INTERACTION,
    }


def _describe_implementation(release: ReleaseDescription) -> dict[str, Any]:
    certificate = release.certificate
    mechanisms = [
        *answers.list_mechanisms(release),
        answers.IMPLEMENTATION.format(version=certificate.incrowd),
        f"Floating point: {answers.FLOATING_POINT}",
        f"Side channels: {answers.SIDE_CHANNELS}",
        f"Random bits: {answers.describe_random_bits(release)}",
        "Security of the input and control of access to it: not stated",
    ]
    return {
        "preprocessing_and_hyperparameter_tuning": (
            f"Parameters, levels and domains: {certificate.guarantee.parameter_choice}."
        ),
        "mechanisms": "\n".join(f"- {line}" for line in mechanisms),
        "justification": (
            f"Why this ε, as the curator asserts: {release.about.read_text('epsilon_reason')}\n"
            f"{answers.CHECKS}"
        ),
    }


def _describe_sources(release: ReleaseDescription) -> dict[str, Any]:
    about, certificate = release.about, release.certificate
    return {
        **({"sources": about.url} if about.url else {}),
        "notes": (
            f"Made from the certificate with the seal {certificate.seal}. What is marked so is "
            "asserted by the curator; the release does not prove it."
        ),
        "registry_authors": [about.contact or about.read_text("publisher")],
    }
