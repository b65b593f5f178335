"""The spec: what every column of a table is, said once, in YAML.

Models are frozen and know nothing of data. Reading a spec lists all problems together, each
with its line, its place and, where a name looks mistyped, a suggestion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from incrowd.privacy.events import LARGEST_ROWS, find_most_per_group
from incrowd.spec.about import About, MetadataFormat
from incrowd.spec.base import Number, SpecModel, Text
from incrowd.spec.class_rules import (
    CLASS_RULES,
    Closeness,
    Disclosure,
    Diversity,
    Likeness,
    Presence,
)
from incrowd.spec.coordinates import check_coordinates
from incrowd.spec.dependency import ColumnDependencies
from incrowd.spec.hierarchies import Geo, HierarchyChoice
from incrowd.spec.household import HouseholdTable, find_household_conflict
from incrowd.spec.period import EXAMPLES, Every, find_first_day, write_period
from incrowd.spec.purpose import Purpose
from incrowd.spec.reference import Reference
from incrowd.spec.release import (
    ClassesSpec,
    KAnonymitySpec,
    ReleaseSpec,
    SafeSpec,
    SyntheticSpec,
    TablesSpec,
)
from incrowd.spec.slices import Slicing
from incrowd.spec.table_request import list_summed_columns
from incrowd.spec.value_format import ValueFormat

NOISY_UNDER_SAFE = (
    "`method: safe` cannot publish a noisy column. Give it the role `quasi` and a hierarchy, drop "
    "it, or use `method: k-epsilon`."
)

NOISY_UNDER_SYNTHETIC = (
    "synthetic rows have no noisy columns. Give it the role `quasi` with `intervals` or `dates`, "
    "or drop it."
)
NOISY_UNDER_TABLES = (
    "under `method: tables` a noisy column is one that a table sums. Name it in a table "
    "(`sum: {{column: {0}, bounds: [LOW, HIGH]}}`), give it the role `quasi` with `intervals`, or "
    "`drop` it."
)
SUMMED_ROLE = (
    "a table sums it, so its role is `noisy`, not `{}`. Change the role; its values are not shown."
)
SUMMED_BOUNDS = "its `bounds` and its step stand in the `sum` of the table. Remove them here."
KEY_ELSEWHERE = (
    "the role `key` is for `method: synthetic`. Give it the role `identifier` or `drop`."
)
KEEP_ELSEWHERE = (
    "the role `keep` publishes a column unchanged, as no differentially private method does. Give "
    "it the role `quasi` with a hierarchy, `drop` it, or use `method: k-anonymity` or `k-epsilon`."
)
PRECISION_ELSEWHERE = "`precision` is for role `noisy` or `method: synthetic`. Remove it."

RARE_ELSEWHERE = (
    "`rare: keep` is for `method: safe`, which counts the column beside its rows. Remove it."
)
AGGREGATE_ELSEWHERE = (
    "`aggregate` is for `method: k-anonymity`, whose classes it describes. Remove it."
)
SECOND_WEIGHT = "only one column can have the role `weight`. Drop the other."
REGISTRY_ELSEWHERE = (
    "`describe` names `registry`, which lists differentially private releases; `method: {}` makes "
    "none. Remove it."
)
PUBLISHED_ID = "it is the id of the unit and must not be published. Give it the role `identifier`."

SEVERAL_ROWS = (
    "`rows` above 1 is for `safe`, `k-anonymity` and `k-epsilon`. Remove it: one row per person is "
    "then used."
)

ROWS_COUNTED = (
    "`per_group` above 1 is for `method: safe`, whose counts are then of rows. Remove it: k counts "
    "people."
)
ROWS_IN_SERIES = (
    "the noise of a `series` is planned for counts of people. Remove `per_group`, or `series`."
)

Confirmable: TypeAlias = Literal[
    "role", "written", "hierarchy", "other", "precision", "bounds", "function_of"
]
HARMLESS_ENTRIES: tuple[Confirmable, ...] = ("role", "written")  # they reveal nothing of the data
Role: TypeAlias = Literal[
    "identifier", "quasi", "noisy", "sensitive", "keep", "weight", "key", "drop"
]
_CLASSES = ("k-anonymity", "k-epsilon")  # methods that publish columns unchanged
UNPUBLISHED: tuple[Role, ...] = ("identifier", "drop", "key")  # their values are never published


AggregateName: TypeAlias = Literal["mean", "median"]


class Column(SpecModel):
    """One column: its role, and what its role needs.

    ``allow`` names what a release refuses to publish unless the curator says that it may.
    ``linked`` names the quasi column whose suppressed cells it shares. ``aggregate`` shows the
    mean or the median of each class in place of its numbers. ``values`` lists the categories of a
    noisy column, which randomized response then protects in place of noise. ``references`` names
    the release whose made-up keys a made-up key refers to. ``rare`` has its values counted beside
    the rows, which may lose the rare ones. ``function_of`` names the columns that determine it.
    ``written`` says how its values are written, where that is not the usual way. ``confirm`` names
    the entries that a draft took from the data. A safe release refuses to
    run until they are confirmed to be public knowledge, by removing them from the list.
    """

    role: Role
    written: ValueFormat | None = None
    hierarchy: HierarchyChoice | None = None
    other: Text | None = None
    values: tuple[Text, ...] | None = None
    precision: Annotated[Number, Field(gt=0)] | None = None
    bounds: tuple[Number, Number] | None = None
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    rare: Literal["keep"] | None = None
    function_of: tuple[Text, ...] = ()
    diversity: Diversity | None = None
    closeness: Closeness | None = None
    likeness: Likeness | None = None
    disclosure: Disclosure | None = None
    presence: Presence | None = None
    linked: Text | None = None
    aggregate: AggregateName | None = None
    references: Reference | None = None
    allow: tuple[Literal["free_text", "id", "hipaa"], ...] = ()
    confirm: tuple[Confirmable, ...] = ()

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"role": {"const": "quasi"}}},
            "then": {"required": ["hierarchy"]},
        }
    )

    @property
    def has_class_rules(self) -> bool:
        """Whether something must hold of its values in each class."""
        return any(getattr(self, name) is not None for name in CLASS_RULES)

    @model_validator(mode="after")
    def _check_role(self) -> Column:
        general = self.role in ("quasi", "sensitive")
        if self.role == "quasi" and self.hierarchy is None:
            raise ValueError(
                "a quasi column needs a hierarchy. Add one, such as `hierarchy: flat`."
            )
        if self.hierarchy is not None and not general:
            raise ValueError(f"a column with role `{self.role}` has no hierarchy. Remove it.")
        self._check_values()
        if self.other is not None and self.hierarchy is None and self.values is None:
            raise ValueError("`other` needs a hierarchy. Add one, or remove `other`.")
        for name in ("precision", "bounds"):
            fits_intervals = name == "precision" and self.hierarchy and self.hierarchy.intervals
            if getattr(self, name) is not None and self.role != "noisy" and not fits_intervals:
                raise ValueError(f"`{name}` is for role `noisy`, not `{self.role}`. Remove it.")
        if self.rare is not None and not general:
            raise ValueError(
                f"`rare` is for role `quasi` or `sensitive`, not `{self.role}`. Remove it."
            )
        if self.closeness and self.closeness.hierarchical is not None and self.hierarchy is None:
            raise ValueError("`closeness: {hierarchical: …}` needs a hierarchy. Add one.")
        if self.aggregate is not None and self.has_class_rules:
            raise ValueError(
                "`aggregate` shows one number per class, of which no rule can hold. Remove one of "
                "them."
            )
        for name in (*CLASS_RULES, "linked", "aggregate"):
            if getattr(self, name) is not None and self.role != "sensitive":
                raise ValueError(f"`{name}` is for role `sensitive`, not `{self.role}`. Remove it.")
        if self.references is not None and self.role != "key":
            raise ValueError(f"`references` is for role `key`, not `{self.role}`. Remove it.")
        if self.bounds is not None and self.bounds[0] >= self.bounds[1]:
            raise ValueError(
                f"`bounds` must rise, got {self.bounds[0]} and {self.bounds[1]}. Swap them."
            )
        return self

    def _check_values(self) -> None:
        """Refuse categories of what has none, and fewer than two."""
        if self.values is None:
            return
        if self.role != "noisy":
            raise ValueError(f"`values` is for role `noisy`, not `{self.role}`. Remove it.")
        for name in ("precision", "bounds"):
            if getattr(self, name) is not None:
                raise ValueError(f"`values` lists categories, `{name}` is for numbers. Remove one.")
        if len({*self.values}) < len(self.values) or len({*self.values, self.other} - {None}) < 2:
            raise ValueError("`values` must list two categories or more, each once.")


KEPT = Column.model_validate({"role": "sensitive", "hierarchy": "flat"})  # by its own values


class Period(SpecModel):
    """The periods of a column of days: what is protected is one person within one of them.

    ``every: value`` takes each value of the column for a period.
    """

    column: Text
    every: Every


class Part(SpecModel):
    """The one period whose rows the table holds, as it is written: 2026, 2026-Q3, 2026-07."""

    column: Text
    value: Text


class PersonId(SpecModel):
    """Several rows may belong to one person, told by this column; at most ``rows`` are used.

    With ``per_group`` above 1 rows are counted in place of people, so many of a person per group.
    A row without an id is nobody's: such tables are refused unless ``without_id`` says to drop
    those rows. ``protects`` says that the id is that of a household, all of whose members are
    protected together.
    """

    id: Text
    rows: Annotated[int, Field(ge=1, le=LARGEST_ROWS)] = 1
    per_group: Annotated[int, Field(ge=1, le=LARGEST_ROWS)] = 1
    without_id: Literal["drop"] | None = None
    period: Period | None = None
    protects: Literal["household"] | None = None


class Spec(SpecModel):
    """A table, its unit, its columns and the release that is asked for.

    ``sheet`` is that of a workbook; ``header`` the row, from 1, that names the columns. ``size`` is
    how many people the curator says there are, or that their true number is public; what to expect
    is said from it. Only a number that is written here may move the split of a budget. ``ledger``
    is the file of the privacy budget, beside the spec. ``confirm`` marks a ``unit`` that a draft
    has guessed; every method refuses to run until it is confirmed. A ``household`` has a table of
    its own, beside that of its people. ``about`` is what the curator
    asserts of the release, ``describe`` the metadata files that are written from it. A ``purpose``
    without a ``release`` stands for the release of :mod:`incrowd.spec.purpose`. ``hipaa`` says that
    the published columns must keep to the list of HIPAA's safe harbor.
    """

    table: Text | None = None
    sheet: Text | None = None
    header: Annotated[int, Field(ge=1)] | None = None
    ledger: Text | None = None
    size: Annotated[int, Field(ge=1, le=2**53)] | Literal["public"] | None = None
    unit: PersonId | Literal["one row per person"] = "one row per person"
    part: Part | None = None
    household: HouseholdTable | None = None
    confirm: tuple[Literal["unit"], ...] = ()
    columns: Annotated[dict[Text, Column], Field(min_length=1)]
    purpose: Purpose | None = None
    hipaa: Literal["safe-harbor"] | None = None
    release: ReleaseSpec | None = None
    about: About | None = None
    describe: tuple[MetadataFormat, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _write_part(cls, value: Any) -> Any:
        """Write 2026Q3 as 2026-Q3: two names of one part would be two parts of a ledger."""
        match value:
            case {"part": {"value": str(text), **rest}, "unit": {"period": {"every": str(every)}}}:
                return {**value, "part": {**rest, "value": write_period(text, every)}}
        return value

    @model_validator(mode="after")
    def _check_columns(self) -> Spec:
        if isinstance(self.unit, PersonId) and self.unit.id not in self.columns:
            raise ValueError(
                f"`unit` names the column '{self.unit.id}', which has no entry. Add it."
            )
        if isinstance(self.unit, PersonId) and self.unit.id not in self.columns_with_role(
            *UNPUBLISHED
        ):
            raise ValueError(f"column '{self.unit.id}': {PUBLISHED_ID}")
        ColumnDependencies.from_columns(self.columns).refuse_misnamed(self.columns)
        self._check_period()
        self._check_per_group()
        check_coordinates(self.places, {name: column.role for name, column in self.columns.items()})
        release = self.release
        if self.household is not None:
            conflict = find_household_conflict(
                self.household, self.unit, self.columns, release, has_part=self.part is not None
            )
            if conflict is not None:
                raise ValueError(conflict)
        if "registry" in self.describe and isinstance(release, ClassesSpec):
            raise ValueError(REGISTRY_ELSEWHERE.format(release.method))
        if release is None:
            return self
        several = self.unit.rows if isinstance(self.unit, PersonId) else 1
        if several > 1 and not isinstance(release, SafeSpec | ClassesSpec):
            raise ValueError(f"`unit`: {SEVERAL_ROWS}")
        slices = release.slices if isinstance(release, SafeSpec) else ()
        parts = () if isinstance(slices, Slicing) else slices
        target = (release.target,) if isinstance(release, SafeSpec) and release.target else ()
        named = release.named_columns if isinstance(release, SyntheticSpec | TablesSpec) else target
        summed = release.sums if isinstance(release, TablesSpec) else ()
        for name in [*release.levels, *named, *summed, *(name for part in parts for name in part)]:
            if name not in self.columns:
                raise ValueError(
                    f"`release` names the column '{name}', which has no entry. Add it."
                )
        weights = self.columns_with_role("weight")
        if len(weights) > 1:
            raise ValueError(f"column '{weights[1]}': {SECOND_WEIGHT}")
        noisy = self.columns_with_role("noisy")
        if noisy and isinstance(release, SafeSpec):
            raise ValueError(f"column '{noisy[0]}': {NOISY_UNDER_SAFE}")
        if isinstance(release, TablesSpec):
            self._refuse_noisy_misfits(release)
        aggregated = [name for name, column in self.columns.items() if column.aggregate]
        if aggregated and not isinstance(release, KAnonymitySpec):
            raise ValueError(f"column '{aggregated[0]}': {AGGREGATE_ELSEWHERE}")
        self._refuse_elsewhere(synthetic=isinstance(release, SyntheticSpec))
        return self

    @property
    def places(self) -> dict[str, Geo]:
        """The columns that are made of two columns of coordinates."""
        return {
            name: column.hierarchy.geo
            for name, column in self.columns.items()
            if column.hierarchy is not None and column.hierarchy.geo is not None
        }

    def _refuse_noisy_misfits(self, release: TablesSpec) -> None:
        """Refuse noisy columns that no table sums, and sums of other columns."""
        for name in self.columns_with_role("noisy"):
            if name not in release.sums:
                raise ValueError(f"column '{name}': {NOISY_UNDER_TABLES.format(name)}")
            if self.columns[name].bounds is not None or self.columns[name].precision is not None:
                raise ValueError(f"column '{name}': {SUMMED_BOUNDS}")
        for name in release.sums:
            role = self.columns[name].role
            if role != "noisy":
                raise ValueError(f"column '{name}': {SUMMED_ROLE.format(role)}")

    def _check_per_group(self) -> None:
        """Refuse more rows in a group than are used, and counts of rows where people count."""
        unit, release = self.unit, self.release
        if not isinstance(unit, PersonId) or unit.per_group == 1:
            return
        if unit.per_group > unit.rows:
            raise ValueError(
                f"`unit`: `per_group` ({unit.per_group}) exceeds `rows` ({unit.rows}), the rows of "
                "a person that are used. Use at most as many."
            )
        if unit.per_group > (most := find_most_per_group(unit.rows)):
            raise ValueError(
                f"`unit`: {unit.rows} rows of a person, up to {unit.per_group} in one group, can "
                "lie in too many ways to account for each. Use `per_group` of at most "
                f"{most}, or fewer `rows`."
            )
        if release is not None and not isinstance(release, SafeSpec):
            raise ValueError(f"`unit`: {ROWS_COUNTED}")
        if isinstance(release, SafeSpec) and release.series is not None:
            raise ValueError(f"`unit`: {ROWS_IN_SERIES}")

    def _check_period(self) -> None:
        """Refuse a period without a part, and a part without a period."""
        period = self.unit.period if isinstance(self.unit, PersonId) else None
        if period is None and self.part is None:
            return
        if period is None:
            raise ValueError(
                "`part` needs a unit within one period, or a person may have rows in several "
                "parts. Add `period` to `unit: {id: COLUMN}`."
            )
        if self.part is None:
            raise ValueError(
                "`unit` has a `period`: publish one period at a time. Add `part: {column: "
                f"{period.column}, value: PERIOD}}`, with a table of that period alone."
            )
        if self.part.column != period.column:
            raise ValueError(
                f"`part` names the column '{self.part.column}', but periods are those of "
                f"'{period.column}'. Name the same column."
            )
        if period.column not in self.columns:
            raise ValueError(
                f"`period` names the column '{period.column}', which has no entry. Add it."
            )
        if find_first_day(self.part.value, period.every) is None:
            raise ValueError(
                f"`part` names '{self.part.value}', which is no {period.every}. Write it as "
                f"{EXAMPLES[period.every]}."
            )
        if isinstance(self.release, ClassesSpec):
            raise ValueError(
                "`period` is for differential privacy; this method has no budget. Remove it."
            )
        if self.release is not None and self.release.planned_releases is not None:
            raise ValueError(
                "`releases` plans a block of one table, `part` one of several. Remove one of them."
            )

    def _refuse_elsewhere(self, *, synthetic: bool) -> None:
        """Refuse what belongs to other methods: to synthetic rows, to classes."""
        for name, column in self.columns.items():
            if synthetic and column.role == "noisy":
                raise ValueError(f"column '{name}': {NOISY_UNDER_SYNTHETIC}")
            if column.role == "keep" and not isinstance(self.release, ClassesSpec):
                raise ValueError(f"column '{name}': {KEEP_ELSEWHERE}")
            if not synthetic and column.role == "key":
                raise ValueError(f"column '{name}': {KEY_ELSEWHERE}")
            if not synthetic and column.role != "noisy" and column.precision is not None:
                raise ValueError(f"column '{name}': {PRECISION_ELSEWHERE}")
        if self.release is not None and not isinstance(self.release, SafeSpec):
            for name in self.columns_with_shares:
                raise ValueError(f"column '{name}': {RARE_ELSEWHERE}")

    def columns_with_role(self, *roles: Role) -> tuple[str, ...]:
        """Return the names of the columns with one of the roles, in the order of the spec."""
        return tuple(name for name, column in self.columns.items() if column.role in roles)

    @property
    def columns_with_shares(self) -> tuple[str, ...]:
        """The columns whose values are to be counted beside the rows, in the order of the spec."""
        return tuple(name for name, column in self.columns.items() if column.rare is not None)

    @property
    def unconfirmed_entries(self) -> dict[str, tuple[Confirmable, ...]]:
        """The entries that a draft took from the data and nobody has confirmed, by column."""
        return {name: column.confirm for name, column in self.columns.items() if column.confirm}

    @property
    def is_confirmed(self) -> bool:
        """Whether nothing is left to confirm, of columns or of the unit."""
        return not self.confirm and not self.unconfirmed_entries


def list_misplaced_roles(
    release: Mapping[str, Any], columns: Mapping[str, Any]
) -> list[tuple[tuple[str, ...], str]]:
    """Return what a spec, as plain values, has that its method does not, each with its place."""
    method = str(release.get("method", "safe"))
    synthetic = method == "synthetic"
    role, problem = ("noisy", NOISY_UNDER_SYNTHETIC) if synthetic else ("key", KEY_ELSEWHERE)
    misplacements: list[tuple[tuple[str, ...], str]] = []
    refusals = {"safe": NOISY_UNDER_SAFE, "tables": NOISY_UNDER_TABLES}
    refusal = refusals.get(method)
    summed = list_summed_columns(release.get("tables"))
    for name, column in columns.items():
        if not isinstance(column, dict):
            continue
        if refusal and column.get("role") == "noisy" and name not in summed:
            misplacements.append((("columns", name, "role"), refusal.format(name)))
        if column.get("role") == "keep" and method not in _CLASSES:
            misplacements.append((("columns", name, "role"), KEEP_ELSEWHERE))
        if column.get("role") == role:
            misplacements.append((("columns", name, "role"), problem))
        precise = column.get("precision") is not None and column.get("role") != "noisy"
        if precise and not synthetic:
            misplacements.append((("columns", name, "precision"), PRECISION_ELSEWHERE))
        if column.get("rare") is not None and method != "safe":
            misplacements.append((("columns", name, "rare"), RARE_ELSEWHERE))
    rules = release.get("rules") if synthetic else None
    for rule in rules if isinstance(rules, list) else ():
        for name in _list_rule_names(rule):
            if name not in columns:
                words = f"the column '{name}' has no entry. Add it, or correct the rule."
                misplacements.append((("release", "rules"), words))
    return misplacements


def _list_rule_names(rule: object) -> list[str]:
    """Return the columns that a rule names, as plain values; nothing of what is no rule."""
    if not isinstance(rule, dict):
        return []
    parts = [part for key in ("if", "then", "never", "order", "sum") for part in (rule.get(key),)]
    listed = [str(name) for part in parts if isinstance(part, dict | list) for name in part]
    return [*listed, *([rule["is"]] if isinstance(rule.get("is"), str) else [])]


def build_json_schema() -> dict[str, Any]:
    """Return a JSON Schema of the spec, for editors that complete and check while one types."""
    from incrowd.spec.schema import describe_schema  # which reads a file that nothing else needs

    schema = describe_schema("Spec", Spec.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
