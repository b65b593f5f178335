"""What is published and with which guarantee, as a spec declares it: one model for each method.

:data:`ReleaseSpec` is the spec of any of them. A field of :class:`CommonSpec` belongs to all
methods, one of :class:`ClassesSpec` to the two that put rows into classes. What others ask of a
method before it is run, its spec says itself: see :class:`CommonSpec`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    create_model,
    model_validator,
)

from incrowd.privacy.events import LONGEST_SERIES
from incrowd.privacy.protection import LARGE_EPSILON
from incrowd.spec.base import SpecModel, Text
from incrowd.spec.payout import PublisherPayout
from incrowd.spec.row_rules import Rule
from incrowd.spec.slices import Slices, Slicing, refuse_equal_slices
from incrowd.spec.table_request import SumRequest, TableRequest, refuse_unequal_sums

Level = Annotated[int, Field(ge=0)]
Epsilon = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]


class SeriesPlan(SpecModel):
    """A table that grows: so many periods, each released once, with noise planned for all."""

    of: Annotated[int, Field(ge=2, le=LONGEST_SERIES)]


@dataclass(frozen=True)
class RequestedBudget:
    """The epsilon and delta of a spec, and the meaning of an epsilon beyond ``most``."""

    epsilon: float | None
    delta: float | None
    most: float
    beyond: str


NO_CUTS = (
    "`scheme: mondrian` needs `draw: sample`; for counts, further cuts cost more noise than they "
    "gain detail. Use `scheme: search`."
)


class CommonSpec(SpecModel):
    """The fields that every method takes, and the questions that every spec answers.

    A level of ``levels`` is one that is fixed, or the lowest and highest that may be chosen.
    ``formulas: escape`` puts an apostrophe before texts that a spreadsheet would run; without it
    they are written as they are.

    ``keeps_sensitive`` says whether sensitive columns are shown as they are, so that they need no
    hierarchy.
    """

    keeps_sensitive: ClassVar[bool] = False

    method: str
    k: Annotated[int, Field(ge=1)] | None = None
    levels: dict[Text, Level | tuple[Level, Level]] = Field(default={})
    format: Literal["parquet", "csv"] = "parquet"
    rows: Literal["expanded", "counted"] = "expanded"
    formulas: Literal["escape"] | None = None

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.formulas is not None and self.format != "csv":
            raise ValueError(
                "`formulas` is for `format: csv`; Parquet holds no formulas. Remove it."
            )
        self._refuse_misfits()
        return self

    @property
    def budget(self) -> RequestedBudget | None:
        """What is asked for of privacy or noise; None where the method has neither."""
        return None

    @property
    def planned_releases(self) -> int | None:
        """The number of releases that share what is asked for; None for one by itself."""
        return None

    @property
    def is_local(self) -> bool:
        """Whether labels of several levels may stand side by side in a column without levels."""
        return False

    def _refuse_misfits(self) -> None:
        """Refuse what does not fit together."""
        for name, level in self.levels.items():
            if isinstance(level, tuple) and level[0] > level[1]:
                raise ValueError(
                    f"the levels of '{name}' must rise, got {level[0]}, {level[1]}. Swap them."
                )


class SafeSpec(CommonSpec):
    """A safe release: differentially private, by a sample or by noisy counts, of crowds alone.

    Of a sample ``k`` is the least number of rows that are alike in it; of counts, of the table
    itself. ``slices`` lists the columns of each table, or says how many columns a table may have.
    With ``releases`` epsilon and delta are those of so many releases together, a planned block of a
    ledger.
    """

    method: Literal["safe"] = "safe"
    epsilon: Epsilon | None = None
    delta: Share | None = None
    beta: Share | None = None
    keep: Share | None = None
    draw: Literal["auto", "sample", "counts"] | None = None
    scheme: Literal["auto", "fixed", "search", "mondrian"] | None = None
    slices: Slices = ()
    already_sampled: Share | None = None
    objective: Literal["rows", "balanced", "detail"] | None = None
    target: Text | None = None
    search_epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    releases: Annotated[int, Field(ge=2, le=1000)] | None = None
    series: SeriesPlan | None = None

    @property
    def planned_releases(self) -> int | None:
        """The number of releases that share epsilon and delta."""
        return self.releases

    @property
    def budget(self) -> RequestedBudget:
        """Of differential privacy."""
        beyond = "the odds of what is released may change by a factor of e^{:g} with one person"
        return RequestedBudget(self.epsilon, self.delta, most=LARGE_EPSILON, beyond=beyond)

    @property
    def detail_power(self) -> int:
        """The power of a row's detail that a search of levels maximizes."""
        default = "rows" if self.target is None else "detail"
        return {"rows": 1, "balanced": 2, "detail": 3}[self.objective or default]

    @property
    def is_local(self) -> bool:
        """Where cells are cut."""
        return self.scheme == "mondrian"

    def _refuse_misfits(self) -> None:
        if self.keep is not None and self.beta is not None:
            raise ValueError("`keep` and `beta` both set the sampling rate. Give one of them.")
        if self.draw == "counts":
            for name in ("beta", "keep"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"`{name}` is for `draw: sample`; counts use all rows. Remove it."
                    )
            if self.scheme == "mondrian":
                raise ValueError(NO_CUTS)
        for name in ("objective", "search_epsilon", "target"):
            if getattr(self, name) is not None and self.scheme == "fixed":
                raise ValueError(
                    f"`{name}` needs `scheme: search`, not `fixed`. Change one of them."
                )
        if self.series is not None:
            self._refuse_misfits_of_series()
        if self.target is not None and self.scheme == "mondrian":
            raise ValueError(
                "`target` excludes `scheme: mondrian`: all values of a target must share the "
                "labels of the other columns. Use `scheme: search`."
            )
        if self.target is not None and self.slices:
            raise ValueError("`target` is for one table, `slices` for several. Remove one of them.")
        if not isinstance(self.slices, Slicing):
            refuse_equal_slices(self.slices)
        super()._refuse_misfits()

    def _refuse_misfits_of_series(self) -> None:
        """Refuse what a series does not have."""
        if self.draw == "sample" or self.scheme in ("search", "mondrian"):
            raise ValueError(
                "`series` needs `draw: counts` and `scheme: fixed`: all periods have the same "
                "cells. Give each column a level under `levels`."
            )
        for name, reason in _NO_SERIES.items():
            if getattr(self, name) not in (None, ()):
                raise ValueError(f"`series` excludes `{name}`: {reason}. Remove one of them.")
        if self.epsilon is None or self.delta is None:
            raise ValueError("`series` needs a budget. Add `epsilon` and `delta`.")


