"""DCAT-AP 3, and of health data HealthDCAT-AP: a catalog's entry for a release.

One graph, written as JSON-LD and as Turtle. What the curator has not stated is missing, except for
title and description, which the profile requires: they say "not stated".
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from urllib.parse import quote

from incrowd.release.metadata.answers import describe_guarantee
from incrowd.release.metadata.description import DescribedFile, ReleaseDescription
from incrowd.release.metadata.rdf import Graph, Iri, Literal, Resource, Term, list_pairs
from incrowd.spec.about import About

_PREFIXES = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcatap": "http://data.europa.eu/r5r/",
    "dct": "http://purl.org/dc/terms/",
    "dpv": "https://w3id.org/dpv#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "healthdcatap": "http://healthdataportal.eu/ns/health#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_AUTHORITY = "http://publications.europa.eu/resource/authority"
_THEMES = {
    "agriculture": "AGRI", "economy": "ECON", "education": "EDUC", "energy": "ENER",
    "environment": "ENVI", "government": "GOVE", "health": "HEAL", "international": "INTR",
    "justice": "JUST", "regions": "REGI", "society": "SOCI", "technology": "TECH",
    "transport": "TRAN",
}  # fmt: skip
_ACCESS = {"public": "PUBLIC", "restricted": "RESTRICTED", "non-public": "NON_PUBLIC"}
# Languages of the EU by ISO 639-1, as the Publications Office names them; of others, see _LANGUAGE
_LANGUAGES = {
    "bg": "BUL", "cs": "CES", "da": "DAN", "de": "DEU", "el": "ELL", "en": "ENG", "es": "SPA",
    "et": "EST", "fi": "FIN", "fr": "FRA", "ga": "GLE", "hr": "HRV", "hu": "HUN", "it": "ITA",
    "lt": "LIT", "lv": "LAV", "mt": "MLT", "nl": "NLD", "pl": "POL", "pt": "POR", "ro": "RON",
    "sk": "SLK", "sl": "SLV", "sv": "SWE",
}  # fmt: skip
_LANGUAGE = "http://id.loc.gov/vocabulary/iso639-1"
_MEDIA = "https://www.iana.org/assignments/media-types"


def write_turtle(release: ReleaseDescription) -> bytes:
    """Return the entry of a release as Turtle."""
    return build_graph(release).to_turtle()


def write_json_ld(release: ReleaseDescription) -> bytes:
    """Return the entry of a release as JSON-LD."""
    return build_graph(release).to_json_ld()


def build_graph(release: ReleaseDescription) -> Graph:
    """Return a data set with a distribution for each released file."""
    distributions = [_describe_distribution(release, file) for file in release.files]
    about = release.about
    properties: list[tuple[str, Term]] = [
        ("dct:title", _make_text(release.title, about)),
        ("dct:description", _make_text(about.read_text("description"), about)),
        ("dct:identifier", Literal(release.certificate.seal)),
        ("dct:issued", Literal(release.certificate.date, "xsd:date")),
        *_describe_people(about),
        *_describe_topic(about),
        *_describe_terms_of_use(about),
        ("dct:conformsTo", _describe_certificate(release)),
        *list_pairs("dct:provenance", [_describe_provenance(release)]),
        *(_describe_health(release) if about.theme == "health" else ()),
        *(("dcat:distribution", distribution) for distribution in distributions),
    ]
    dataset = Resource(["dcat:Dataset"], properties, _name_release(release))
    return Graph(_PREFIXES, [dataset, *distributions])


def _name_release(release: ReleaseDescription) -> Iri:
    """Return the name of a release by the hash of its certificate (RFC 6920)."""
    digest = base64.urlsafe_b64encode(bytes.fromhex(release.certificate_sha256)).decode()
    return Iri(f"ni:///sha-256;{digest.rstrip('=')}")


def _make_text(text: str, about: About) -> Literal:
    return Literal(text, language=about.language or "")


def _describe_people(about: About) -> Iterator[tuple[str, Term]]:
    """Yield publisher and contact."""
    contact: list[tuple[str, Term]] = []
    if about.contact is not None:
        is_address = about.contact.startswith("http")
        name = "vcard:hasURL" if is_address else "vcard:hasEmail"
        contact.append((name, Iri(about.contact if is_address else f"mailto:{about.contact}")))
        words = _make_text(about.publisher or about.contact, about)
        yield "dcat:contactPoint", Resource(["vcard:Kind"], [("vcard:fn", words), *contact])
    if about.publisher is not None:
        words = _make_text(about.publisher, about)
        yield "dct:publisher", Resource(["foaf:Agent"], [("foaf:name", words)])


def _describe_topic(about: About) -> Iterator[tuple[str, Term]]:
    """Yield keywords, theme, region, language and address."""
    for keyword in about.keywords:
        yield "dcat:keyword", _make_text(keyword, about)
    if about.theme is not None:
        yield "dcat:theme", Iri(f"{_AUTHORITY}/data-theme/{_THEMES[about.theme]}")
    if about.region is not None:
        label = _make_text(about.region, about)
        yield "dct:spatial", Resource(["dct:Location"], [("skos:prefLabel", label)])
    if about.language is not None:
        code = _LANGUAGES.get(about.language)
        address = f"{_AUTHORITY}/language/{code}" if code else f"{_LANGUAGE}/{about.language}"
        yield "dct:language", Iri(address)
    if about.url is not None:
        yield "dcat:landingPage", Resource(["foaf:Document"], [], Iri(about.url))


def _describe_terms_of_use(about: About) -> Iterator[tuple[str, Term]]:
    """Yield access rights, legal basis and purpose."""
    if about.access is not None:
        yield "dct:accessRights", Iri(f"{_AUTHORITY}/access-right/{_ACCESS[about.access]}")
    if about.legal_basis is not None:
        if about.legal_basis.startswith(("https://", "http://")):
            yield "dcatap:applicableLegislation", Iri(about.legal_basis)
        else:
            words = [("dct:description", _make_text(about.legal_basis, about))]
            yield "dpv:hasLegalBasis", Resource(["dpv:LegalBasis"], words)
    if about.intended_use is not None:
        words = [("dct:description", _make_text(about.intended_use, about))]
        yield "dpv:hasPurpose", Resource(["dpv:Purpose"], words)


def _describe_certificate(release: ReleaseDescription) -> Resource:
    """Return the guarantee as a standard that the data conform to, by the certificate's file."""
    title = Literal(f"Certificate: {describe_guarantee(release)}", language="en")
    path = Iri(release.locate("certificate.json"))
    checksum = _describe_checksum(release.certificate_sha256)
    return Resource(
        ["dct:Standard"],
        [("dct:title", title), ("rdfs:seeAlso", path), ("spdx:checksum", checksum)],
    )


