"""The pages that lie beside the data, made from the certificate alone: README.md, certificate.html.

Both are written in the words of the certificate's format, which never change, so that whoever
verifies a release writes them again and compares.
"""

from __future__ import annotations

from incrowd.release.certificate import PAGE, README, Certificate
from incrowd.release.readme import readme
from incrowd.release.statements import page_5


def certificate_page(certificate: Certificate) -> str:
    """The certificate for readers of contracts; formats before 5 have none."""
    if (certificate.format or 1) < 5:
        return ""
    # As whoever verifies it reads it: keys are in the order in which they are written.
    return page_5.page(Certificate.model_validate_json(certificate.canonical()))


def pages(certificate: Certificate) -> dict[str, bytes]:
    """The pages that a release of this format has, by file name."""
    made = {README: readme(certificate), PAGE: certificate_page(certificate)}
    return {name: text.encode() for name, text in made.items() if text}