_NO_SERIES = {
    "beta": "counts have no rate", "keep": "counts have no rate",
    "slices": "the noise of a series belongs to the cells of one table",
    "already_sampled": "its amplification is not proved for a series",
    "objective": "levels are fixed for all periods", "target": "levels are fixed for all periods",
    "search_epsilon": "levels are fixed for all periods",
    "releases": "`series` says how many there are",
}  # fmt: skip


class ClassesSpec(CommonSpec):
    """The fields of the methods that put rows into classes of at least k."""

    keeps_sensitive: ClassVar[bool] = True

    loss: Literal["normalized", "precision", "entropy", "discernibility", "class-size"] | None = (
        None
    )
    candidates: Literal["all", "minimal"] | None = None
    cut: Literal["balanced", "median"] | None = None
    suppression: Annotated[float, Field(ge=0, le=1)] | None = None
    suppressed: Literal["dropped", "starred"] | None = None
    search_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    algorithm: Literal["ola", "mondrian", "cluster", "mdav", "suppress", "duplicate"] | None = None

    @property
    def is_local(self) -> bool:
        """Where each class shows what covers it."""
        return self.algorithm in ("mondrian", "cluster", "mdav", "suppress")

    def _refuse_misfits(self) -> None:
        algorithm = self.algorithm or "ola"
        for name, owner in (
            ("loss", "ola"), ("candidates", "ola"), ("suppression", "ola"), ("cut", "mondrian"),
            ("search_seconds", "ola"),
        ):  # fmt: skip
            if getattr(self, name) and algorithm != owner:
                raise ValueError(
                    f"`{name}` is not a setting of `algorithm: {algorithm}`. Remove it."
                )
        if self.search_seconds is not None and self.candidates == "minimal":
            raise ValueError(
                "`search_seconds` excludes `candidates: minimal`, whose search is not limited. "
                "Remove one of them."
            )
        super()._refuse_misfits()
        if algorithm == "suppress":
            self._refuse_level_ranges()
        elif self.levels and algorithm != "ola":
            raise ValueError(f"`levels` is not a setting of `algorithm: {algorithm}`. Remove it.")

    def _refuse_level_ranges(self) -> None:
        """Refuse what does not go with suppressed cells."""
        if self.suppressed is not None:
            raise ValueError(
                "`suppressed` is not a setting of `algorithm: suppress`, which keeps every row. "
                "Remove it."
            )
        for name, level in self.levels.items():
            if not isinstance(level, int) and level[0] != level[1]:
                raise ValueError(
                    f"`algorithm: suppress` needs a fixed level of '{name}', got {level[0]} to "
                    f"{level[1]}. Write one number."
                )


