"""The command line. Thin; the work is elsewhere."""

from __future__ import annotations

import gc
import sys
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from incrowd import __version__
from incrowd.errors import IncrowdError, IncrowdWarning, Refusal, check_choice, check_whole
from incrowd.ui import results, terminal
from incrowd.ui.attack import attack
from incrowd.ui.audit import audit
from incrowd.ui.doctor import doctor
from incrowd.ui.explore import explore
from incrowd.ui.groups import hierarchies, ledgers
from incrowd.ui.options import EngineName, Master, Settings, engine_of, number, parsed
from incrowd.ui.plan import plan
from incrowd.ui.specs import check, confirm, init, rehearse, sample, schema
from incrowd.ui.status import DONE, EMPTY, FAULT, INTERRUPTED, NO, WRONG_USE
from incrowd.ui.studio.command import studio
from incrowd.ui.terminal import say as print  # noqa: A004 - names and values come from anywhere

if TYPE_CHECKING:
    from incrowd.tasks.publish import Release

app = typer.Typer(
    name="incrowd",
    help="Publish tables about people so that each person hides in a crowd, provably.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _StoppedError(IncrowdError):
    """Interrupted by the user, at a point of which there is more to say."""


def main() -> None:
    """Run the command line, and exit with the status that says how it went.

    0 done, 1 the answer is no, 2 wrong use, 3 a fault of ours, 4 released and empty, 130
    interrupted.
    """
    gc.freeze()  # what is loaded stays, and loading the rest makes much that stays as well
    gc.set_threshold(50_000, 20, 20)
    warnings.showwarning = _show_warning
    warnings.simplefilter("ignore", IncrowdWarning)  # commands say themselves what is to be known
    try:
        status = app(prog_name="incrowd", standalone_mode=False)
        if status == INTERRUPTED:  # so the parser tells of it
            _complain("Interrupted.")
    except _StoppedError as error:
        _complain(str(error), error.__cause__)
        status = INTERRUPTED
    except IncrowdError as error:
        _complain(str(error), error)
        status = NO if isinstance(error, Refusal) else WRONG_USE
    except OSError as error:
        status = _complain(f"{error.strerror}: '{error.filename}'", error)
    except Exception as error:  # noqa: BLE001 - the last one to see it
        # The parser's own errors know their message; anything else is a fault of ours.
        if hasattr(error, "format_message"):
            status = _complain(error.format_message() or "Say what to do; --help lists it.")
        else:
            print(traceback.format_exc(), end="", file=sys.stderr)
            status = FAULT
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str, error: BaseException | None = None) -> int:
    """Say what is wrong, and what is to be known besides: that a spend was booked, say."""
    notes = getattr(error, "__notes__", [])
    print(f"incrowd: {' '.join([message, *notes])}", file=sys.stderr)
    return WRONG_USE


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001 - the signature is Python's
    line: str | None = None,
) -> None:
    """A library's warning, as Python shows it; it may hold a name or a value."""
    text = warnings.formatwarning(message, category, filename, lineno, line)
    print(text, end="", file=sys.stderr)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"incrowd {__version__}")
        raise typer.Exit


app.add_typer(ledgers, name="ledger")
app.add_typer(hierarchies, name="hierarchy")
for command in (
    init, confirm, check, rehearse, schema, sample, plan, explore, attack, audit, studio, doctor,
):  # fmt: skip
    app.command()(command)


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Publish tables about people so that each person hides in a crowd, provably."""


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="Which: a, b, attacks or all.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    adult: Annotated[
        Path | None, typer.Option(help="The real Adult table, for paper b (CSV).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Paper b on small tables.")] = False,
) -> None:
    """Compute a paper's tables and figures again, or carry out attacks, and write a page."""
    check_choice("paper", paper, ("a", "b", "attacks", "all"))
    if paper in ("a", "attacks") and (adult is not None or quick):
        raise IncrowdError("The options --adult and --quick are for paper b.")
    if paper in ("a", "all"):
        from incrowd.papers import paper_a, paper_a_figures

        number = len(paper_a_figures.FIGURES)
        with terminal.steps(number) as step:
            folder = output / "a" if paper == "all" else output
            paper_a.reproduce(folder, progress=step)
        print(f"Wrote {folder / 'index.html'} and {number} figures, as SVG and PNG.")
    if paper in ("b", "all"):
        from incrowd.papers import paper_b

        number = paper_b.QUICK_STEPS if quick else paper_b.STEPS
        with terminal.steps(number) as step:
            folder = output / "b" if paper == "all" else output
            paper_b.reproduce(folder, adult=adult, quick=quick, progress=step)
        print(f"Wrote {folder / 'index.html'} and {paper_b.FIGURES} figures, as SVG and PNG.")
    if paper in ("attacks", "all"):
        from incrowd.papers import paper_a_attacks

        with terminal.steps(paper_a_attacks.STEPS) as step:
            folder = output / "attacks" if paper == "all" else output
            paper_a_attacks.reproduce(folder, progress=step)
        print(f"Wrote {folder / 'index.html'} and a figure, as SVG and PNG.")