def _describe_provenance(release: ReleaseDescription) -> Resource | None:
    if release.about.source is None:
        return None
    label = _make_text(release.about.source, release.about)
    return Resource(["dct:ProvenanceStatement"], [("rdfs:label", label)])


def _describe_health(release: ReleaseDescription) -> Iterator[tuple[str, Term]]:
    """Yield what HealthDCAT-AP adds: the category, the published number of rows, the population."""
    about = release.about
    if about.health_category is not None:
        yield "healthdcatap:healthCategory", Iri(about.health_category)
    if len(release.files) == 1:
        rows = Literal(str(release.files[0].rows), "xsd:nonNegativeInteger")
        yield "healthdcatap:numberOfRecords", rows
    if about.source is not None:
        yield "healthdcatap:populationCoverage", _make_text(about.source, about)


def _describe_distribution(release: ReleaseDescription, file: DescribedFile) -> Resource:
    about, path = release.about, Iri(release.locate(quote(file.name)))
    kind = file.name.rpartition(".")[2].upper()
    license_address = about.license
    if about.license is not None and not about.license.startswith("http"):
        license_address = f"https://spdx.org/licenses/{about.license}"
    properties: list[tuple[str, Term]] = [
        ("dct:title", Literal(file.name)),
        ("dcat:accessURL", path if about.url is None else Iri(about.url)),
        ("dcat:downloadURL", path),
        ("dct:format", Iri(f"{_AUTHORITY}/file-type/{kind}")),
        ("dcat:mediaType", Iri(f"{_MEDIA}/{file.media_type}")),
        ("spdx:checksum", _describe_checksum(file.sha256)),
        *list_pairs("dct:license", [None if license_address is None else Iri(license_address)]),
        *(_describe_terms_of_law(about) if about.theme == "health" else ()),
    ]
    name = _name_release(release).value
    return Resource(["dcat:Distribution"], properties, Iri(f"{name}#{quote(file.name)}"))


def _describe_terms_of_law(about: About) -> Iterator[tuple[str, Term]]:
    if about.legal_basis is not None and about.legal_basis.startswith(("https://", "http://")):
        yield "dcatap:applicableLegislation", Iri(about.legal_basis)


def _describe_checksum(digest: str) -> Resource:
    algorithm = Iri(f"{_PREFIXES['spdx']}checksumAlgorithm_sha256")
    return Resource(
        ["spdx:Checksum"],
        [
            ("spdx:algorithm", algorithm),
            ("spdx:checksumValue", Literal(digest, "xsd:hexBinary")),
        ],
    )
