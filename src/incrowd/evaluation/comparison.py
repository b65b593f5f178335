"""Several releases of one table side by side: loss, risk, utility and attacks.

Every figure is computed from the original table, for the curator alone. Choosing among
differentially private releases by such figures makes the choice depend on the table, which their
guarantee does not cover: the comparison says so wherever one of them is private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from incrowd.arrays import Step
from incrowd.engine.table import Engine
from incrowd.errors import IncrowdError, ParameterError
from incrowd.evaluation.attacks.attack import attack
from incrowd.evaluation.attacks.catalog import ON_SYNTHETIC_ROWS, QUICK
from incrowd.evaluation.evaluate import evaluate
from incrowd.findings import Finding
from incrowd.measure.estimate import Estimate
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.synthetic import SyntheticEvaluation
from incrowd.release.certificate import FILE, Certificate
from incrowd.release.release import Release
from incrowd.spec.file import SpecSource

TRIES = 500

CHOICE_WARNING = (
    "A differentially private release must not be chosen by these figures: the choice would depend "
    "on the table, and no guarantee covers it. Compare dry runs, or use `scheme: search`."
)


@dataclass(frozen=True)
class FigureKind:
    """A figure of a comparison: its name, what it says, and how it is written.

    ``form`` is "count", "percent", or "number"; ``part`` groups figures: size, loss, risk, utility.
    """

    name: str
    label: str
    part: str
    form: str


FIGURES = (
    FigureKind("rows", "rows released", "size", "count"),
    FigureKind("suppressed", "rows missing", "size", "percent"),
    FigureKind("surplus", "rows surplus", "size", "percent"),
    FigureKind("groups", "groups", "size", "count"),
    FigureKind("smallest", "smallest group", "size", "count"),
    FigureKind("loss", "information loss", "loss", "number"),
    FigureKind("precision", "loss of precision", "loss", "number"),
    FigureKind("entropy", "bits lost", "loss", "percent"),
    FigureKind("highest_risk", "highest risk", "risk", "percent"),
    FigureKind("mean_risk", "mean risk", "risk", "percent"),
    FigureKind("journalist", "journalist", "risk", "percent"),
    FigureKind("marketer", "marketer", "risk", "percent"),
    FigureKind("uniques", "unique rows", "risk", "percent"),
    FigureKind("distance", "distance of columns", "utility", "number"),
    FigureKind("pair_distance", "distance of pairs", "utility", "number"),
    FigureKind("association_error", "error of associations", "utility", "number"),
    FigureKind("query_error", "error of range counts", "utility", "percent"),
    FigureKind("accuracy", "prediction correct", "utility", "percent"),
)


@dataclass(frozen=True)
class ComparedRelease:
    """One release of a comparison.

    Attributes:
        name: Name of the release: its folder or file.
        method: Method of its certificate; None of a file without one.
        k: Smallest class that it guarantees; None where it guarantees none.
        epsilon: ε of its guarantee; None if it is not differentially private.
        delta: δ of its guarantee.
        figures: Its figures by name; None where a release has no such figure.
        attacks: Success of each attack, beside guessing.
        findings: What to know of the figures.
    """

    name: str
    method: str | None
    k: int | None
    epsilon: float | None
    delta: float | None
    figures: Mapping[str, float | None]
    attacks: tuple[Estimate, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Releases of one table side by side.

    Attributes:
        rows: Number of rows of the table.
        releases: The releases, in the order given.
    """

    rows: int
    releases: tuple[ComparedRelease, ...]

    @property
    def kinds(self) -> tuple[FigureKind, ...]:
        """The figures that some release has."""
        return tuple(
            kind
            for kind in FIGURES
            if any(release.figures[kind.name] is not None for release in self.releases)
        )

    @property
    def attacks(self) -> tuple[tuple[str, str], ...]:
        """The attacks that were tried on some release, by kind and form."""
        listed = [(e.attack, e.name) for release in self.releases for e in release.attacks]
        return tuple(dict.fromkeys(listed))

    @property
    def has_private(self) -> bool:
        """Whether some release is differentially private, and not to be chosen by the figures."""
        return any(release.epsilon is not None for release in self.releases)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values, for JSON."""
        releases = []
        for release in self.releases:
            fields = {**asdict(release), "figures": dict(release.figures)}
            fields["findings"] = [finding.as_dict() for finding in release.findings]
            releases.append(fields)
        warning = CHOICE_WARNING if self.has_private else None
        return {"rows": self.rows, "releases": releases, "warning": warning}


def compare(
    original: Any,
    releases: Sequence[Any],
    spec: SpecSource | Sequence[SpecSource],
    *,
    attacks: bool = True,
    tries: int = TRIES,
    target: str | None = None,
    seed: int | None = None,
    engine: Engine | None = None,
    step: Step = lambda _name: None,
) -> Comparison:
    """Compare releases of one table: loss, risk, utility and attacks, side by side.

    The result is for the curator alone. It is not a way to choose a differentially private release:
    a choice by its figures depends on the table, and its guarantee does not cover that.

    Args:
        original: The table that was published, in any form that :func:`incrowd.publish` takes.
        releases: Two or more releases, folders, or files that other tools made.
        spec: The spec that explains the labels of all of them, or one for each.
        attacks: Also run the attacks that take a second each.
        tries: Largest number of people to attack.
        target: A column to predict.
        seed: Seed of the attacks, so that each release meets the same people.
        engine: The engine that opens the tables.
        step: Hears of each release before it is measured.

    Returns:
        The figures of each release.

    Raises:
        IncrowdError: A table cannot be opened, or its labels do not fit its spec.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> people = pl.DataFrame({"sex": ["female", "male"] * 10})
        >>> fine, coarse = people, people.with_columns(sex=pl.lit("*"))
        >>> sex = {"role": "quasi", "hierarchy": {"flat": {"values": ["female", "male"]}}}
        >>> spec = {"columns": {"sex": sex}}
        >>> comparison = ic.compare(people, [fine, coarse], spec, attacks=False)
        >>> [release.figures["loss"] for release in comparison.releases]
        [0.0, 1.0]
    """
    if len(releases) < 2:
        raise ParameterError("releases", "be two or more releases", len(releases))
    specs: list[Any] = [*spec] if isinstance(spec, list | tuple) else [spec]
    if len(specs) not in (1, len(releases)):
        raise ParameterError("spec", "be one spec, or one for each release", len(specs))
    specs = specs * len(releases) if len(specs) == 1 else specs
    start = 1 if seed is None else seed
    compared, rows = [], 0
    for number, (released, source) in enumerate(zip(releases, specs, strict=True), 1):
        name = _name_release(released, number)
        step(name)
        evaluation = evaluate(original, released, source, target=target, engine=engine)
        rows = max(rows, evaluation.rows_original)
        estimates: tuple[Estimate, ...] = ()
        if attacks and not evaluation.slices:
            only = _list_attacks(evaluation)
            estimates = attack(
                original, released, source, only=only, tries=tries, seed=start, engine=engine
            ).estimates
        compared.append(_describe_release(name, released, evaluation, estimates))
    return Comparison(rows, tuple(compared))


def _list_attacks(evaluation: Evaluation) -> tuple[str, ...]:
    """Return the attacks that take a second on such a release."""
    if isinstance(evaluation, SyntheticEvaluation):
        return tuple(name for name in ON_SYNTHETIC_ROWS if name in QUICK)
    return QUICK


def _name_release(released: Any, number: int) -> str:
    if isinstance(released, Release):
        return released.folder.name if released.folder is not None else f"release {number}"
    return str(released) if isinstance(released, str | Path) else f"release {number}"


def _describe_release(
    name: str, released: Any, evaluation: Evaluation, estimates: tuple[Estimate, ...]
) -> ComparedRelease:
    certificate = _read_certificate(released)
    guarantee = None if certificate is None else certificate.guarantee
    return ComparedRelease(
        name=name,
        method=None if certificate is None else certificate.method,
        k=(certificate.k or None) if certificate is not None else None,
        epsilon=guarantee.epsilon if guarantee is not None else None,
        delta=guarantee.delta if guarantee is not None else None,
        figures=list_figures(evaluation),
        attacks=estimates,
        findings=evaluation.findings(),
    )


def _read_certificate(released: Any) -> Certificate | None:
    """Return the certificate of a release, of a folder, or beside a file; None without one."""
    if isinstance(released, Release):
        return released.certificate
    if not isinstance(released, str | Path):
        return None
    path = Path(released)
    folder = path if path.is_dir() else path.parent
    try:
        return Certificate.model_validate_json((folder / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def list_figures(evaluation: Evaluation) -> dict[str, float | None]:
    """Return the figures of one evaluation by name; None for those that it does not have."""
    rows = max(evaluation.rows_original, 1)
    figures: dict[str, float | None] = dict.fromkeys(kind.name for kind in FIGURES)
    figures["rows"] = float(evaluation.rows_released)
    utility = evaluation.utility
    if utility is not None and utility.accuracy is not None:
        figures["accuracy"] = utility.accuracy.released
    if isinstance(evaluation, SyntheticEvaluation):
        figures["distance"] = evaluation.mean_distance
        figures["pair_distance"] = evaluation.mean_pair_distance
        return figures
    figures |= {
        "suppressed": evaluation.suppressed / rows,
        "surplus": evaluation.surplus / rows,
        "groups": float(evaluation.classes),
        "smallest": float(evaluation.smallest_class),
        "loss": evaluation.loss,
        "association_error": evaluation.association_error,
    }
    if evaluation.losses is not None:
        figures["precision"] = evaluation.losses.precision
        figures["entropy"] = evaluation.losses.entropy
    if evaluation.risk is not None:
        risk = evaluation.risk
        figures |= {
            "highest_risk": risk.highest, "mean_risk": risk.mean, "journalist": risk.journalist,
            "marketer": risk.marketer, "uniques": risk.uniques,
        }  # fmt: skip
    if utility is not None:
        by_value = evaluation.utility_of_values or utility
        distances = by_value.distance_by_column.values()
        figures["distance"] = sum(distances) / max(len(distances), 1)
        figures["association_error"] = by_value.association_error
        figures["query_error"] = by_value.query_error
    return figures


def require_releases(names: Sequence[str]) -> None:
    """Refuse fewer than two releases, as a command gets them."""
    if len(names) < 2:
        raise IncrowdError("Comparing needs two releases or more. Name another folder or file.")
