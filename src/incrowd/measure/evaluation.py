"""All that is measured of a release, as records: loss, risk, utility, noise; for the curator alone.

How suppressed rows count is said at each figure. :mod:`incrowd.measure.label_evaluation` fills it
from labels, :mod:`incrowd.measure.outcome` from the levels of a safe release, and
:mod:`incrowd.measure.slices` from several tables.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from incrowd.findings import Finding
from incrowd.measure import prediction
from incrowd.measure.association import Association
from incrowd.measure.lost_values import LostValues
from incrowd.measure.risk import Risk
from incrowd.measure.subgroups import Subgroup

if TYPE_CHECKING:
    from incrowd.measure.noise_loss import NoiseEvaluation
    from incrowd.measure.number_loss import NumberEvaluation
    from incrowd.measure.outcome import SearchResult, SuppressionResult
    from incrowd.measure.payout import Payout
    from incrowd.measure.weighted import WeightedEvaluation

# The two scales of utility: bins are published labels, or values of the original
AT_LEVELS, BY_VALUE = "at published levels", "by value"


@dataclass(frozen=True)
class Losses:
    """Measures of information loss besides the normalized loss; smaller is better.

    Attributes:
        precision: Mean of paper B's precision over columns and all original rows; 1 for a
            suppressed row.
        entropy: Share of bits lost (non-uniform entropy); all of them for a suppressed row.
        discernibility: Sum of squared class sizes over the squared number of rows. A suppressed row
            counts as equal to all others.
        average_class_size: Mean class size, without suppressed rows.
    """

    precision: float
    entropy: float
    discernibility: float
    average_class_size: float | None


@dataclass(frozen=True)
class Utility:
    """Measures of what can still be learned, from the rows published alone.

    ``distance_by_column`` is the total variation distance of the distributions, 0 to 1;
    ``association_error`` the mean difference of Cramér's V over pairs of columns;
    ``query_error`` the median relative error of random range counts, taken as shares.
    """

    distance_by_column: dict[str, float]
    associations: list[Association]
    association_error: float
    query_error: float
    query_error_mean: float
    accuracy: prediction.Accuracy | None


@dataclass(frozen=True)
class Advice:
    """The effect of one coarser level of a column."""

    column: str
    level: int
    likely_share: float

    def is_helpful(self, evaluation: Evaluation) -> bool:
        """Return whether it would bring a good part of the rows into cells that likely survive."""
        return self.likely_share >= (evaluation.likely_share or 0.0) + 0.1


@dataclass(frozen=True)
class Shift:
    """The number of rows that have a label of the target in the table, and as published."""

    label: str | None
    original: int
    released: int


@dataclass(frozen=True)
class Survival:
    """Cramér's V of two columns in the table and as released, and the slice that shows it.

    Slices count from 1; None marks a pair that no slice shows, whose V reads as 0. If such a pair
    does stand together in a slice, but that shows one and the same label of a column in all rows
    (``*``, say), ``silent`` is that slice.
    """

    first: str
    second: str
    original: float
    released: float
    slice: int | None
    silent: int | None = None


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Measures of what a release keeps, loses and risks; None or empty if not measured.

    ``loss`` is the normalized loss, comparable with ARX's, a mean over the rows of the table and
    those that are too many; a suppressed row counts 1, and so does one too many. A row is
    suppressed that is missing in its cell; ``surplus`` are the rows that cells have too many. Of
    slices the loss is the mean, each by its columns, and rows and classes are those of all slices.

    By labels, of any table: ``precision_by_column`` over the rows shown, ``losses``, ``risk``,
    ``utility``, by values (beside it ``utility_of_levels``, whose bins are labels, where each
    column is published at one level), ``noise``, and how good a scheme the ``search`` found, or how
    few cells the ``suppression`` of single cells took;
    ``weighted`` is what survey weights estimate before and after, where they are published;
    ``payout`` is what the release pays, where the spec has a payout model;
    ``numbers`` compares columns of which classes show the mean or the median;
    ``lost`` are values that lost far more rows than others, and columns that show nothing;
    ``subgroups`` are rows by label;
    ``readings`` say how labels were read that mean different things at different levels.

    By the levels of a safe release: its ``utility``, whose bins are labels of these levels (beside
    it ``utility_of_values``, by values), its cells, the share of rows in cells that likely survive,
    how many rows lie in cells of which size (entry i: from 2**i rows), what coarser levels would
    change, and what became of each label of a ``target``.

    Of ``slices``: each by itself, their ``columns``, and what becomes of the associations of every
    two columns; ``association_error`` is the mean difference of V.
    """

    rows_original: int
    rows_released: int
    suppressed: int
    classes: int
    smallest_class: int
    loss: float
    surplus: int = 0
    loss_by_column: dict[str, float] = field(default_factory=dict)

    precision_by_column: dict[str, float] = field(default_factory=dict)
    losses: Losses | None = None
    risk: Risk | None = None
    utility: Utility | None = None
    utility_of_values: Utility | None = None
    utility_of_levels: Utility | None = None
    noise: NoiseEvaluation | None = None
    search: SearchResult | None = None
    weighted: WeightedEvaluation | None = None
    numbers: NumberEvaluation | None = None
    suppression: SuppressionResult | None = None
    payout: Payout | None = None
    lost: LostValues = field(default_factory=LostValues)
    subgroups: list[Subgroup] = field(default_factory=list)
    missing_columns: tuple[str, ...] = ()
    readings: tuple[Finding, ...] = ()

    cells_original: int | None = None
    cells_released: int | None = None
    likely_share: float | None = None
    detail_by_column: dict[str, float] = field(default_factory=dict)
    sizes_original: list[int] = field(default_factory=list)
    sizes_released: list[int] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    target: str | None = None
    shifts: list[Shift] = field(default_factory=list)

    slices: tuple[Evaluation, ...] = ()
    columns: tuple[tuple[str, ...], ...] = ()
    associations: tuple[Survival, ...] = ()
    association_error: float | None = None

    @property
    def share(self) -> float:
        """Rows released, as a share of the rows of the table."""
        return self.rows_released / max(self.rows_original, 1)

    @property
    def utility_by_scale(self) -> dict[str, Utility]:
        """The utility at published levels and by value, each where it was measured."""
        by_levels, by_values = self.utility_of_levels, self.utility
        if self.utility_of_values is not None:
            by_levels, by_values = self.utility, self.utility_of_values
        elif self.risk is None:  # labels were not compared
            by_levels, by_values = self.utility, None
        scales = {AT_LEVELS: by_levels, BY_VALUE: by_values}
        return {scale: utility for scale, utility in scales.items() if utility is not None}

    def with_accuracy(self, accuracy: prediction.Accuracy | None) -> Evaluation:
        """Return the same with what a classifier learns from it."""
        if accuracy is None or self.utility is None:
            return self
        return replace(self, utility=replace(self.utility, accuracy=accuracy))

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain values, for JSON."""
        return {**asdict(self), "findings": [finding.as_dict() for finding in self.findings()]}

    def findings(self) -> tuple[Finding, ...]:
        """Return what was found of lost values, of how labels were read, and of noise."""
        noise = self.noise.findings if self.noise else ()
        of_slices = (finding for part in self.slices for finding in part.findings())
        return tuple(dict.fromkeys((*self.lost.findings(), *self.readings, *noise, *of_slices)))


@dataclass(frozen=True, kw_only=True)
class LabelEvaluation(Evaluation):
    """An evaluation by labels, with every measure that labels allow."""

    losses: Losses
    risk: Risk
    utility: Utility
