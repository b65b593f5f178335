"""The choice of a method: what the release is for, what each keeps, and what is recommended."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.curate.epsilon_curve import EpsilonCurve
from incrowd.curate.recommend import Recommendation
from incrowd.spec.release import SafeSpec, SyntheticSpec, TablesSpec
from incrowd.studio.answer_cache import RefusedAnswer, get_answer_cache
from incrowd.studio.epsilon_picture import EpsilonPicture, draw_epsilon
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.reader_strip import read_people
from incrowd.studio.views.data import make_snapshot
from incrowd.studio.worker_pool import SpecSnapshot, WorkerPool

PURPOSE = "purpose"  # in ``kept``
_BRIEF = 0.02


@dataclass(frozen=True)
class MethodCard:
    """A method to choose: what it promises, what it does not, and what readers get."""

    method: str
    name: str
    keeps: str
    promises: str
    not_so: str


CARDS = (
    MethodCard(
        "safe", "Safe rows",
        "Rows of generalized values, with groups that are large enough.",
        "Differential privacy and k-anonymity, whatever an attacker knows.",
        "Small groups are suppressed; counts carry noise, or the rows are a sample.",
    ),
    MethodCard(
        "synthetic", "Synthetic rows",
        "As many rows as you like, all columns at their finest declared values.",
        "Differential privacy: rows are drawn from noisy counts, which are published.",
        "No row is a person. Relations that were not measured are not reproduced.",
    ),
    MethodCard(
        "tables", "Tables of counts",
        "Cross tables whose totals add up, each cell with a 95 % interval.",
        "Differential privacy: every declared cell has a count, and nothing is suppressed.",
        "No rows. Cells with few people have a large relative error.",
    ),
    MethodCard(
        "k-anonymity", "k-anonymity",
        "The rows themselves, generalized; sensitive columns unchanged.",
        "Each row is identical to at least k − 1 others in the quasi-identifiers.",
        "Not differential privacy: an attacker who knows more can exclude rows.",
    ),
    MethodCard(
        "k-epsilon", "k-epsilon",
        "Rows as in k-anonymity, and numbers with noise.",
        "Each row is identical to at least k − 1 others, and noisy columns carry random noise.",
        "Not differential privacy: the range of a group can be estimated.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class ReleasePurpose:
    """What a release is for; ``method`` serves it best, or what is recommended does."""

    key: str
    name: str
    method: str = ""
    reason: str = ""


PURPOSES = (
    ReleasePurpose("explore", "Rows for any analysis"),
    ReleasePurpose(
        "statistics", "Counts and cross tables", "tables",
        "counts are asked for, and tables spend the budget on counts alone",
    ),
    ReleasePurpose(
        "model", "Training a model", "synthetic",
        "a model needs all columns together, and synthetic rows keep each of them",
    ),
    ReleasePurpose(
        "test-data", "Test data for software", "synthetic",
        "software needs complete rows of the right form, not true ones",
    ),
    ReleasePurpose(
        "contract", "Known recipients under a contract", "k-anonymity",
        "recipients who are bound by a contract often need the rows themselves",
    ),
)  # fmt: skip
_OF_FORECAST = {"counts": "safe"}  # the method of a forecast, where it is called otherwise
_NAMES = {card.method: card.name for card in CARDS}


@dataclass(frozen=True)
class MethodAdvice:
    """What is recommended, and why; ``forecast`` is None until a size is known and computed."""

    purpose: str
    method: str
    reason: str
    forecast: Recommendation | None
    waiting: bool
    refused: str = ""

    @property
    def name(self) -> str:
        """The recommended method, as its card calls it; empty without one."""
        return _NAMES.get(self.method, "")

    def name_method(self, forecast_method: str) -> str:
        """Return what the card of a forecast is called."""
        return _NAMES[self.find_method(forecast_method)]

    def find_method(self, forecast_method: str) -> str:
        """Return the method of a forecast."""
        return _OF_FORECAST.get(forecast_method, forecast_method)


def advise_method(hands: WorkerPool, work: OpenSpec) -> MethodAdvice:
    """Return what is recommended for the purpose, from the columns and the size alone."""
    key = work.kept.get(PURPOSE, "")
    purpose = next((entry for entry in PURPOSES if entry.key == key), None)
    people, answer = read_people(work), None
    if people is not None:
        answer = get_answer_cache(work).get_answer(
            hands, "advice", (work.file.text(), people), _recommend, make_snapshot(work), people,
            moment=_BRIEF,
        )  # fmt: skip
    forecast = answer if isinstance(answer, Recommendation) else None
    method, reason = "", ""
    if purpose is not None and purpose.method:
        method, reason = purpose.method, purpose.reason
    elif purpose is not None and forecast is not None:
        method, reason = _OF_FORECAST.get(forecast.method, forecast.method), forecast.reason
    return MethodAdvice(
        key, method, reason, forecast,
        waiting=people is not None and answer is None,
        refused=answer.words if isinstance(answer, RefusedAnswer) else "",
    )  # fmt: skip


def picture_epsilon(hands: WorkerPool, work: OpenSpec) -> tuple[EpsilonPicture | None, bool]:
    """Return the picture of epsilon at the one that is set, and whether it is being computed."""
    release = work.file.spec.release
    if not isinstance(release, SafeSpec | SyntheticSpec | TablesSpec) or not release.epsilon:
        return None, False
    plain = release.model_copy(update={"epsilon": 1.0})
    key = work.file.spec.model_copy(update={"release": plain}).model_dump_json()
    answer = get_answer_cache(work).get_answer(
        hands, "epsilon curve", key, _trace, make_snapshot(work), moment=_BRIEF
    )
    if not isinstance(answer, EpsilonCurve):
        return None, answer is None
    return draw_epsilon(answer, release.epsilon), False


def _recommend(snapshot: SpecSnapshot, people: int) -> Recommendation:
    from incrowd.curate.recommend import recommend_method

    recommendation = recommend_method(snapshot.parse_spec(), size=people)
    assert recommendation is not None
    return recommendation


def _trace(snapshot: SpecSnapshot) -> EpsilonCurve:
    from incrowd.curate.epsilon_curve import trace_epsilon

    return trace_epsilon(snapshot.parse_spec())
