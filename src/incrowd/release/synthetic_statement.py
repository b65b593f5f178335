"""The sentences of a statement that are about synthetic rows."""

from __future__ import annotations

from collections.abc import Iterator

from incrowd.release.parameters import Parameters
from incrowd.release.synthetic_part import SyntheticPart

_ROWS = (
    "Published rows are synthetic: each was drawn from a model, and none is the row of a person. A "
    "row may equal a row of the input by chance. There is no k-anonymity."
)
_MEASUREMENTS = (
    "The model was fitted to small tables of counts, of at most three columns each, that were "
    "measured with discrete Gaussian noise. ε and δ include all of them. The measured tables are "
    "published with the standard deviations of their counts, where a table has counts."
)
_INDEPENDENCE = (
    "Columns that share no table of the model are assumed to be independent, given the columns "
    "between them. Other relations between them are not reproduced."
)
_NUMBER = "The number of published rows is a noisy estimate of the number of input rows."
_DRAWN = (
    "Within a declared interval or period, values were drawn at random: {}. Finer details carry no "
    "information."
)
_RULES = (
    "Every row obeys the {} of the certificate, fixed before the input was read and independent of "
    "it, as the curator asserts."
)
_REFERENCES = (
    "'{name}' refers to the made-up keys '{column}' of the release with the seal {seal}, {numbers} "
    "among its {rows:,} rows. The links between the two tables are made up by a public rule: no "
    "link of the input was used, and no relation across the tables is reproduced."
)
_MISSING = (
    "A null stands for a value that is missing in the input or outside the declared values of its "
    "column, unless the column shows the latter as a label of its own. Because of noise, a column "
    "without missing values may show some."
)
_PRECISION = (
    "The information of all measurements is {!r}: for each, the squared length by which one row of "
    "the input moves it, divided by the variance of its noise."
)
_RANGE = "Each private choice of a table has a bounded range of {!r}."


def describe_synthetic(part: SyntheticPart, parameters: Parameters) -> Iterator[tuple[str, str]]:
    """Return a key and a text for each sentence; they follow from the certificate alone."""
    yield "synthetic_rows", _ROWS
    yield "measurements", _MEASUREMENTS
    if parameters.get("choices"):
        yield "choices", _describe_choices(part, parameters)
    if part.tables:
        listed = "; ".join(_join(table, " and ") for table in part.tables)
        yield "required_tables", f"Measured in any case, as the spec asks: {listed}."
    yield "independence", _INDEPENDENCE
    yield "number_of_rows", _NUMBER
    drawn_names = sorted(name for name, points in part.points.items() if points.drawn)
    if drawn_names:
        yield "drawn_values", _DRAWN.format(_join(drawn_names))
    if part.rules:
        number = len(part.rules)
        yield "rules", _RULES.format(f"{number} {'rule' if number == 1 else 'rules'}")
    if part.keys:
        yield "keys", f"Made up, in the order of the rows: {_join(part.keys)}."
    for name, key in sorted((part.references or {}).items()):
        numbers = "drawn uniformly" if key.children is None else "in declared numbers per key"
        yield (
            "references",
            _REFERENCES.format(
                name=name, column=key.column, seal=key.seal, rows=key.rows, numbers=numbers
            ),
        )
    yield "missing_values", _MISSING


def describe_synthetic_details(parameters: Parameters) -> Iterator[tuple[str, str]]:
    """Return a key and a text for each sentence that is shown under technical details."""
    yield "information", _PRECISION.format(parameters["information"])
    if parameters.get("choices"):
        yield "choice_range", _RANGE.format(parameters["choice_epsilon"])


def _describe_choices(part: SyntheticPart, parameters: Parameters) -> str:
    preferred = ""
    if part.target is not None:
        preferred = f", with twice the weight for tables that contain '{part.target}'"
    return (
        f"The tables of two and three columns were chosen by up to {int(parameters['choices']):,} "
        f"differentially private choices{preferred}. ε and δ include them."
    )


def _join(names: list[str], between: str = ", ") -> str:
    return between.join(f"'{name}'" for name in names)
