"""Sign a release that was published without a signature."""

from __future__ import annotations

import shutil
from pathlib import Path

from incrowd.errors import FindingError, IncrowdError
from incrowd.release.certificate import FILE, Certificate
from incrowd.release.folder import fill_folder, recover_folder
from incrowd.release.keys import load_private_key
from incrowd.release.pages import make_pages
from incrowd.release.verify import read_assertions, read_certificate, verify


def sign_release(folder: Path, key: Path) -> Certificate:
    """Sign a release: its certificate, and the pages and metadata that name the signer.

    Data, scheme, seal and guarantee stay as they are. The signed folder takes the place of the
    other one as a whole.

    Args:
        folder: The folder of the release. It must verify: what was changed is not signed.
        key: An Ed25519 private key, an unencrypted PEM file.

    Returns:
        The signed certificate.

    Raises:
        IncrowdError: The release does not verify, is signed already, or the key cannot be used.

    """
    private_key = load_private_key(key)
    recover_folder(folder)
    findings = verify(folder)
    if findings:
        raise FindingError(findings[0])
    certificate = read_certificate(folder)
    if certificate.signature is not None:
        raise IncrowdError(
            f"'{folder.name}' is signed already, by the key {certificate.signature.public_key}."
        )
    signed = certificate.with_signature(private_key)
    pages = make_pages(signed)
    with fill_folder(folder, replacing=[path.name for path in folder.iterdir()]) as draft:
        shutil.copytree(folder, draft, dirs_exist_ok=True)
        (draft / FILE).write_bytes(signed.to_canonical_json())
        if signed.metadata:
            from incrowd.release.metadata.files import make_metadata  # which few releases need

            assertions = read_assertions(draft, signed)
            pages |= make_metadata(draft, signed, assertions, signed.metadata)
        for name, content in pages.items():
            (draft / name).write_bytes(content)
    return signed
