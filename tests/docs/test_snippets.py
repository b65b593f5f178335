"""What a page shows was run; what fails, or was not run, fails the build."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.site import build_page

GOOD = """
```{file} words.txt
one
two
```

```{console}
:hide:
$ export GREETING=hello; mkdir below; cd below
```

```{console}
$ echo $GREETING \\
    to ../words.txt; wc -l <../words.txt
$ incrowd plan --epsilon 1 --delta 1e-6 --json
```

```{console}
:exit: 2
$ incrowd plan --epsilon -1 --delta 1e-6
```

```{python}
from pathlib import Path
print(Path("../words.txt").read_text())
2 + 3
```

```{python}
:raises: ZeroDivisionError
1 / 0
```

```{console}
:display: needs a cluster
$ incrowd publish spec.yaml -o out --engine spark
```

{test}`tests/test_layout.py::test_no_import_points_upward`

:::{measured} make bench
| a | b |
| --- | --- |
| 1 | 2 |
:::

```yaml
table: people.csv
```
"""

BAD = {
    "a command that fails": ("```{console}\n$ incrowd verify nowhere\n```", "ended with 2, not 0"),
    "a command that does not fail": ("```{console}\n:exit: 1\n$ true\n```", "ended with 0, not 1"),
    "a failure before the last": ("```{console}\n:exit: 1\n$ false\n$ false\n```", "with 1, not 0"),
    "output typed by hand": ("```{console}\n$ echo 1\n2\n```", "begins with '$ '"),
    "a block that raises": ("```{python}\n1 / 0\n```", "raised ZeroDivisionError"),
    "another error": ("```{python}\n:raises: KeyError\n1 / 0\n```", "raised ZeroDivisionError"),
    "no error": ("```{python}\n:raises: KeyError\n1\n```", "raised nothing"),
    "no reason": ("```{console}\n:display:\n$ true\n```", "display"),
    "a plain fence": ("```console\n$ true\n```", "shown and not run"),
    "a plain block": ("```python\n1\n```", "shown and not run"),
    "commands as text": ("```text\n$ true\n```", "shown and not run"),
    "a file elsewhere": ("```{file} ../../x\ny\n```", "not below the folder"),
    "a broken link": ("[there](nowhere.md)", "nowhere"),
    "a broken anchor": ("[there](#nowhere)", "nowhere"),
    "a test that is not there": ("{test}`tests/test_layout.py::test_nothing`", "there is no test"),
    "a benchmark that is not there": (
        ":::{measured} python benchmarks/none.py\n1\n:::", "does not exist",
    ),
    "a target that is not there": (":::{measured} make nothing\n1\n:::", "make cannot make"),
    "a name that is not there": ("{py:func}`incrowd.nothing`", "reference target not found"),
}  # fmt: skip


def test_a_page_that_is_right_is_built(tmp_path: Path) -> None:
    done = build_page(tmp_path, GOOD, "-b", "text")
    assert (done.status, done.complaints) == (0, "")
    text = (done.pages / "index.txt").read_text(encoding="utf-8")
    assert "hello to ../words.txt\n   2\n" in text
    assert '"k": 14' in text
    assert "The 'epsilon' parameter must be a finite number" in text
    assert "one\n   two\n" in text
    assert "\n   5\n" in text
    assert "ZeroDivisionError: division by zero" in text
    assert "not run here: needs a cluster" in text
    assert "GREETING=hello" not in text
    assert "Measured by" in text


def test_everything_wrong_is_found_at_once_and_where_it_stands(tmp_path: Path) -> None:
    source = tmp_path / "pages"
    source.mkdir()
    for name, (text, _) in BAD.items():
        page = source / f"{name.replace(' ', '-')}.md"
        page.write_text(f"---\norphan: true\n---\n\n# {name}\n\n{text}\n", encoding="utf-8")
    done = build_page(tmp_path, "Nothing.")
    assert done.status == 1
    for name, (_, complaint) in BAD.items():
        place = f"{name.replace(' ', '-')}.md:"
        lines = [line for line in done.complaints.splitlines() if place in line]
        assert any(complaint in line for line in lines), (name, done.complaints)


@pytest.mark.parametrize("name", ["a command that fails", "a block that raises", "a broken link"])
def test_one_of_them_is_enough(tmp_path: Path, name: str) -> None:
    done = build_page(tmp_path, BAD[name][0])
    assert done.status == 1
    assert BAD[name][1] in done.complaints


def test_after_a_failure_the_rest_of_a_page_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    done = build_page(tmp_path, f"```{{python}}\n1 / 0\n```\n\n```{{console}}\n$ touch {mark}\n```")
    assert done.status == 1
    assert not mark.exists()


def test_pages_share_nothing(tmp_path: Path) -> None:
    source = tmp_path / "pages"
    source.mkdir()
    other = "---\norphan: true\n---\n\n# Other\n\n```{console}\n:exit: 1\n$ ls | grep .\n```\n"
    (source / "other.md").write_text(other, encoding="utf-8")
    done = build_page(tmp_path, "```{file} x\ny\n```\n\n```{python}\nvalue = 1\n```")
    assert (done.status, done.complaints) == (0, "")
