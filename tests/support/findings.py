"""Findings as tests look at them: their codes, and the messages of a verification."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from incrowd.findings import Finding
from incrowd.verification import verify as find_problems


def list_codes(findings: Iterable[Finding]) -> list[str]:
    """Return the code of each finding."""
    return [finding.code for finding in findings]


def list_verify_messages(folder: Path | str, **options: Any) -> list[str]:
    """Return the message of each finding of a verification."""
    return [finding.message for finding in find_problems(folder, **options)]
