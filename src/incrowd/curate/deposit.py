"""Describe a finished release: files to hand in with it at a catalog or a repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from incrowd.errors import IncrowdError, ParameterError
from incrowd.evaluation.report.private_dossier import FILE, write_private_dossier
from incrowd.findings import Severity
from incrowd.release.certificate import Certificate
from incrowd.release.folder import fill_folder, locate_curator_folder
from incrowd.release.ledger import Ledger
from incrowd.release.metadata.assertions import Assertions, total_ledger
from incrowd.release.metadata.deployment_record import QUESTIONS
from incrowd.release.metadata.files import list_formats, make_metadata
from incrowd.release.verify import is_mark, read_assertions, read_certificate
from incrowd.spec.about import About, MetadataFormat
from incrowd.spec.file import SpecSource, load_spec
from incrowd.verification import verify

_CONTENTS = {
    "assertions.json": "what the curator asserts, and the release cannot prove",
    "croissant.json": "Croissant 1.1 with responsible AI",
    "dcat.ttl": "DCAT-AP 3, of health data HealthDCAT-AP",
    "dcat.jsonld": "the same as JSON-LD",
    "registry.yaml": "record for the registry of deployments",
    "codebook.xml": "DDI Codebook 2.5",
    "datapackage.json": "Frictionless Data Package",
    "dossier.html": "the dossier, public part",
}
FORMATS: dict[MetadataFormat, tuple[str, str]] = {  # what it is called, and who takes it
    "croissant": ("Croissant", "dataset search engines, Hugging Face, Kaggle, OpenML"),
    "dcat": ("DCAT-AP and HealthDCAT-AP", "data portals of the EU, health data access bodies"),
    "registry": ("Deployment record", "the registry of deployments of differential privacy"),
    "ddi": ("DDI Codebook", "archives of surveys"),
    "frictionless": ("Data Package", "repositories that read Frictionless data packages"),
    "dossier": ("Dossier", "your privacy officer; its private part stays with your report"),
}


@dataclass(frozen=True)
class Deposit:
    """The files that describe a release.

    Attributes:
        folder: The folder of the files.
        files: Their names, with what each is.
        unstated: Entries of ``about`` that a complete registry record asks and nobody has stated.
        notes: What was left out, and why.
        private: The private part of the dossier; None if the curator's folder is not there.
    """

    folder: Path
    files: dict[str, str]
    unstated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    private: Path | None = field(default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the deposit as plain values, for JSON."""
        return {
            **asdict(self),
            "folder": str(self.folder),
            "private": None if self.private is None else str(self.private),
        }


def describe(
    release: Path | str,
    output: Path | str,
    *,
    spec: SpecSource | None = None,
    ledger: Ledger | Path | str | None = None,
    formats: Sequence[str] | None = None,
    attacks: Path | str | None = None,
) -> Deposit:
    """Describe a release to catalogs, registries and regulators, in files of a new folder.

    The files follow from the certificate, the scheme and what the curator asserts. The table is not
    opened. They refer to the data as if all files stood in one folder.

    Args:
        release: The folder of the release. It must verify.
        output: Folder for the files; it must not exist, or be empty.
        spec: Spec whose ``about`` is used; by default what the release itself holds.
        ledger: Ledger whose present total is stated; by default what the release itself holds.
        formats: Names of formats; by default all that the release can be described in.
        attacks: File with further attacks, as ``incrowd attack --json`` prints them, for the
            private part of the dossier.

    Returns:
        The files, and what is not stated.

    Raises:
        IncrowdError: The release does not verify, or a format does not exist or does not fit it.

    Examples:
        >>> import incrowd as ic
        >>> ic.describe("out", "deposit", formats=["croissant", "dcat"])  # doctest: +SKIP

    """
    folder = Path(release)
    certificate = _read_verified(folder)
    assertions = read_assertions(folder, certificate)
    if spec is not None:
        about = load_spec(spec).spec.about or About()
        assertions = assertions.model_copy(update={"about": about})
    if ledger is not None:
        opened = ledger if isinstance(ledger, Ledger) else Ledger(Path(ledger))
        assertions = assertions.model_copy(update={"ledger": total_ledger(opened)})
    chosen, notes = _choose_formats(certificate, formats)
    files = make_metadata(folder, certificate, assertions, chosen, flat=True)
    if not assertions.is_empty:
        files = {"assertions.json": assertions.to_bytes(), **files}
    private = None
    if "dossier" in chosen:
        extra = None if attacks is None else Path(attacks)
        private = _write_private_part(folder, certificate, assertions, extra)
    with fill_folder(Path(output)) as draft:
        for name, content in files.items():
            (draft / name).write_bytes(content)
    stated = {*assertions.about.list_stated()}
    return Deposit(
        Path(output),
        {name: _CONTENTS[name] for name in files},
        tuple(name for name in QUESTIONS if name not in stated),
        notes,
        private,
    )


def _read_verified(folder: Path) -> Certificate:
    """Read the certificate of a release that verifies; a seed or a dry run is no obstacle."""
    problems = [
        finding
        for finding in verify(folder)
        if finding.severity is Severity.ERROR and not is_mark(finding)
    ]
    if problems:
        raise IncrowdError(f"Release '{folder}': it does not verify. {problems[0]}")
    return read_certificate(folder)


def _choose_formats(
    certificate: Certificate, formats: Sequence[str] | None
) -> tuple[tuple[MetadataFormat, ...], tuple[str, ...]]:
    """Return the formats to write, and what is to be said of those that are not."""
    possible, every = list_formats(certificate), get_args(MetadataFormat)
    if formats is None:
        left = "`registry` is left out: it lists differentially private releases, and this is none."
        return possible, () if "registry" in possible else (left,)
    for name in formats:
        if name not in every:
            raise ParameterError("format", f"be one of {', '.join(every)}", name)
        if name not in possible:
            raise IncrowdError(
                f"Format '{name}': it lists differentially private releases, and this is none. "
                "Leave it out."
            )
    return tuple(name for name in possible if name in formats), ()


def _write_private_part(
    folder: Path, certificate: Certificate, assertions: Assertions, attacks: Path | None
) -> Path | None:
    """Write the private part of the dossier again, where the curator's folder is at hand."""
    private = locate_curator_folder(folder)
    if not (private / "evaluation.json").is_file() or not (private / "attacks.json").is_file():
        if attacks is not None:
            raise IncrowdError(
                f"Folder '{private}': the figures of the release are not there. Leave out "
                "`attacks`, or put the curator's folder back."
            )
        return None
    write_private_dossier(private, certificate, assertions, attacks=attacks)
    return private / FILE
