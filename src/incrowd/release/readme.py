"""The page for readers that lies beside the data: README.md, made from the certificate alone."""

from __future__ import annotations

from incrowd.release.certificate import Certificate
from incrowd.release.statements import readme_4


def readme(certificate: Certificate) -> str:
    """The page of a release, in the words of its format; formats before 4 have none."""
    if (certificate.format or 1) < 4:
        return ""
    # As whoever verifies it reads it: keys are in the order in which they are written.
    return readme_4.readme(Certificate.model_validate_json(certificate.canonical()))
