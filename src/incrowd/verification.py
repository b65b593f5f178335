"""Verify a release: its certificate and files, and that what was computed from noise follows.

Two layers. :mod:`incrowd.release.verify` checks everything that the guarantee rests on, and shares
no code with what makes releases. Of synthetic rows one more thing can be checked, that they follow
from the measured tables, and of tables of counts that their estimates follow from the measured
numbers; to compute these again takes the code that computed them, which lies above. So this module,
like :mod:`incrowd.publication`, stands above both. No guarantee depends on the second layer: rows,
model and estimates are post-processing of what was measured.
"""

from __future__ import annotations

from pathlib import Path

from incrowd.findings import Finding, make_finding
from incrowd.release.certificate import Certificate
from incrowd.release.verify import is_mark, read_certificate
from incrowd.release.verify import verify as verify_files

__all__ = ["verify"]


def verify(folder: Path | str, *, key: str | None = None) -> list[Finding]:
    """Return everything that is wrong with a release; an empty list says that it holds.

    Nothing but the folder is needed. A certificate can be checked, but only a signature tells
    who wrote it: ``key`` is the public key that must have signed, in hexadecimal or as the path
    of a PEM file. Without it, nobody can notice that a signature was taken away.
    """
    findings = verify_files(folder, key=key)
    if not all(map(is_mark, findings)):
        return findings
    certificate = read_certificate(Path(folder))
    try:
        return [*findings, *_check_computation(Path(folder), certificate)]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a made-up file can cause
        reason = (str(error).splitlines() or [repr(error)])[0]
        return [*findings, make_finding("DATA_NOT_CHECKED", problem=reason)]


def _check_computation(folder: Path, certificate: Certificate) -> list[Finding]:
    """Return what does not follow from the measured numbers of a release, if it has some."""
    if certificate.synthetic is not None:
        from incrowd.methods.synthetic.verify import check_model

        return check_model(folder, certificate)
    if certificate.tabulation is not None:
        from incrowd.methods.tables.verify import check_estimates

        return check_estimates(folder, certificate)
    return []
