"""Check a release from its folder alone: the walk, and the folder, files, signer and pages.

:mod:`incrowd.release.verify_guarantee` recomputes (ε, δ) from the events of the certificate,
:mod:`incrowd.release.verify_data` checks the values and classes of the published table.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from jinja2 import TemplateError
from pydantic import ValidationError

from incrowd.errors import FindingError, IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.release.certificate import (
    FILE,
    FORMAT,
    PAGE,
    README,
    SEEDED,
    Certificate,
    hash_file,
)
from incrowd.release.household_links import check_links
from incrowd.release.metadata.assertions import ASSERTIONS, Assertions, parse_assertions
from incrowd.release.metadata.assertions import FOLDER as METADATA
from incrowd.release.pages import make_pages
from incrowd.release.shares_verify import check_shares
from incrowd.release.synthetic_part import FOLDER as MEASURED
from incrowd.release.tables_part import MEASURED_FILE
from incrowd.release.verify_data import check_data, read_hierarchy
from incrowd.release.verify_guarantee import check_guarantee

_LARGEST = 64 << 20


def verify(folder: Path | str, *, key: str | None = None) -> list[Finding]:
    """Verify a release from its folder alone, and return everything that does not hold.

    Args:
        folder: The folder of the release.
        key: Public key of the publisher, as 64 hexadecimal digits or the path of a PEM file.
            Without it, a removed signature goes unnoticed.

    Returns:
        The findings. An empty list means that the release holds.

    Raises:
        IncrowdError: The folder does not exist, or the key cannot be read.

    Examples:
        >>> import incrowd as ic
        >>> ic.verify("release")  # doctest: +SKIP
        []
        >>> ic.verify("release", key="publisher.pem")  # doctest: +SKIP
        []
    """
    folder = Path(folder)
    signer = None
    if key is not None:
        from incrowd.release.keys import read_public_key  # loads cryptography, rarely needed

        signer = read_public_key(key)
    if not folder.is_dir():
        raise IncrowdError(f"'{folder}' is not a folder. Name the folder of a release.")
    try:
        certificate = read_certificate(folder)
    except FindingError as error:
        return [error.finding]
    findings = [
        *_check_signer(certificate, signer),
        *_check_seal(certificate),
        *check_guarantee(certificate),
        *_find_foreign_files(folder, certificate),
        *_check_pages(folder, certificate),
    ]
    intact = all(map(is_mark, findings))
    for path, digest in _list_files(certificate):
        if not _is_regular_file(folder / path):
            findings.append(make_finding("FILE_MISSING", file=path))
        elif hash_file(folder / path) != digest:
            findings.append(make_finding("FILE_CHANGED", file=path))
        else:
            continue
        intact = False
    if not intact:  # what was changed is not worth reading, and may do harm
        return findings
    try:
        if certificate.tabulation is not None:
            from incrowd.release.tables_verify import check_tables

            data_findings = check_tables(folder, certificate)
            return [*findings, *_check_metadata(folder, certificate), *data_findings]
        return [
            *findings,
            *_check_metadata(folder, certificate),
            *check_shares(folder, certificate, read_hierarchy),
            *(
                finding
                for table in certificate.split_tables()
                for finding in check_data(folder, table)
            ),
            *(check_links(folder, certificate) if certificate.links is not None else ()),
        ]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a made-up file can cause
        reason = (str(error).splitlines() or [repr(error)])[0]
        return [*findings, make_finding("DATA_NOT_CHECKED", problem=reason)]


def is_mark(finding: Finding) -> bool:
    """Return whether a finding says what a release is, and not that something is wrong with it.

    What a seed or a dry run has made guarantees nothing. Its files are checked like all others.
    """
    return finding.code in ("RELEASE_REHEARSED", "RELEASE_SEEDED")


def read_certificate(folder: Path) -> Certificate:
    """Read the certificate of a release; raise if there is none or it is not well-formed."""
    path = folder / FILE
    if not _is_regular_file(path):
        raise FindingError(make_finding("CERTIFICATE_MISSING", file=FILE, folder=str(folder)))
    if path.stat().st_size > _LARGEST:
        raise FindingError(make_finding("CERTIFICATE_TOO_LARGE"))
    text = path.read_bytes()
    try:
        certificate = Certificate.model_validate_json(text)
        canonical = certificate.to_canonical_json()
    except ValidationError as error:
        detail = error.errors()[0]
        where, got = ".".join(str(part) for part in detail["loc"]), detail["input"]
        if where == "format" and isinstance(got, int) and got > FORMAT:
            finding = make_finding("CERTIFICATE_FORMAT_UNKNOWN", format=str(got), known=str(FORMAT))
            raise FindingError(finding) from error
        problem = f"{where}: {detail['msg']}"
        raise FindingError(make_finding("CERTIFICATE_INVALID", problem=problem)) from error
    except (ValueError, RecursionError) as error:
        raise FindingError(make_finding("CERTIFICATE_INVALID", problem=str(error))) from error
    if canonical != text:
        raise FindingError(make_finding("CERTIFICATE_NOT_CANONICAL"))
    return certificate


def read_assertions(folder: Path, certificate: Certificate) -> Assertions:
    """Read what the curator asserts of a release; nothing where the certificate holds no hash."""
    if certificate.assertions is None:
        return Assertions()
    return parse_assertions((folder / ASSERTIONS).read_bytes())


def _check_metadata(folder: Path, certificate: Certificate) -> list[Finding]:
    """Check that the metadata are what follows from the certificate and the assertions."""
    if certificate.assertions is None and not certificate.metadata:
        return []
    from incrowd.release.metadata.files import make_metadata  # which few releases need

    try:
        assertions = read_assertions(folder, certificate)
        expected = make_metadata(folder, certificate, assertions, certificate.metadata or ())
    except IncrowdError as error:
        return [make_finding("METADATA_NOT_MADE", problem=str(error))]
    return [
        make_finding("METADATA_DIFFERS", file=name)
        for name, content in expected.items()
        if (folder / name).read_bytes() != content
    ]


def _list_metadata(certificate: Certificate) -> list[str]:
    """Return the metadata files that a certificate names."""
    if not certificate.metadata:
        return []
    from incrowd.release.metadata.files import list_metadata_files

    return list_metadata_files(certificate.metadata)


def _list_files(certificate: Certificate) -> Iterator[tuple[str, str]]:
    if certificate.assertions is not None:
        yield ASSERTIONS, certificate.assertions
    for part in certificate.synthetic.measured if certificate.synthetic else ():
        yield part.file, part.sha256
    if certificate.tabulation is not None:
        yield MEASURED_FILE, certificate.tabulation.measured
        for export in certificate.tabulation.exports:
            yield export.file, export.sha256
    for table in certificate.tables:
        yield table.release.file, table.release.sha256
        for column in table.scheme.values():
            if column.file is not None:
                yield column.file, column.sha256 or ""


def _check_signer(certificate: Certificate, signer: str | None) -> list[Finding]:
    signature = certificate.signature
    if signer is None or (signature is not None and signature.public_key == signer):
        return []
    by = signature.public_key if signature is not None else "nobody"
    return [make_finding("SIGNER_DIFFERS", expected=signer, signer=by)]


def _check_seal(certificate: Certificate) -> list[Finding]:
    """Check seal and signature; name a release that guarantees nothing by its own account."""
    findings = []
    if certificate.rehearsal:
        findings.append(make_finding("RELEASE_REHEARSED"))
    if certificate.randomness == SEEDED:
        findings.append(make_finding("RELEASE_SEEDED"))
    if not certificate.is_seal_valid():
        findings.append(make_finding("SEAL_BROKEN"))
    if not certificate.is_signature_valid():
        findings.append(make_finding("SIGNATURE_INVALID"))
    return findings


def _find_foreign_files(folder: Path, certificate: Certificate) -> list[Finding]:
    """Find what does not belong in a release: links, odd names, files that nothing covers."""
    foreign_files = []
    for table in certificate.tables:
        for name, column in table.scheme.items():
            if column.file not in (None, f"scheme/{quote(name, safe=' ')}.csv"):
                return [make_finding("SCHEME_MISPLACED", name=name)]
    described = _list_metadata(certificate)
    listed = [path for path, _ in _list_files(certificate)]
    folders = {"scheme", *({MEASURED} if certificate.synthetic else ())}
    folders |= {METADATA} if certificate.assertions or described else set()
    share_files = [
        table.file for table in [*(certificate.shares or ()), *(certificate.combined or ())]
    ]
    folders |= {path.partition("/")[0] for path in [*listed, *share_files] if "/" in path}
    expected = {FILE, README, PAGE, *folders, *listed, *share_files, *described}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name == "curator":
            foreign_files.append(make_finding("PRIVATE_FOLDER_INCLUDED"))
        elif name.startswith("curator/"):
            continue
        elif (
            name not in expected
            or path.is_symlink()
            or not (path.is_dir() if name in folders else _is_regular_file(path))
        ):
            foreign_files.append(make_finding("FILE_NOT_COVERED", file=name))
    missing = [name for name in described if not _is_regular_file(folder / name)]
    return [*foreign_files, *(make_finding("FILE_MISSING", file=name) for name in missing)]


def _check_pages(folder: Path, certificate: Certificate) -> list[Finding]:
    """Check that the pages for readers are what the certificate makes of them."""
    try:
        expected = make_pages(certificate)
    except (
        IncrowdError, ArithmeticError, LookupError, TypeError, ValueError, TemplateError
    ) as error:  # fmt: skip
        return [make_finding("PAGES_NOT_MADE", problem=str(error))]
    pages = []
    for name, text in expected.items():
        path = folder / name
        if not _is_regular_file(path):
            pages.append(make_finding("FILE_MISSING", file=name))
        elif path.stat().st_size != len(text) or path.read_bytes() != text:
            pages.append(make_finding("PAGE_DIFFERS", file=name))
    return pages


def _is_regular_file(path: Path) -> bool:
    """Return whether there is a file, not a link, a folder or a pipe."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
