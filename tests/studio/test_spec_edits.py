"""From a click to changes of the spec: methods, settings, schemes."""

from __future__ import annotations

import pytest

from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, parse_spec
from incrowd.spec.release import METHODS, CommonSpec, KAnonymitySpec, KEpsilonSpec, SafeSpec
from incrowd.studio import spec_edits

COLUMNS = """
columns:
  name: {role: identifier}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 79, widths: [5, 20]}}}
  sex: {role: quasi, hierarchy: flat}
  height: {role: drop}
"""
NOISY = COLUMNS.replace("height: {role: drop}", "height: {role: noisy}")
SAFE = "method: safe, epsilon: 1.0, delta: 1.0e-6"


def spec(release: str, columns: str = COLUMNS) -> SpecFile:
    return parse_spec(f"{columns}\nrelease: {{{release}}}  # as decided\n")


def after(file: SpecFile, changes: spec_edits.Changes) -> SpecFile:
    return file.with_entries(changes)


def release_of(file: SpecFile) -> CommonSpec:
    assert file.spec.release is not None
    return file.spec.release


@pytest.mark.parametrize("chosen", METHODS)
@pytest.mark.parametrize(
    "release",
    [
        SAFE,
        f"{SAFE}, draw: sample, keep: 0.5, levels: {{age: 1}}, target: age, slices: [], k: 9",
        "method: k-anonymity, k: 7, suppression: 0.1, loss: entropy, levels: {age: 1, sex: [0, 1]}",
        "method: k-anonymity, k: 7, algorithm: cluster, rows: counted, suppressed: starred",
        "method: k-anonymity, k: 7, algorithm: mondrian, cut: median, format: csv",
        "method: k-epsilon, k: 4, epsilon: 3, noise: gaussian, delta: 1.0e-5, confidence: 0.9",
    ],
)
def test_any_method_follows_any_other_as_a_valid_spec(release: str, chosen: str) -> None:
    file = spec(release)
    changed = after(file, spec_edits.set_method(file, chosen))
    assert release_of(changed).method == chosen
    assert "# as decided" in changed.text()


def test_a_method_begins_with_its_usual_values() -> None:
    safe = spec(SAFE)
    release = release_of(after(safe, spec_edits.set_method(safe, "k-epsilon")))
    assert isinstance(release, KEpsilonSpec)
    assert (release.k, release.epsilon, release.delta) == (5, 2.0, None)
    release = release_of(after(safe, spec_edits.set_method(safe, "k-anonymity")))
    assert (release.k, release.levels) == (5, {})
    other = spec("method: k-anonymity, k: 7")
    safe_again = release_of(after(other, spec_edits.set_method(other, "safe")))
    assert isinstance(safe_again, SafeSpec)
    assert (safe_again.k, safe_again.epsilon, safe_again.delta) == (None, 1.0, 1e-6)


def test_what_both_methods_take_stays() -> None:
    file = spec("method: k-anonymity, k: 7, suppression: 0.1, format: csv, levels: {age: 1}")
    release = release_of(after(file, spec_edits.set_method(file, "k-epsilon")))
    assert isinstance(release, KEpsilonSpec)
    assert (release.k, release.suppression, release.format) == (7, 0.1, "csv")
    assert release.levels == {}  # picked by what they keep without noise


def test_levels_that_were_picked_by_the_table_do_not_become_those_of_a_safe_release() -> None:
    file = spec("method: k-anonymity, k: 7, levels: {age: 1, sex: 0}")
    assert release_of(after(file, spec_edits.set_method(file, "safe"))).levels == {}


@pytest.mark.parametrize("chosen", ["synthetic", "tables", "k-anonymity", "k-epsilon"])
def test_counts_beside_the_rows_go_with_the_safe_release(chosen: str) -> None:
    file = spec(SAFE)
    file = file.with_entry(("columns", "age", "rare"), "keep")
    assert file.spec.columns_with_shares == ("age",)
    changed = after(file, spec_edits.set_method(file, chosen))
    assert changed.spec.columns_with_shares == ()
    assert spec_edits.set_method(file, "safe") == {}


@pytest.mark.parametrize("chosen", ["safe", "k-anonymity"])
def test_noisy_columns_are_refused_with_a_hint(chosen: str) -> None:
    file = spec("method: k-epsilon, k: 5, epsilon: 2", NOISY)
    with pytest.raises(IncrowdError, match="'height' has the role 'noisy'.*on the Data page"):
        spec_edits.set_method(file, chosen)


def test_the_same_method_changes_nothing_and_an_unknown_one_is_refused() -> None:
    assert spec_edits.set_method(spec(SAFE), "safe") == {}
    with pytest.raises(IncrowdError, match="no method 'best'"):
        spec_edits.set_method(spec(SAFE), "best")


def test_a_spec_without_a_release_gets_one() -> None:
    file = parse_spec(COLUMNS)
    assert release_of(after(file, spec_edits.set_method(file, "safe"))).method == "safe"
    with pytest.raises(IncrowdError, match="Choose a method first"):
        spec_edits.set_release_fields(file, {"k": "5"})


