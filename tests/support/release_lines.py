"""All that the terminal and the studio tell of a release, in lines."""

from __future__ import annotations

from incrowd.cli.results import describe_result, detail_facts, private_facts, release_facts
from incrowd.publication import Release


def describe_release(release: Release) -> list[str]:
    """Return what was published where, every fact, and what was lost."""
    prefix = "" if release.certificate.rehearsal else "For you only: "
    private = [fact for fact in private_facts(release) if fact[0] != "Report"]
    facts = [*release_facts(release), *detail_facts(release), *private]
    lines = [f"{name}: {text.removesuffix('.')}." if name else text for name, text in facts]
    lost = [f"{prefix}{finding}" for finding in release.evaluation.lost.findings()]
    return [describe_result(release), *lines, *lost]