@app.command()
def publish(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the release.")],
    curator: Annotated[
        Path | None, typer.Option(help="Where the private report goes; OUTPUT.curator by default.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="The budget of the table.")] = None,
    sign: Annotated[Path | None, typer.Option(help="An Ed25519 private key (PEM).")] = None,
    seed: Annotated[str | None, number("For tests only: makes it NOT private.")] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    save_as: Annotated[
        str | None,
        typer.Option("--table", help="Save the rows as a table of Spark's catalogue, too."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Publish a release: data, certificate, scheme; and, beside it, a private report.

    Exit status 4 if nothing survived: the release is there, empty, and its budget is spent.
    """
    from incrowd.engine.source import catalogue, open_for
    from incrowd.privacy.randomness import SeededRandomness
    from incrowd.release.ledger import Ledger
    from incrowd.spec.file import load
    from incrowd.tasks.expect import expect
    from incrowd.tasks.publish import publish as make

    file, worker = load(spec), engine_of(engine, master, conf)
    if save_as is not None:
        catalogue(worker).refuse_name(save_as)
    table = open_for(file, engine=worker) if file.spec.size == "public" else None
    if not as_json:
        print(f"{expect(file, table).summary()} (More: incrowd check {spec})")
    whole = int(check_whole("seed", parsed("seed", seed), 0)) if seed else None
    try:
        with terminal.progress("settling the budget") as (step, tell):
            release = make(
                table,
                file,
                output=output,
                curator=curator,
                ledger=Ledger(ledger) if ledger else None,
                key=_signing_key(sign),
                bits=None if whole is None else SeededRandomness(whole),
                engine=worker,
                step=terminal.pausing(step),
                progress=tell,
            )
        saved = _saved(release, save_as) if save_as is not None else ()
    except KeyboardInterrupt as error:
        raise _StoppedError("Interrupted.") from error
    for warning in release.warnings:
        print(f"incrowd: warning: {warning}", file=sys.stderr)
    certificate = release.certificate
    if as_json:
        known = certificate.model_dump(exclude_none=True)
        terminal.print_json({**known, "booked": release.booked, "empty": release.empty})
        return EMPTY if release.empty else DONE
    for line in results.published(release):
        print(line)
    for name in saved:
        print(f"Saved as the table {name}.")
    return EMPTY if release.empty else DONE


def _saved(release: Release, name: str) -> tuple[str, ...]:
    """The tables that rows were saved as; whatever fails says that the release is there."""
    try:
        return release.save_table(name)
    except BaseException as error:
        error.add_note(f"The release is there all the same, and counts: {release.folder}")
        raise


def _signing_key(path: Path | None) -> Any:
    if path is None:
        return None
    from incrowd.release.keys import load_key

    return load_key(path)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="The folder of a release.")],
    key: Annotated[
        str | None,
        typer.Option(help="Who must have signed: a public key in hexadecimal, or a PEM file."),
    ] = None,
    least_format: Annotated[
        str, number("Say no to certificates of an older format, which are checked less closely.")
    ] = "1",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Check a release from its folder alone; exit status 1 if anything does not hold."""
    from incrowd.release.verify import read_certificate
    from incrowd.release.verify import verify as check_release

    least = int(check_whole("least-format", parsed("least-format", least_format)))
    problems = check_release(folder, key=key, least_format=least)
    if as_json:
        known: dict[str, Any] = {"ok": not problems, "problems": problems}
        if not problems:
            sealed = read_certificate(folder)
            known["randomness"] = sealed.randomness
            known["format"] = sealed.format or 1
            known["signed_by"] = sealed.signature.public_key if sealed.signature else None
        terminal.print_json(known)
        return int(bool(problems))
    for problem in problems:
        print(f"WRONG  {problem}")
    if problems:
        return 1
    certificate = read_certificate(folder)
    signed = certificate.signature
    print("The release holds: hash, values, classes and guarantee are as certified.")
    print(f"It satisfies {results.promise(certificate)}")
    if certificate.format is None:
        print("It is of format 1: hidden bytes and the order of rows were not checked.")
    print(f"Signed by {signed.public_key}." if signed else "It is not signed.")
    if signed and key is None:
        print("Is that who you trust? --key names who must have signed.")
    return 0


@app.command()
def evaluate(
    original: Annotated[str, typer.Option(help="The table as it was.")],
    released: Annotated[str, typer.Option(help="The table as it is shown, by whatever tool.")],
    spec: Annotated[Path, typer.Option(help="The spec with the hierarchies.")],
    target: Annotated[
        str | None, typer.Option(help="A column to predict from the others (scikit-learn).")
    ] = None,
    holdout: Annotated[
        str | None, typer.Option(help="Rows that the release has not seen, to predict on.")
    ] = None,
    identity: Annotated[
        str | None, typer.Option("--id", help="A column that names the same row in both tables.")
    ] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Hold a released table against its original: loss, risk, utility. For you alone."""
    from incrowd.tasks.evaluate import evaluate as compare

    found = compare(
        original, released, spec, target=target, holdout=holdout, identity=identity,
        engine=engine_of(engine, master, conf),
    )  # fmt: skip
    terminal.print_json(found.as_dict()) if as_json else results.print_evaluation(found)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="A new folder.")] = Path("demo"),
) -> int:
    """Make a sample table, publish it, verify it, and show where to look."""
    from incrowd.ui.demo import demo as run

    return run(output)
