"""Metadata of a finished release: the same as within it, with paths beside the data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.metadata import ABOUT, RELEASES, VALIDATORS, publish_described
from support.readers import format_columns, make_reader_table

from incrowd.curate.deposit import describe
from incrowd.errors import IncrowdError
from incrowd.publication import publish
from incrowd.release.ledger import Ledger
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec

pytestmark = pytest.mark.filterwarnings("ignore")  # of the validators


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_described("counts", tmp_path_factory.mktemp("deposit"))


def test_the_files_stand_beside_the_data_and_are_valid(described: Path, tmp_path: Path) -> None:
    deposit = describe(described, tmp_path / "files")
    assert deposit.unstated == deposit.notes == ()
    assert len(deposit.files) == 8
    together = tmp_path / "together"
    shutil.copytree(described, together, ignore=shutil.ignore_patterns("metadata", "datapackage*"))
    shutil.copytree(tmp_path / "files", together, dirs_exist_ok=True)
    shutil.copytree(tmp_path / "files", together / "metadata")  # where the validators look
    shutil.copy(described / "data.parquet", together / "metadata")
    for file, validate in VALIDATORS.items():
        assert validate(together) == [], file
    for path in (tmp_path / "files").iterdir():
        assert "../" not in path.read_text(encoding="utf-8"), path.name
        inside = described / "metadata" / path.name
        if inside.exists():
            assert path.read_bytes() == inside.read_bytes().replace(b"../", b"")


def test_words_of_another_spec_and_the_total_of_a_ledger(described: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "people.ledger")
    ledger.set_budget(epsilon=3, delta=1e-5)
    words = f"{format_columns('')}about: {{title: Another title}}\n"
    deposit = describe(described, tmp_path / "out", spec=parse_spec(words), ledger=ledger)
    assert "title" not in deposit.unstated
    assert "source" in deposit.unstated
    assertions = json.loads((tmp_path / "out/assertions.json").read_bytes())
    assert assertions["about"] == {"title": "Another title"}
    assert assertions["ledger"]["budget_epsilon"] == 3
    record = (tmp_path / "out/registry.yaml").read_text(encoding="utf-8")
    assert "Another title" in record
    assert "0 releases" in record


def test_what_does_not_fit_is_refused(described: Path, tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="be one of croissant"):
        describe(described, tmp_path / "a", formats=["croisant"])
    classes = publish_described("k-epsilon", tmp_path)
    assert describe(classes, tmp_path / "b").notes[0].startswith("`registry` is left out")
    with pytest.raises(IncrowdError, match="this is none"):
        describe(classes, tmp_path / "c", formats=["registry"])
    (classes / "README.md").write_text("x")
    with pytest.raises(IncrowdError, match="does not verify"):
        describe(classes, tmp_path / "d")
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "d").exists()


def test_a_booked_release_states_the_ledger_and_its_private_part_is_private(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "people.ledger")
    ledger.set_budget(epsilon=3, delta=1e-5)
    text = f"{format_columns('')}{ABOUT}describe: [registry, dossier]\n"
    spec = parse_spec(f"{text}release: {{{RELEASES['counts']}}}\n")
    release = publish(make_reader_table(), spec, output=tmp_path / "out", ledger=ledger)
    assert verify(tmp_path / "out") == []
    assertions = json.loads((tmp_path / "out/metadata/assertions.json").read_bytes())
    assert assertions["ledger"]["releases"] == 1
    assert assertions["ledger"]["epsilon"] == release.certificate.guarantee.epsilon
    dossier = (tmp_path / "out/metadata/dossier.html").read_text(encoding="utf-8")
    assert "1 release of the table" in dossier
    private = (tmp_path / "out.curator/dossier-private.html").read_text(encoding="utf-8")
    attacks = json.loads((tmp_path / "out.curator/attacks.json").read_bytes())["attacks"]
    assert attacks
    for attack in attacks:
        assert f"{attack['attack']}: {attack['name']}" in private
    for heading in ("Singling out", "Linkability", "Inference", "Subgroups", "Information loss"):
        assert heading in private
    first = private
    describe(tmp_path / "out", tmp_path / "later", formats=["dossier"])
    again = (tmp_path / "out.curator/dossier-private.html").read_text(encoding="utf-8")
    assert again == first
    attacks = json.loads((tmp_path / "out.curator/attacks.json").read_bytes())
    more = {**attacks, "people": 77, "control": 55}
    more["attacks"] = [
        {**attack, "attack": "singling-out", "name": "by a guess", "control": attack["guess"]}
        for attack in attacks["attacks"][:1]
    ]
    (tmp_path / "more.json").write_text(json.dumps(more))
    describe(
        tmp_path / "out", tmp_path / "more", formats=["dossier"], attacks=tmp_path / "more.json"
    )
    page = (tmp_path / "out.curator/dossier-private.html").read_text(encoding="utf-8")
    assert "singling-out: by a guess" in page
    assert "77 random people of the table and on 55 people who are not in it" in page
    for attack in attacks["attacks"]:  # those of the publication, but for what was tried anew
        is_shown = f"{attack['attack']}: {attack['name']}" in page
        assert is_shown is (attack["attack"] != "singling-out")
    with pytest.raises(IncrowdError, match="cannot be read"):
        describe(tmp_path / "out", tmp_path / "none", attacks=tmp_path / "none.json")
    assert not (tmp_path / "none").exists()
