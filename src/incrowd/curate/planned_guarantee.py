"""What a release will promise, before its table is seen: the crowd, and the certificate's words.

Nothing is read from the table, whatever the spec says of its size: a promise follows from the spec.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from incrowd.methods.base import Method, published_columns
from incrowd.methods.k_anonymity.method import KAnonymity
from incrowd.methods.k_epsilon.method import KEpsilon
from incrowd.methods.registry import make_method
from incrowd.methods.safe.method import Safe
from incrowd.methods.synthetic.method import Synthetic
from incrowd.methods.tables.method import Tables
from incrowd.privacy.events import Event
from incrowd.privacy.plan_counts import USUAL_K
from incrowd.release.parameters import (
    Parameters,
    parameters_from_events,
    synthetic_parameters,
    tabulation_parameters,
)
from incrowd.release.statement import Facts, Sentence, write_statement
from incrowd.spec.file import SpecSource, load_spec
from incrowd.spec.model import Spec
from incrowd.spec.release import SafeSpec

_LATER = (
    "k and the sampling probability β are chosen together with the generalization by the search. "
    "The certificate will state them; ε and δ are fixed, and include the search."
)
_TOSSED = (
    "The bound of the noise is drawn at random, independently of the table, when the release is "
    "made: r = {} or r = {}. The statement is the one for the larger bound."
)


@dataclass(frozen=True)
class PlannedGuarantee:
    """What will be promised: by ``kind``, with ``epsilon`` and ``delta`` where there are any.

    ``crowd`` is the number of people alike from which they are shown at least as often as not; or
    of rows, as ``counted_unit`` says.
    ``statement`` is what will stand in the certificate; ``later`` says which of its parameters are
    settled only while the release is made, and is empty where all of them are. ``events`` are what
    a ledger would book.
    """

    kind: str
    epsilon: float | None
    delta: float | None
    crowd: float
    statement: list[Sentence]
    later: str
    events: tuple[Event, ...]
    counted_unit: Literal["people", "rows"] = "people"


def plan_guarantee(spec: SpecSource) -> PlannedGuarantee:
    """Return the guarantee of a release by a spec, whatever is left to confirm in it."""
    file = load_spec(spec).with_all_confirmed()
    method = make_method(file)
    words, later = _write_statement(file.spec, method)
    promise = method.promise
    return PlannedGuarantee(
        kind=promise.kind,
        epsilon=promise.epsilon,
        delta=promise.delta,
        crowd=method.planned_release.crowd,
        statement=words,
        later=later,
        events=tuple(method.events),
        counted_unit=method.planned_release.counted_unit,
    )


def _list_noisy(spec: Spec, method: KAnonymity | KEpsilon) -> dict[str, Any]:
    """Return the noisy columns: those of numbers, and those with randomized response."""
    responses = method.randomized if isinstance(method, KEpsilon) else {}
    names = [name for name in published_columns(spec, "noisy") if name not in responses]
    return {
        "noisy": tuple(names),
        "randomized": {name: (len(x.values), x.keep) for name, x in responses.items()},
    }


def _write_statement(spec: Spec, method: Method) -> tuple[list[Sentence], str]:
    release, promise = spec.release, method.promise
    assert release is not None
    common: dict[str, Any] = {
        "method": release.method, "unit": promise.unit, "epsilon": promise.epsilon,
        "delta": promise.delta, "without_id": promise.without_id,
        "period": promise.period, "part": promise.part, "protects": promise.protects,
    }  # fmt: skip
    if isinstance(method, KAnonymity | KEpsilon):
        columns = method.columns
        parameters = method.parameters() if isinstance(method, KEpsilon) else columns.parameters()
        local = sorted(columns.quasi) if columns.release.is_local else ()
        facts = Facts(
            tables=[parameters], local=local, **_list_noisy(spec, method),
            kept=sorted(columns.kept), **common,
        )  # fmt: skip
        return write_statement(facts), ""
    if isinstance(method, Synthetic):
        parameters = {**(synthetic_parameters(list(method.events)) or {}), **method.asserted}
        return write_statement(Facts(tables=[parameters], synthetic=method.part, **common)), ""
    if isinstance(method, Tables):
        parameters = tabulation_parameters(method.events) or {}
        table_parameters: list[Parameters] = [{} for _ in method.request.tables]
        if len(table_parameters) == 1:
            facts = Facts(tables=[parameters], tabulation=method.part, **common)
        else:
            facts = Facts(
                tables=table_parameters, shared=parameters, tabulation=method.part, **common
            )
        return write_statement(facts), ""
    assert isinstance(release, SafeSpec)
    assert isinstance(method, Safe)
    implied = parameters_from_events(list(method.events), method.layout)
    assert implied is not None
    names = published_columns(spec, "quasi", "sensitive")
    tables, shared = (
        [_choose_worst_parameters(possible, release) for possible in implied.tables],
        implied.shared,
    )
    if len(tables) == 1:
        tables = [{**tables[0], **method.asserted}]
    else:
        shared = {**shared, **method.asserted}
    facts = Facts(
        tables=tables, shared=shared, layout=method.layout,
        local=sorted(names) if release.is_local else (), **common,
    )  # fmt: skip
    first, sentences = implied.tables[0], write_statement(facts)
    if all(len(possible) == 1 for possible in implied.tables):
        return sentences, ""
    if "r" in first[0]:
        bounds = sorted(int(parameters["r"]) for parameters in first)
        return sentences, _TOSSED.format(*bounds)
    return [sentence for sentence in sentences if sentence.key != "sample"], _LATER


def _choose_worst_parameters(possible: list[Parameters], release: SafeSpec) -> Parameters:
    """Return the parameters of a table, with the largest noise that it may have."""
    worst = max(possible, key=lambda parameters: float(parameters.get("r", 0.0)))
    return {"k": float(release.k or USUAL_K), **worst} if "r" in worst else worst
