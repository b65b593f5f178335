"""Commands about releases: publish one, verify it, hold it against its table; and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli import guarantee, results, terminal
from incrowd.cli.options import EngineName, Master, Settings, engine_of, number, parsed
from incrowd.cli.status import DONE, EMPTY
from incrowd.cli.terminal import say as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import check_whole

if TYPE_CHECKING:
    from incrowd.release.release import Release


def publish(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the release.")],
    curator: Annotated[
        Path | None, typer.Option(help="Where the private report goes; OUTPUT.curator by default.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger of the table; else 'ledger' of the spec.")
    ] = None,
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

    Exit status 4 if nothing survived, or less than 5 % of it: the release is there, and its budget
    is spent.
    """
    from incrowd.engine.source import catalogue, open_for
    from incrowd.methods.expect import expect
    from incrowd.privacy.randomness import SeededRandomness
    from incrowd.publication import publish as make
    from incrowd.spec.file import load

    file, worker = load(spec), engine_of(engine, master, conf)
    if save_as is not None:
        catalogue(worker).refuse_name(save_as)
    table = open_for(file, engine=worker) if file.spec.size == "public" else None
    if not as_json:
        print(f"{expect(table, file).summary()} (More: incrowd check {spec})")
    whole = int(check_whole("seed", parsed("seed", seed), 0)) if seed else None
    try:
        with terminal.progress("settling the budget") as (step, tell):
            release = make(
                table,
                file,
                output=output,
                curator=curator,
                ledger=ledger,
                key=_signing_key(sign),
                bits=None if whole is None else SeededRandomness(whole),
                engine=worker,
                step=terminal.pausing(step),
                progress=tell,
            )
        saved = _saved(release, save_as) if save_as is not None else ()
    except KeyboardInterrupt as error:
        raise terminal.StoppedError("Interrupted.") from error
    terminal.print_findings(release.findings, stderr=True)
    certificate = release.certificate
    if as_json:
        known = certificate.model_dump(exclude_none=True)
        booking = None if release.booking is None else release.booking.as_dict()
        terminal.print_json(
            {
                **known,
                "booked": release.booked,
                "booking": booking,
                "empty": release.empty,
                "nearly_empty": release.nearly_empty,
                "findings": results.list_findings(release),
            }
        )
        return EMPTY if release.empty or release.nearly_empty else DONE
    for line in results.published(release):
        print(line)
    guarantee.print_protection(certificate)
    for name in saved:
        print(f"Saved as the table {name}.")
    return EMPTY if release.empty or release.nearly_empty else DONE


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


def verify(
    folder: Annotated[Path, typer.Argument(help="The folder of a release.")],
    key: Annotated[
        str | None,
        typer.Option(help="Who must have signed: a public key in hexadecimal, or a PEM file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Check a release from its folder alone; exit status 1 if anything does not hold."""
    from incrowd.release.verify import read_certificate
    from incrowd.verification import verify as check_release

    findings = check_release(folder, key=key)
    if as_json:
        listed = [finding.as_dict() for finding in findings]
        known: dict[str, Any] = {"ok": not findings, "findings": listed}
        if not findings:
            sealed = read_certificate(folder)
            known["randomness"] = sealed.randomness
            known["format"] = sealed.format
            known["signed_by"] = sealed.signature.public_key if sealed.signature else None
        terminal.print_json(known)
        return int(bool(findings))
    terminal.print_findings(findings)
    if findings:
        return 1
    certificate = read_certificate(folder)
    signed = certificate.signature
    print("The release holds: hash, values, classes and guarantee are as certified.")
    print(f"It satisfies {guarantee.promise(certificate)}")
    print(guarantee.describe_unit(certificate))
    guarantee.print_protection(certificate)
    print(f"Signed by {signed.public_key}." if signed else "It is not signed.")
    if signed and key is None:
        print("Is that who you trust? --key names who must have signed.")
    return 0


def evaluate(
    original: Annotated[str, typer.Option(help="The table as it was.")],
    released: Annotated[str, typer.Option(help="A released table, or a release folder.")],
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
    curator: Annotated[
        Path | None,
        typer.Option(help="The private folder of the release; beside it by default."),
    ] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Hold a released table against its original: loss, risk, utility. For you alone."""
    from incrowd.evaluation.measures import evaluate as compare
    from incrowd.spec.file import load
    from incrowd.spec.model import PersonId

    found = compare(
        original, released, spec, target=target, holdout=holdout, identity=identity,
        curator=curator,
        engine=engine_of(engine, master, conf),
    )  # fmt: skip
    if as_json:
        terminal.print_json(found.as_dict())
        return
    if isinstance(load(spec).spec.unit, PersonId):
        print("One row per person is compared: numbers of rows are numbers of people.")
    results.print_evaluation(found)
    terminal.print_findings(found.findings())


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="A new folder.")] = Path("demo"),
) -> int:
    """Make a sample table, publish it, verify it, and show where to look."""
    from incrowd.cli.demo import demo as run

    return run(output)