class KAnonymitySpec(ClassesSpec):
    """A k-anonymous release: every row is alike to k - 1 others in what is generalized.

    ``reading`` says what a suppressed cell is when rows are counted: a value of its own, or any
    value. With ``labels: free`` a class shows the sets of its values instead of groups of the
    hierarchy. ``subsets`` says for a number of columns how many rows any so many of them must fit.
    With ``population``, k counts people of a population of that size, from which the table is a
    sample. With ``payout``, the search takes the scheme that pays the publisher most.
    """

    method: Literal["k-anonymity"]
    population: Annotated[int, Field(ge=1, le=2**53)] | None = None
    labels: Literal["hierarchy", "free"] | None = None
    payout: PublisherPayout | None = None
    reading: Literal["category", "wildcard"] | None = None
    subsets: dict[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=2)]] | None = None

    def _refuse_misfits(self) -> None:
        if self.population and (self.reading == "wildcard" or self.algorithm == "duplicate"):
            raise ValueError(
                "`population` needs classes of rows, which `reading: wildcard` and `algorithm: "
                "duplicate` do not have. Remove one of them."
            )
        if self.payout is not None:
            self.payout.refuse_misfits(self.algorithm, self.loss, self.population)
        for name in ("reading", "subsets"):
            if getattr(self, name) and self.algorithm != "suppress":
                raise ValueError(f"`{name}` needs `algorithm: suppress`. Add it, or remove this.")
        if self.labels == "free" and self.algorithm not in ("mondrian", "cluster"):
            raise ValueError(
                "`labels: free` needs `algorithm: mondrian` or `cluster`. Add one, or remove this."
            )
        if self.subsets and self.reading != "wildcard":
            raise ValueError(
                "`subsets` needs `reading: wildcard`. With `category`, any columns have classes of "
                "k if all columns have. Add it, or raise `k`."
            )
        super()._refuse_misfits()


class KEpsilonSpec(ClassesSpec):
    """A (k,epsilon)-anonymous release: classes of at least k, and noise inside each."""

    method: Literal["k-epsilon"]
    epsilon: Epsilon | None = None
    delta: Share | None = None
    noise: Literal["laplace", "gaussian"] | None = None
    bounds: Literal["class", "declared"] | None = None
    confidence: Share | None = None
    clamp: bool | None = None

    @property
    def budget(self) -> RequestedBudget:
        """Of noise."""
        beyond = "such noise hardly hides a value"
        return RequestedBudget(self.epsilon, self.delta, most=20.0, beyond=beyond)

    def _refuse_misfits(self) -> None:
        if self.algorithm in ("cluster", "mdav", "suppress", "duplicate"):
            raise ValueError(
                f"`method: k-epsilon` excludes `algorithm: {self.algorithm}`. Use ola or mondrian."
            )
        super()._refuse_misfits()


MeasuredColumns = Annotated[tuple[Text, ...], Field(min_length=2, max_length=3)]


