"""The metadata files of a release: which there are, where each lies, and what each contains.

All follow from the certificate, from files that it holds hashes of, and from the curator's
assertions. So whoever verifies a release makes them again and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from incrowd.release.certificate import Certificate
from incrowd.release.metadata.assertions import ASSERTIONS, FOLDER, Assertions
from incrowd.release.metadata.catalog import write_json_ld, write_turtle
from incrowd.release.metadata.codebook import write_codebook
from incrowd.release.metadata.croissant import write_croissant
from incrowd.release.metadata.datapackage import write_datapackage
from incrowd.release.metadata.deployment_record import write_record
from incrowd.release.metadata.description import ReleaseDescription, describe_release
from incrowd.release.metadata.dossier import write_dossier
from incrowd.spec.about import METADATA_FORMATS, MetadataFormat

Writer = Callable[[ReleaseDescription], bytes]
_UP = "../"  # from the folder of the metadata to that of the data
_WRITERS: dict[MetadataFormat, dict[str, Writer]] = {
    "croissant": {f"{FOLDER}/croissant.json": write_croissant},
    "dcat": {f"{FOLDER}/dcat.ttl": write_turtle, f"{FOLDER}/dcat.jsonld": write_json_ld},
    "registry": {f"{FOLDER}/registry.yaml": write_record},
    "ddi": {f"{FOLDER}/codebook.xml": write_codebook},
    "frictionless": {"datapackage.json": write_datapackage},
    "dossier": {f"{FOLDER}/dossier.html": write_dossier},
}


def list_metadata_files(formats: Iterable[MetadataFormat]) -> list[str]:
    """Return the files of some formats, by their paths in a release."""
    return [path for name in formats for path in _WRITERS[name]]


def list_formats(certificate: Certificate) -> tuple[MetadataFormat, ...]:
    """Return the formats that a release can be described in.

    The registry lists deployments of differential privacy; no other release belongs there.
    """
    is_private = certificate.guarantee.epsilon is not None
    return tuple(name for name in METADATA_FORMATS if name != "registry" or is_private)


def make_metadata(
    folder: Path,
    certificate: Certificate,
    assertions: Assertions,
    formats: Sequence[MetadataFormat],
    *,
    flat: bool = False,
) -> dict[str, bytes]:
    """Return the metadata files of the release in a folder, by path.

    Args:
        folder: The folder of the release, whose files are as certified.
        certificate: Its certificate.
        assertions: What the curator asserts.
        formats: The formats to write.
        flat: All files stand beside the data, as in a repository; by default they stand where a
            release has them.

    """
    release = describe_release(folder, certificate, assertions)
    files = {}
    for name in formats:
        for path, write in _WRITERS[name].items():
            is_below = not flat and PurePosixPath(path).parent.name == FOLDER
            files[PurePosixPath(path).name if flat else path] = write(
                replace(release, to_data=_UP if is_below else "")
            )
    return files


def write_metadata(draft: Path, certificate: Certificate, assertions: Assertions) -> None:
    """Write the assertions and the metadata files that a certificate names into a release."""
    if certificate.assertions is None and not certificate.metadata:
        return
    (draft / FOLDER).mkdir()
    if certificate.assertions is not None:
        (draft / ASSERTIONS).write_bytes(assertions.to_bytes())
    for path, content in make_metadata(
        draft, certificate, assertions, certificate.metadata or ()
    ).items():
        (draft / path).write_bytes(content)