def test_a_form_sets_changes_and_removes() -> None:
    file = spec(f"{SAFE}, target: age")
    form = {"epsilon": "0.5", "delta": "1e-06", "draw": "counts", "target": "", "k": ""}
    changes = spec_edits.set_release_fields(file, form)
    assert changes == {
        ("release", "epsilon"): 0.5, ("release", "draw"): "counts", ("release", "target"): None,
        ("release", "beta"): None, ("release", "keep"): None,
    }  # fmt: skip
    release = release_of(after(file, changes))
    assert isinstance(release, SafeSpec)
    assert (release.epsilon, release.delta, release.target, release.draw) == (
        0.5,
        1e-6,
        None,
        "counts",
    )


def test_small_numbers_come_back_as_they_were() -> None:
    file = spec(SAFE)
    release = release_of(after(file, spec_edits.set_release_fields(file, {"delta": "3e-09"})))
    assert isinstance(release, SafeSpec)
    assert release.delta == 3e-9


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"epsilon": "much"}, "'epsilon' must be a number; got 'much'"),
        ({"k": "2.5"}, "'k' must be a whole number"),
        ({"size": "many"}, "'size' must be a number"),
    ],
)
def test_what_is_no_number_is_refused(form: dict[str, str], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        spec_edits.set_release_fields(spec(SAFE), form)


def test_the_size_is_a_number_or_public() -> None:
    file = spec(SAFE)
    assert after(file, spec_edits.set_release_fields(file, {"size": "32,000"})).spec.size == 32000
    public = after(file, spec_edits.set_release_fields(file, {"size": "", "size_public": "yes"}))
    assert public.spec.size == "public"
    assert after(public, spec_edits.set_release_fields(public, {"size": ""})).spec.size is None


def test_fields_of_another_method_are_not_set() -> None:
    assert spec_edits.set_release_fields(spec("method: k-anonymity, k: 5"), {"epsilon": "1"}) == {}


def test_another_algorithm_drops_what_belongs_to_the_old_one() -> None:
    file = spec("method: k-anonymity, k: 5, suppression: 0.1, loss: entropy, levels: {age: 1}")
    form = {"algorithm": "mondrian", "suppression": "0.1", "loss": "entropy"}
    release = release_of(after(file, spec_edits.set_release_fields(file, form)))
    assert isinstance(release, KAnonymitySpec)
    assert (release.algorithm, release.suppression, release.loss, release.levels) == (
        "mondrian",
        None,
        None,
        {},
    )


def test_gaussian_noise_comes_with_a_delta_and_laplace_without() -> None:
    file = spec("method: k-epsilon, k: 5, epsilon: 2", NOISY)
    gaussian = after(file, spec_edits.set_release_fields(file, {"noise": "gaussian"}))
    release = release_of(gaussian)
    assert isinstance(release, KEpsilonSpec)
    assert release.delta == 1e-6
    release = release_of(after(gaussian, spec_edits.set_release_fields(gaussian, {"noise": ""})))
    assert isinstance(release, KEpsilonSpec)
    assert release.delta is None


def test_a_scheme_is_fixed_and_opened_again() -> None:
    file = spec("method: k-anonymity, k: 5")
    fixed = after(file, spec_edits.fix_scheme(file, (2, 0)))
    assert release_of(fixed).levels == {"age": 2, "sex": 0}
    assert release_of(after(fixed, spec_edits.reopen_scheme())).levels == {}
    with pytest.raises(IncrowdError, match="to other columns"):
        spec_edits.fix_scheme(file, (1, 2, 3))


def test_a_pair_is_taken() -> None:
    file = spec("method: k-epsilon, k: 5, epsilon: 2", NOISY)
    release = release_of(after(file, spec_edits.set_k_and_epsilon("20", "0.5")))
    assert isinstance(release, KEpsilonSpec)
    assert (release.k, release.epsilon) == (20, 0.5)


def test_a_noisy_column_gets_its_precision_and_bounds() -> None:
    drafted = NOISY.replace("{role: noisy}", "{role: noisy, confirm: [role, precision]}")
    file = spec("method: k-epsilon, k: 5, epsilon: 2", drafted)
    form = {"precision": "0.1", "low": "50", "high": "250.5"}
    column = after(file, spec_edits.set_noisy_column(file, "height", form)).spec.columns["height"]
    assert (str(column.precision), [str(end) for end in column.bounds or ()]) == (
        "0.1", ["50", "250.5"],
    )  # fmt: skip
    assert column.confirm == ("role",)
    bare = after(file, spec_edits.set_noisy_column(file, "height", {})).spec.columns["height"]
    assert (bare.precision, bare.bounds) == (None, None)
    with pytest.raises(IncrowdError, match="both bounds"):
        spec_edits.set_noisy_column(file, "height", {"low": "50"})


def test_synthetic_rows_begin_with_a_budget_and_keep_what_files_are_like() -> None:
    file = spec("method: safe, epsilon: 2, delta: 1.0e-5, format: csv, rows: counted")
    other = after(file, spec_edits.set_method(file, "synthetic"))
    release = release_of(other).model_dump()
    assert [release[name] for name in ("method", "epsilon", "delta")] == ["synthetic", 1.0, 1e-6]
    assert (release["format"], release["rows"]) == ("csv", "expanded")
    edited_file = after(
        other, spec_edits.set_release_fields(other, {"values": "drawn", "epsilon": "3"})
    )
    changed = release_of(edited_file).model_dump()
    assert (changed["values"], changed["epsilon"]) == ("drawn", 3.0)


def test_suppressing_cells_takes_its_own_settings_along() -> None:
    file = spec("method: k-anonymity, k: 5, suppressed: starred, suppression: 0.1")
    changed = after(file, spec_edits.set_release_fields(file, {"algorithm": "suppress"}))
    changed = after(changed, spec_edits.set_release_fields(changed, {"reading": "wildcard"}))
    assert release_of(changed).model_dump(exclude_defaults=True) == {
        "method": "k-anonymity", "k": 5, "algorithm": "suppress", "reading": "wildcard",
    }  # fmt: skip
    back = after(changed, spec_edits.set_release_fields(changed, {"algorithm": ""}))
    assert release_of(back).model_dump(exclude_defaults=True) == {"method": "k-anonymity", "k": 5}
    noisy = after(changed, spec_edits.set_method(changed, "k-epsilon"))
    assert release_of(noisy).method == "k-epsilon"


def test_k_counts_people_of_a_population_and_of_fewer_columns() -> None:
    file = spec("method: k-anonymity, k: 5")
    sized = after(file, spec_edits.set_release_fields(file, {"population": "90,000"}))
    assert isinstance(release := release_of(sized), KAnonymitySpec)
    assert release.population == 90_000
    cells = spec("method: k-anonymity, k: 5, algorithm: suppress, reading: wildcard")
    subsets = after(cells, spec_edits.set_release_fields(cells, {"subsets": "1: 20; 2:10"}))
    assert isinstance(release := release_of(subsets), KAnonymitySpec)
    assert release.subsets == {1: 20, 2: 10}
    for form in ({"reading": ""}, {"subsets": " "}, {"algorithm": ""}):
        plain = after(subsets, spec_edits.set_release_fields(subsets, form))
        assert isinstance(release := release_of(plain), KAnonymitySpec)
        assert release.subsets is None
    with pytest.raises(IncrowdError, match="'20' is not a number of columns and its k"):
        spec_edits.set_release_fields(cells, {"subsets": "20"})
    with pytest.raises(IncrowdError, match="Two k are given for 2 columns"):
        spec_edits.set_release_fields(cells, {"subsets": "2: 20, 2: 5"})


def test_means_and_links_go_with_what_shows_them() -> None:
    columns = COLUMNS.replace("height: {role: drop}", "height: {role: sensitive, aggregate: mean}")
    means = spec("method: k-anonymity, k: 5, algorithm: mdav", columns)
    for changes in (
        spec_edits.set_method(means, "k-epsilon"),
        spec_edits.set_release_fields(means, {"algorithm": "suppress"}),
    ):
        assert after(means, changes).spec.columns["height"].aggregate is None
    linked = spec(
        "method: k-anonymity, k: 5, algorithm: suppress",
        columns.replace("aggregate: mean", "linked: age"),
    )
    plain = after(linked, spec_edits.set_release_fields(linked, {"algorithm": ""}))
    assert plain.spec.columns["height"].linked is None


def test_categories_of_a_noisy_column_take_the_place_of_numbers() -> None:
    columns = NOISY.replace("{role: noisy}", "{role: noisy, bounds: [0, 9], confirm: [bounds]}")
    file = spec("method: k-epsilon, k: 4, epsilon: 3", columns)
    form = {"values": "good\n fair \n\npoor", "other": "unknown"}
    listed = after(file, spec_edits.set_noisy_column(file, "height", form))
    column = listed.spec.columns["height"]
    assert column.values == ("good", "fair", "poor")
    assert (column.other, column.bounds, column.confirm) == ("unknown", None, ())
    numbers = after(listed, spec_edits.set_noisy_column(listed, "height", {"values": " "}))
    assert numbers.spec.columns["height"].values is None
    assert numbers.spec.columns["height"].other is None
    with pytest.raises(IncrowdError, match="two categories or more"):
        after(file, spec_edits.set_noisy_column(file, "height", {"values": "good"}))


def test_seconds_of_a_search_go_with_it() -> None:
    file = spec("method: k-anonymity, k: 5")
    limited = after(file, spec_edits.set_release_fields(file, {"search_seconds": "1,5"}))
    assert isinstance(release := release_of(limited), KAnonymitySpec)
    assert release.search_seconds == 1.5
    cuts = after(limited, spec_edits.set_release_fields(limited, {"algorithm": "mondrian"}))
    assert isinstance(release := release_of(cuts), KAnonymitySpec)
    assert release.search_seconds is None
