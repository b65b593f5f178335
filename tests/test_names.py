"""Names say what a thing does: a verb and its object for functions, one class of each name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import incrowd

ROOT = Path(incrowd.__file__).parent
REPOSITORY = Path(__file__).parent.parent
PARTICIPLE = re.compile(
    r"(taken|told|drawn|shown|held|made|kept|found|known|said|given|seen|written|chosen|begun|"
    r"[a-z]*[^e_]ed)"
)
PRONOUNS = {
    "apart", "beside", "both", "each", "elsewhere", "every", "fewer", "here", "least", "less",
    "most", "nothing", "other", "own", "rightly", "some", "there", "together", "whole",
}  # fmt: skip
BRITISH = re.compile(
    r"(normal|general|anonym|recogn|special|real|summar|organ|minim|maxim|optim|random)is(e|ed|es|ing)"
    r"|(colo|neighbo|behavio|favo|labo|hono)ur|(label|model|travel)l(ed|ing)(?!by)|centre|metre"
    r"|\b(gr)ey|whilst|learnt|spelt|catalogue",
    re.IGNORECASE,
)
BOTH_SPELLINGS = {"test_names.py", "test_pages.py", "identifiers.py", "person_id.py"}
# Words that say nothing of what a variable holds; the noun that is meant is its name
VAGUE = {
    "asked", "counted", "drawn", "found", "given", "held", "here", "kept", "known", "made", "one",
    "own", "said", "shown", "taken", "told", "wanted", "whole",
}  # fmt: skip
# Placeholders, which the package has no need of; a test may call what it looks at its result
PLACEHOLDERS = {"item", "result"}
# Where variables still are called so; an entry goes with the names that it excuses
UNNAMED = (
    "src/incrowd/evaluation/attacks/attack.py",
    "src/incrowd/evaluation/attacks/inference.py",
    "src/incrowd/evaluation/attacks/quick.py",
    "src/incrowd/evaluation/attacks/trial.py",
)
# Words that end in -ed and are no participles, and participles that name a mathematical object
ALLOWED = {"embed", "feed", "need", "proceed", "seed", "speed"}


def functions(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the name of each function and method, and whether it is a property."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
            yield node.name, bool(decorators & {"property", "cached_property"})


def bad_names(text: str) -> list[str]:
    """List the public functions that are a bare participle, adverb or pronoun."""
    return [
        name
        for name, is_property in functions(text)
        if not name.startswith("_") and not is_property and name not in ALLOWED
        if PARTICIPLE.fullmatch(name) or name in PRONOUNS
    ]


def sources() -> dict[str, str]:
    paths = sorted(ROOT.rglob("*.py"))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def test_no_public_function_is_a_bare_participle_or_pronoun() -> None:
    result = {path: names for path, text in sources().items() if (names := bad_names(text))}
    assert result == {}


def test_a_bare_participle_would_be_found() -> None:
    planted = "def drawn(): ...\ndef load_spec(): ...\nclass A:\n    def own(self): ...\n"
    assert bad_names(planted) == ["drawn", "own"]
    assert bad_names("class A:\n    @property\n    def drawn(self): ...\n") == []


def british_words(text: str) -> list[str]:
    """List the words that American English spells otherwise."""
    return [word for word in re.findall(r"\w+", text) if BRITISH.search(word)]


def test_spelling_is_american() -> None:
    """In code, pages, tests and benchmarks; patterns of column names know both spellings."""
    project = Path(__file__).parents[1]
    result = {
        str(path.relative_to(project)): words
        for folder in ("src", "docs", "tests", "benchmarks")
        for ending in ("py", "md", "toml", "html", "js", "ipynb")
        for path in sorted((project / folder).rglob(f"*.{ending}"))
        if path.name not in BOTH_SPELLINGS
        if (words := british_words(path.read_text(encoding="utf-8")))
    }
    assert result == {}


def test_a_british_word_would_be_found() -> None:
    planted = "the colour_map, normalised; a neighbour, labelled in the centre"  # as planted
    assert len(british_words(planted)) == 5
    assert british_words("noise otherwise promised: a label, labelledby, four hours") == []


def test_each_class_name_exists_once() -> None:
    classes = Counter(
        node.name
        for text in sources().values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in classes.items() if count > 1] == []


def vague_variables(text: str, words: Collection[str] = VAGUE) -> list[str]:
    """List the variables and parameters that are called by such words, as often as they are bound.

    Fields of classes are none: they are keys of what is written, and go with their class.
    """
    tree, names = ast.parse(text), []
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = {
        id(name)
        for node in classes
        for entry in node.body
        if isinstance(entry, ast.AnnAssign | ast.Assign)
        for name in ast.walk(entry)
    }
    for node in ast.walk(tree):
        if id(node) in fields:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.append(name)
            case ast.alias(asname=str(name)):
                names.append(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                names.append(name)
    return [name for name in names if name in words]


def list_modules() -> dict[str, Path]:
    """Return every module of package, tests and benchmarks, by its path in the repository."""
    folders = ("src", "tests", "benchmarks")
    paths = (path for folder in folders for path in sorted((REPOSITORY / folder).rglob("*.py")))
    return {path.relative_to(REPOSITORY).as_posix(): path for path in paths}


def test_no_variable_has_a_vague_name() -> None:
    result = {
        name: names
        for name, path in list_modules().items()
        if not name.startswith(UNNAMED)
        if (names := vague_variables(path.read_text(encoding="utf-8")))
    }
    assert result == {}


def test_no_variable_of_the_package_is_a_placeholder() -> None:
    result = {
        name: names
        for name, path in list_modules().items()
        if name.startswith("src/") and not name.startswith(UNNAMED)
        if (names := vague_variables(path.read_text(encoding="utf-8"), PLACEHOLDERS))
    }
    assert result == {}


def test_every_exception_is_needed() -> None:
    """Who names the variables of a room takes it off the list."""
    vague = [
        name
        for name, path in list_modules().items()
        if vague_variables(path.read_text(encoding="utf-8"))
    ]
    assert [start for start in UNNAMED if not any(name.startswith(start) for name in vague)] == []


def test_a_vague_variable_would_be_found() -> None:
    planted = (
        "def load(known, *, path):\n"
        "    with open(path) as found:\n"
        "        shown = [one for one in found if (held := one)]\n"
        "    return known.told, list(map(lambda own: own, shown))\n"
        "try:\n    from a import b as made\nexcept OSError as said:\n    pass\n"
    )
    assert sorted(vague_variables(planted)) == [
        "found", "held", "known", "made", "one", "own", "said", "shown",
    ]  # fmt: skip
    assert vague_variables("def load(known_values, path): return path.known") == []
    assert vague_variables("class A:\n    known: int = 0\n    def f(self, told): ...") == ["told"]
