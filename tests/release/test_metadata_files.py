"""Metadata of a release: each file passes its validator, and a broken one does not."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.metadata import ABOUT, RELEASES, VALIDATORS, is_private, publish_described

from incrowd.curate.questionnaire import list_about_questions
from incrowd.release.metadata.files import list_metadata_files
from incrowd.release.verify import read_certificate, verify
from incrowd.spec.about import METADATA_FORMATS, About
from incrowd.spec.file import parse_spec

pytestmark = pytest.mark.filterwarnings("ignore")  # of the validators
BROKEN = {  # a change that each validator must see
    "metadata/croissant.json": ('"cr:Field"', '"cr:Fold"'),
    "metadata/dcat.ttl": ("dcat:accessURL", "dcat:accessUrl"),
    "metadata/registry.yaml": ("model_name: Central", "model_name: Middle"),
    "metadata/codebook.xml": ("catgry", "category"),
    "datapackage.json": ('"fields": [', '"fields": [{}, '),
}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("described")
    return {name: publish_described(name, folder) for name in RELEASES}


def list_cases() -> Iterator[tuple[str, str]]:
    for name in RELEASES:
        for file in VALIDATORS:
            if is_private(name) or "registry" not in file:
                yield name, file


@pytest.mark.parametrize(("name", "file"), [*list_cases()])
def test_each_file_passes_its_validator(releases: dict[str, Path], name: str, file: str) -> None:
    assert VALIDATORS[file](releases[name]) == []


@pytest.mark.parametrize("file", VALIDATORS)
def test_a_broken_file_fails_its_validator(
    releases: dict[str, Path], tmp_path: Path, file: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(releases["counts"], copy)
    text = (copy / file).read_text(encoding="utf-8")
    old, new = BROKEN[file]
    assert old in text
    (copy / file).write_text(text.replace(old, new), encoding="utf-8")
    assert VALIDATORS[file](copy) != []


def test_health_data_without_what_the_profile_requires_fail(tmp_path: Path) -> None:
    about = re.sub("  (access|legal_basis|health_category|contact): .*\n", "", ABOUT)
    folder = publish_described("counts", tmp_path, about=about)
    (problem,) = VALIDATORS["metadata/dcat.ttl"](folder)
    for name in ("accessRights", "applicableLegislation", "healthCategory", "contactPoint"):
        assert name in problem
    other = about.replace("theme: health", "theme: government")
    assert VALIDATORS["metadata/dcat.ttl"](
        publish_described("counts", tmp_path / "other", about=other)
    ) == []  # fmt: skip


@pytest.mark.parametrize("name", RELEASES)
def test_a_described_release_verifies_and_one_changed_figure_is_found(
    releases: dict[str, Path], tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(releases[name], folder)
    assert verify(folder) == []
    certificate = read_certificate(folder)
    for file in list_metadata_files(certificate.metadata or ()):
        path = folder / file
        original = path.read_bytes()
        rows = str(certificate.tables[0].release.rows).encode()
        digest = certificate.tables[0].release.sha256.encode()
        figure = rows if rows in original else digest if digest in original else b"1"
        changed = original.replace(figure, figure[:-1] + (b"3" if figure[-1:] != b"3" else b"4"), 1)
        assert changed != original
        path.write_bytes(changed)
        assert [finding.code for finding in verify(folder)] == ["METADATA_DIFFERS"], file
        path.unlink()
        assert [finding.code for finding in verify(folder)] == ["FILE_MISSING"], file
        path.write_bytes(original)
    assert verify(folder) == []


def test_what_the_curator_asserts_is_sealed(releases: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(releases["counts"], folder)
    path = folder / "metadata/assertions.json"
    path.write_text(path.read_text(encoding="utf-8").replace("Research", "Marketing"))
    assert [finding.code for finding in verify(folder)] == ["FILE_CHANGED"]
    path.unlink()
    assert [finding.code for finding in verify(folder)] == ["FILE_MISSING"]
    (folder / "metadata/more.txt").write_text("more")
    assert "FILE_NOT_COVERED" in [finding.code for finding in verify(folder)]
    keys = [text.key for text in read_certificate(folder).guarantee.statement]
    assert "assertions" in keys


def test_ten_questions_make_a_complete_record(tmp_path: Path) -> None:
    spec = parse_spec("columns:\n  a: {role: drop}\n")
    ten = [question.entry for question in list_about_questions(spec) if question.in_record]
    assert len(ten) == 10
    about = yaml.safe_load(ABOUT)["about"]
    few = yaml.safe_dump({"about": {name: about[name] for name in ten}})
    folder = publish_described("counts", tmp_path, about=few)
    record = yaml.safe_load((folder / "metadata/registry.yaml").read_text(encoding="utf-8"))
    assert record["tier"] == 3
    assert VALIDATORS["metadata/registry.yaml"](folder) == []
    schema = yaml.safe_load(
        (Path(__file__).parents[1] / "support/schemas/deployments-schema.yaml").read_text()
    )
    for part, entry in schema["properties"]["deployment"]["properties"].items():
        assert {*entry["properties"]} - {*record["deployment"][part]} <= {"sources"}, part
    assert json.dumps(record).count("not stated") == 1  # how the input is secured


def test_what_is_not_stated_is_said_and_not_invented(tmp_path: Path) -> None:
    folder = publish_described("counts", tmp_path, about="")
    assert verify(folder) == []
    assert not (folder / "metadata/assertions.json").exists()
    assert read_certificate(folder).assertions is None
    for file, validate in VALIDATORS.items():
        assert validate(folder) == [], file
        if file != "datapackage.json":
            assert "not stated" in (folder / file).read_text(encoding="utf-8"), file
    record = yaml.safe_load((folder / "metadata/registry.yaml").read_text(encoding="utf-8"))
    assert record["tier"] == 1
    assert "data_source_type" not in record["deployment"]["deployment_model"]
    dossier = (folder / "metadata/dossier.html").read_text(encoding="utf-8")
    questions = len(re.findall('<span class="by asserted">asserted</span></td><td>', dossier))
    assert dossier.count("<em>not stated</em>") >= questions - 1 > 10


def test_the_dossier_holds_every_sentence_and_every_assertion(releases: dict[str, Path]) -> None:
    from html import unescape

    for name, folder in releases.items():
        text = unescape((folder / "metadata/dossier.html").read_text(encoding="utf-8"))
        certificate = read_certificate(folder)
        for sentence in certificate.guarantee.statement:
            assert sentence.text in text, name
        about = json.loads((folder / "metadata/assertions.json").read_bytes())["about"]
        for entry in ("description", "source", "epsilon_reason", "misuse", "intended_use"):
            assert about[entry] in text, entry
        for frame in ("SP 800-226", "27559", "WP216", "164.514"):
            assert frame in text
        assert ("NOT differential privacy" in text) is (not is_private(name))


def test_formats_and_entries_are_those_that_a_spec_knows() -> None:
    assert len(list_metadata_files(METADATA_FORMATS)) == 7
    assert {question.entry for question in list_about_questions(
        parse_spec("columns:\n  a: {role: drop}\n")
    )} == {*About.model_fields}  # fmt: skip