class SyntheticSpec(CommonSpec):
    """Synthetic rows: differentially private, drawn from a model of noisy small tables.

    ``tables`` are sets of two or three columns that are measured in any case; relations with the
    ``target`` are preferred to others. ``rules`` hold in every row. A row shows the finest value of
    its hierarchy as its label or, with ``values: drawn``, a number or a day drawn from it.
    """

    method: Literal["synthetic"]
    epsilon: Epsilon | None = None
    delta: Share | None = None
    tables: tuple[MeasuredColumns, ...] = ()
    target: Text | None = None
    rules: tuple[Rule, ...] = ()
    values: Literal["labels", "drawn"] | None = None

    @property
    def budget(self) -> RequestedBudget:
        """Of differential privacy."""
        beyond = "the odds of what is released may change by a factor of e^{:g} with one person"
        return RequestedBudget(self.epsilon, self.delta, most=LARGE_EPSILON, beyond=beyond)

    def _refuse_misfits(self) -> None:
        if not self.epsilon or self.delta is None:
            raise ValueError(
                "`method: synthetic` needs a budget. Add `epsilon`, above 0, and `delta`."
            )
        for name in ("k", "levels"):
            if getattr(self, name):
                raise ValueError(f"`{name}` is not a setting of `method: synthetic`. Remove it.")
        if self.rows == "counted":
            raise ValueError("synthetic rows are not grouped. Remove `rows: counted`.")
        for part in self.tables:
            if len(set(part)) < len(part):
                raise ValueError(f"a table names a column twice: {', '.join(part)}. Name it once.")
        if len({frozenset(part) for part in self.tables}) < len(self.tables):
            raise ValueError("two of `tables` have the same columns. Remove one of them.")

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns that tables, rules and the target name."""
        listed = [name for part in (*self.tables, *(rule.names for rule in self.rules))
                  for name in part]  # fmt: skip
        return (*listed, *([self.target] if self.target else []))


class TablesSpec(CommonSpec):
    """Tables of counts that add up: every cell of declared tables, with noise of known size.

    ``tables`` lists them; ``all`` asks for those of every two or three columns instead. ``totals``
    adds the sums at every coarser level. ``missing: excluded`` says that rows with a missing or
    undeclared value in any published column are not counted. ``hide_below`` hides small counts from
    readers; it protects nobody. ``exports`` are further files of the same numbers.
    """

    method: Literal["tables"]
    epsilon: Epsilon | None = None
    delta: Share | None = None
    tables: tuple[TableRequest, ...] = ()
    all: Literal[2, 3] | None = None
    totals: bool = True
    total_label: Text = "Total"
    missing: Literal["counted", "excluded"] | None = None
    objective: Literal["sum", "max"] | None = None
    hide_below: Annotated[int, Field(ge=2, le=1_000_000)] | None = None
    exports: tuple[Literal["xlsx", "sdmx"], ...] = ()

    @property
    def budget(self) -> RequestedBudget:
        """Of differential privacy."""
        beyond = "the odds of what is released may change by a factor of e^{:g} with one person"
        return RequestedBudget(self.epsilon, self.delta, most=LARGE_EPSILON, beyond=beyond)

    def _refuse_misfits(self) -> None:
        if not self.epsilon or self.delta is None:
            raise ValueError(
                "`method: tables` needs a budget. Add `epsilon`, above 0, and `delta`."
            )
        if self.k is not None:
            raise ValueError("`k` is not a setting of `method: tables`. Remove it.")
        if self.levels:
            raise ValueError(
                "`levels` belongs to a table here. Write `tables: [{columns: [a, b], levels: {a: "
                "1}}]`."
            )
        if self.rows == "counted":
            raise ValueError("tables have a count in each line. Remove `rows: counted`.")
        if bool(self.tables) == (self.all is not None):
            raise ValueError(
                "`method: tables` needs tables. Give `tables: [[a, b], [b, c]]`, or `all: 2` for "
                "every two columns."
                if not self.tables
                else "`tables` and `all` exclude each other. Remove one of them."
            )
        if len({table.key for table in self.tables}) < len(self.tables):
            raise ValueError(
                "two of `tables` have the same columns at the same levels. Remove one of them."
            )
        refuse_unequal_sums(self.tables)
        if len(set(self.exports)) < len(self.exports):
            raise ValueError("`exports` names a kind of file twice. Name it once.")

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns that tables name, but for those that are summed."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.columns))

    @property
    def sums(self) -> dict[str, SumRequest]:
        """The columns that are summed, each with its bounds."""
        return {table.sum.column: table.sum for table in self.tables if table.sum is not None}


METHODS: dict[
    str, type[SafeSpec | KAnonymitySpec | KEpsilonSpec | SyntheticSpec | TablesSpec]
] = {
    "safe": SafeSpec, "k-epsilon": KEpsilonSpec, "k-anonymity": KAnonymitySpec,
    "synthetic": SyntheticSpec, "tables": TablesSpec,
}  # fmt: skip


@cache
def build_combined_model() -> type[SpecModel]:
    """Return a model of the fields of all methods, which checks each value by itself.

    So everything that is wrong with values can be said at once, also where the method is misspelled
    or fields of another are among them.
    """
    fields: dict[str, Any] = {}
    for spec in METHODS.values():
        for name, field in spec.model_fields.items():
            others = fields.get(name)
            is_shared = others is None or others[0] == field.annotation
            # What methods declare differently is checked by the method that is named.
            fields[name] = (field.annotation, field) if is_shared else (Any, None)
    fields["method"] = (Literal[tuple(METHODS)], "safe")
    return create_model("Release", __base__=SpecModel, **fields)


def _parse_by_method(value: Any) -> Any:
    """Return the spec of the named method; refuse another method's field if it says anything.

    What it says nothing with, null or no slices, does no harm.
    """
    if isinstance(value, CommonSpec):
        return value
    combined: Any = build_combined_model().model_validate(value)
    spec = METHODS[combined.method]
    for name in type(combined).model_fields:
        is_set = name in combined.model_fields_set and getattr(combined, name) not in (None, (), [])
        if name not in spec.model_fields and is_set:
            raise ValueError(
                f"`{name}` is not a setting of `method: {combined.method}`. Remove it."
            )
    return spec.model_validate({name: value[name] for name in value if name in spec.model_fields})


ReleaseSpec: TypeAlias = Annotated[
    SafeSpec | KAnonymitySpec | KEpsilonSpec | SyntheticSpec | TablesSpec,
    BeforeValidator(_parse_by_method),
]
