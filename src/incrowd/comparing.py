"""A released table held against its original, from whatever holds them: the public face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.evaluating import Evaluation, evaluate_tables
from incrowd.privacy.randomness import Randomness, SystemRandomness
from incrowd.relinking import relinked, simulated
from incrowd.specfile import SpecFile, taken


def evaluate(
    original: Any,
    released: Any,
    spec: SpecFile | Path | str | Mapping[str, Any],
    *,
    target: str | None = None,
    holdout: Any = None,
    identity: str | None = None,
    bits: Randomness | None = None,
) -> Evaluation:
    """Loss, risk and utility of a release, for the curator alone.

    Tables are whatever :func:`incrowd.publish` takes; the spec explains the labels. With a
    ``target`` column a classifier is trained on the release and tested on original rows, those
    of ``holdout`` if it is given. For a spec of the method 'k-epsilon' the linking risk is
    estimated with fresh noise or, with a column ``identity`` in both tables, measured.
    """
    file = taken(spec)
    before, after = open_table(original), open_table(released, empty=True)
    found = evaluate_tables(
        before,
        after,
        file.spec,
        folder=file.folder,
        target=target,
        held_out=None if holdout is None else open_table(holdout),
    )
    if file.spec.release is None or file.spec.release.method != "k-epsilon":
        if identity is not None:
            raise IncrowdError("An identity column is for specs of the method 'k-epsilon'.")
        return found
    noise = (
        simulated(file, before, bits=bits or SystemRandomness())
        if identity is None
        else relinked(file, before, after, identity)
    )
    return replace(found, noise=noise)


def information_loss(
    original: Any, released: Any, spec: SpecFile | Path | str | Mapping[str, Any]
) -> dict[str, float | None]:
    """Every loss of a release by name; an unreleased row counts as :class:`Losses` says."""
    file = taken(spec)
    found = evaluate_tables(
        open_table(original), open_table(released, empty=True), file.spec, folder=file.folder
    )
    return {"normalised": found.loss, **vars(found.losses)}
