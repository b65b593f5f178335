"""What each method takes, and in which words it refuses what is another's."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from support.slice_tables import BASE, COLUMNS

from incrowd.spec.file import parse_spec
from incrowd.spec.model import build_json_schema
from incrowd.spec.problem import SpecError
from incrowd.spec.release import KAnonymitySpec, KEpsilonSpec, ReleaseSpec, SafeSpec
from incrowd.spec.slices import Slicing

METHODS: dict[str, type[BaseModel]] = {
    "safe": SafeSpec, "k-anonymity": KAnonymitySpec, "k-epsilon": KEpsilonSpec,
}  # fmt: skip

PAYOUT = "{benefit: 9, publisher_loss: 3, attacker_gain: 3, attack_cost: 0}"

# Every field with a value that is right, and the methods that it belongs to.
ALL, BUDGET, CLASSES = "safe k-anonymity k-epsilon", "safe k-epsilon", "k-anonymity k-epsilon"
FIELDS = {
    "k": ("5", ALL),
    "levels": ("{a: 1}", ALL),
    "format": ("csv", ALL),
    "rows": ("counted", ALL),
    "formulas": ("escape", ALL),
    "epsilon": ("0", BUDGET),
    "delta": ("1.0e-6", BUDGET),
    "beta": ("0.5", "safe"),
    "keep": ("0.5", "safe"),
    "draw": ("auto", "safe"),
    "scheme": ("auto", "safe"),
    "slices": ("2", "safe"),
    "already_sampled": ("0.1", "safe"),
    "objective": ("rows", "safe"),
    "target": ("a", "safe"),
    "search_epsilon": ("0.1", "safe"),
    "releases": ("4", "safe"),
    "series": ("{of: 4}", "safe"),
    "loss": ("entropy", CLASSES),
    "candidates": ("all", CLASSES),
    "cut": ("median", CLASSES),
    "suppression": ("0", CLASSES),
    "suppressed": ("dropped", CLASSES),
    "search_seconds": ("90", CLASSES),
    "algorithm": ("ola", CLASSES),
    "labels": ("free", "k-anonymity"),
    "reading": ("wildcard", "k-anonymity"),
    "subsets": ("{2: 10}", "k-anonymity"),
    "population": ("1000", "k-anonymity"),
    "payout": (PAYOUT, "k-anonymity"),
    "noise": ("laplace", "k-epsilon"),
    "bounds": ("class", "k-epsilon"),
    "confidence": ("0.9", "k-epsilon"),
    "clamp": ("false", "k-epsilon"),
}

WITH = {
    "formulas": ["format: csv"],
    "cut": ["algorithm: mondrian"],
    "series": ["epsilon: 1.0", "delta: 1.0e-6"],
    "labels": ["algorithm: mondrian"],
    "reading": ["algorithm: suppress"],
    "subsets": ["algorithm: suppress", "reading: wildcard"],
}

# What each method refuses; of several, the one that comes first here is named.
FOREIGN = {
    "safe": (
        "loss", "candidates", "cut", "suppression", "suppressed", "search_seconds",
        "algorithm", "noise", "bounds", "confidence", "clamp", "population", "labels", "payout",
        "reading", "subsets",
    ),
    "k-epsilon": (
        "beta", "keep", "draw", "scheme", "slices", "already_sampled", "objective",
        "target", "search_epsilon", "releases", "series", "population", "labels", "payout",
        "reading", "subsets",
    ),
    "k-anonymity": (
        "epsilon", "delta",
        "beta", "keep", "draw", "scheme", "slices", "already_sampled", "objective",
        "target", "search_epsilon", "releases", "series",
        "noise", "bounds", "confidence", "clamp",
    ),
}  # fmt: skip


def text(method: str | None, *fields: str) -> str:
    result = [f"method: {method}"] if method else []
    return f"columns: {{a: {{role: drop}}}}\nrelease: {{{', '.join([*result, *fields])}}}\n"


def refusal(spec: str) -> list[str]:
    with pytest.raises(SpecError) as error:
        parse_spec(spec)
    return [str(problem) for problem in error.value.problems]


def field(name: str) -> str:
    return f"{name}: {FIELDS[name][0]}"


def test_the_table_above_is_whole() -> None:
    for method, model in METHODS.items():
        fields = {name for name, (_, methods) in FIELDS.items() if method in methods.split()}
        assert set(model.model_fields) == fields | {"method"}
        assert set(FOREIGN[method]) == set(FIELDS) - fields


@pytest.mark.parametrize(("method", "name"), [(m, name) for m in FOREIGN for name in FOREIGN[m]])
def test_a_field_of_another_method_is_refused_by_name(method: str, name: str) -> None:
    spec = text(method, field(name))
    (problem,) = refusal(spec)
    assert problem.startswith(f"line 2, release: `{name}` is not a setting of `method: {method}`.")
    assert not Draft202012Validator(build_json_schema()).is_valid(YAML(typ="safe").load(spec))


@pytest.mark.parametrize("method", METHODS)
def test_a_method_takes_its_own_fields(method: str) -> None:
    schema = Draft202012Validator(build_json_schema())
    for name in set(FIELDS) - set(FOREIGN[method]):
        spec = text(method, field(name), *WITH.get(name, []))
        assert type(parse_spec(spec).spec.release) is METHODS[method]
        schema.validate(YAML(typ="safe").load(spec))


@pytest.mark.parametrize("method", METHODS)
def test_of_several_fields_of_others_the_first_is_named(method: str) -> None:
    for at, name in enumerate(FOREIGN[method]):
        later = [field(other) for other in FOREIGN[method][at:]]
        says = refusal(text(method, *reversed(later)))[0]
        assert says.startswith(f"line 2, release: `{name}` is not a setting of `method: {method}`.")


@pytest.mark.parametrize("method", METHODS)
def test_a_field_of_another_method_may_say_nothing(method: str) -> None:
    nothing = ["slices: []" if name == "slices" else f"{name}: null" for name in FOREIGN[method]]
    assert parse_spec(text(method, *nothing)).spec == parse_spec(text(method)).spec


def test_the_method_is_safe_unless_it_is_named() -> None:
    assert parse_spec(text(None, "k: 5")).spec == parse_spec(text("safe", "k: 5")).spec
    (problem,) = refusal(text(None, "cut: median"))
    assert "`cut` is not a setting of `method: safe`" in problem


def test_all_that_is_wrong_with_values_is_said_at_once_whatever_the_method() -> None:
    result = refusal(text("k-anonymty", "k: 0", "beta: 7", "noise: gausian", "supression: 0.1"))
    assert sorted(result) == [
        "line 2, release.beta: must be less than 1, got 7.",
        "line 2, release.k: must be greater than or equal to 1, got 0.",
        "line 2, release.method: must be 'safe', 'k-epsilon', 'k-anonymity', 'synthetic' or "
        "'tables', got 'k-anonymty'. Did you mean 'k-anonymity'?",
        "line 2, release.noise: must be 'laplace' or 'gaussian', got 'gausian'. "
        "Did you mean 'gaussian'?",
        "line 2, release.supression: unknown key 'supression'. Did you mean 'suppression'?",
    ]
    assert refusal(text("k-anonymity", "beta: 7")) == [
        "line 2, release.beta: must be less than 1, got 7."
    ]


@pytest.mark.parametrize("method", METHODS)
def test_a_mistyped_field_is_known_under_every_method(method: str) -> None:
    for name in FIELDS:
        for word in (name + "x", name.upper(), name[:-1] if len(name) > 2 else name * 2):
            (says,) = refusal(text(method, f"{word}: 1"))
            assert says.startswith(f"line 2, release.{word}: unknown key '{word}'. ")
    assert refusal(text(method, "bta: 0.5")) == [
        "line 2, release.bta: unknown key 'bta'. Did you mean 'beta'?"
    ]


@pytest.mark.parametrize(
    ("release", "says"),
    [
        ("5", "release: must be a mapping of keys to values, got 5"),
        ("[safe]", "release: must be a mapping of keys to values, got"),
        (
            "{method: null}",
            "release.method: must be 'safe', 'k-epsilon', 'k-anonymity', 'synthetic' or 'tables', ",
        ),
        (
            "{method: [safe]}",
            "release.method: must be 'safe', 'k-epsilon', 'k-anonymity', 'synthetic' or 'tables', ",
        ),
        ("{formulas: escape}", "release: `formulas` is for `format: csv`; Parquet holds no"),
        ("{scheme: fixed, objective: rows}", "release: `objective` needs `scheme: search`"),
        (
            "{method: k-epsilon, algorithm: cluster, cut: median}",
            "release: `method: k-epsilon` excludes `algorithm: cluster`",
        ),
        (
            "{method: k-anonymity, algorithm: mondrian, loss: entropy}",
            "release: `loss` is not a setting of `algorithm: mondrian`",
        ),
        (
            "{method: k-anonymity, cut: median}",
            "release: `cut` is not a setting of `algorithm: ola`",
        ),
        (
            "{method: k-anonymity, algorithm: mondrian, search_seconds: 5}",
            "release: `search_seconds` is not a setting of `algorithm: mondrian`",
        ),
        (
            "{method: k-epsilon, candidates: minimal, search_seconds: 5}",
            "release: `search_seconds` excludes `candidates: minimal`",
        ),
        (
            f"{{method: k-anonymity, algorithm: mondrian, payout: {PAYOUT}}}",
            "release: `payout` is not a setting of `algorithm: mondrian`",
        ),
        (
            f"{{method: k-anonymity, loss: entropy, payout: {PAYOUT}}}",
            "release: `payout` takes the place of `loss`",
        ),
        (
            f"{{method: k-anonymity, payout: {PAYOUT[:-1]}, attacker: journalist}}}}",
            "release: `attacker: journalist` needs the size of the population",
        ),
        (
            f"{{method: k-anonymity, payout: {PAYOUT.replace('9', '0')}}}",
            "release.payout.benefit: must be greater than 0, got 0",
        ),
        (
            f"{{method: k-anonymity, payout: {PAYOUT[:-2]}-1}}}}",
            "release.payout.attack_cost: ",
        ),
        (
            "{method: k-anonymity, payout: {benefit: 9, publisher_loss: 3, attacker_gain: 3}}",
            "release.payout: `attack_cost` is missing",
        ),
        ("{method: k-anonymity, search_seconds: 0}", "release.search_seconds: "),
        ("{method: k-anonymity, search_seconds: -3}", "release.search_seconds: "),
        ("{method: k-anonymity, search_seconds: .inf}", "release.search_seconds: "),
        ("{method: k-anonymity, search_seconds: soon}", "release.search_seconds: "),
        ("{levels: {a: [2, 1]}}", "release: the levels of 'a' must rise, got 2, 1"),
        (
            "{method: k-anonymity, algorithm: cluster, levels: {a: 1}}",
            "release: `levels` is not a setting of `algorithm: cluster`",
        ),
    ],
)
def test_what_does_not_fit_together(release: str, says: str) -> None:
    (result,) = refusal(f"columns: {{a: {{role: drop}}}}\nrelease: {release}\n")
    assert result.startswith(f"line 2, {says}")


def test_a_release_changes_into_one_of_its_method() -> None:
    file = parse_spec(text("k-epsilon", "k: 5", "epsilon: 1"))
    release: Any = file.spec.release
    assert type(release.model_copy(update={"k": 7})) is KEpsilonSpec
    assert file.spec.model_copy(update={"release": release}).release is release
    changed = file.with_entry(("release", "epsilon"), None).with_entry(("release", "method"), None)
    assert changed.spec.release == SafeSpec(k=5)
    with pytest.raises(SpecError, match="`epsilon` is not a setting of `method: k-anonymity`"):
        file.with_entry(("release", "method"), "k-anonymity")


def test_a_release_by_itself() -> None:
    read = TypeAdapter[ReleaseSpec](ReleaseSpec).validate_python
    spec = SafeSpec(k=5, slices=Slicing(columns=2))
    assert read(spec) is spec
    assert read({"k": 5, "slices": 2}) == spec
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        KAnonymitySpec.model_validate({"method": "k-anonymity", "beta": 0.5})


@pytest.mark.parametrize(
    ("release", "sensitive", "part"),
    [
        ("method: k-anonymity, k: 5, cut: median", "", "`cut` is not a setting of `algorithm:"),
        ("method: k-anonymity, k: 5, algorithm: mondrian, loss: entropy", "", "`loss` is not"),
        ("method: k-anonymity, k: 5, algorithm: mondrian, levels: {x: 1}", "", "`levels` is not"),
        ("method: k-anonymity, k: 5, algorithm: cluster, suppression: 0.1", "", "`suppression` is"),
        ("method: k-anonymity, k: 5, algorithm: duplicate, candidates: all", "", "`candidates` is"),
        ("method: k-anonymity, k: 5, epsilon: 1", "", "`epsilon` is not a setting of `method:"),
        ("method: k-anonymity, k: 5, beta: 0.1", "", "`beta` is not a setting of `method:"),
        ("method: k-anonymity, k: 5, levels: {x: [2, 1]}", "", "levels of 'x' must rise"),
        ("method: k-anonymity, k: 5, levels: {y: 1}", "", "the column 'y' has no entry"),
        ("method: k-anonymity, k: 0", "", "release.k"),
        ("method: k-anonymity, k: 5, suppression: 1.5", "", "release.suppression"),
        ("method: k-anonymity, k: 5, algorithm: mondrain", "", "Did you mean 'mondrian'?"),
        ("method: safe, epsilon: 1, delta: 1.0e-6, algorithm: ola", "", "`algorithm` is not"),
        ("method: safe, epsilon: 1, delta: 1.0e-6, suppression: 0.1", "", "`suppression` is not"),
        ("method: k-anonymity, k: 5", "diversity", "`diversity` is for role `sensitive`"),
        ("method: k-anonymity, k: 5", "closeness", "`closeness` is for role `sensitive`"),
    ],
)
def test_what_does_not_go_together_is_said_once(release: str, sensitive: str, part: str) -> None:
    rule = f", {sensitive}: {{}}" if sensitive else ""
    with pytest.raises(SpecError) as error:
        parse_spec(
            f"columns: {{x: {{role: quasi, hierarchy: flat{rule}}}}}\nrelease: {{{release}}}"
        )
    (problem,) = error.value.problems
    assert part in str(problem)
    assert problem.line is not None


MUST_LIST = "not a list of tables. List their columns"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("slices: 1", MUST_LIST),
        ("slices: true", MUST_LIST),
        ("slices: a", MUST_LIST),
        ("slices: [a, b]", MUST_LIST),
        ("slices: [[], [a, b, c, d, e, z]]", MUST_LIST),
        ("slices: {columns: 1}", MUST_LIST),
        ("slices: {columns: 2, tables: 1}", MUST_LIST),
        ("slices: {columns: 2, tables: most}", MUST_LIST),
        ("slices: {column: 2}", MUST_LIST),
        ("slices: [[a, b, c, d, e, z]]", "one slice is one table"),
        ("slices: [[a, b], [b, a], [c, d, e, z]]", "two slices have the same columns"),
        ("slices: [[a, a], [b, c, d, e, z]]", "names a column twice: a, a"),
        ("slices: [[a, q], [b, c, d, e, z]]", "the column 'q' has no entry"),
        ("slices: 3, method: k-anonymity, k: 5", "is not a setting of `method: k-anonymity`"),
    ],
)
def test_slices_that_make_no_sense_are_refused_with_the_spec(more: str, message: str) -> None:
    base = "" if "method" in more else f"{BASE}, "
    with pytest.raises(SpecError, match=message):
        parse_spec(f"{COLUMNS}\nrelease: {{{base}{more}}}\n")
