"""Commands about releases: publish one, verify it, hold it against its table; and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli import evaluation_facts, guarantee, protection, results, terminal
from incrowd.cli.options import (
    EngineName,
    Json,
    Master,
    Settings,
    SpecPath,
    Verbose,
    choose_engine,
    number_option,
    parse_number,
)
from incrowd.cli.status import DONE, EMPTY
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import check_whole
from incrowd.findings import count_findings

if TYPE_CHECKING:
    from incrowd.release.release import Release


def publish(
    spec: SpecPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="New folder of the release.")
    ],
    curator: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="New folder of the private report. Default: OUTPUT.curator."
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ledger of the table. Default: `ledger` of the spec."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="KEY", help="Sign the certificate with this Ed25519 private key (PEM)."
        ),
    ] = None,
    seed: Annotated[
        str | None,
        number_option("Seed of the random numbers, for tests: the release is NOT private."),
    ] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    save_as: Annotated[
        str | None,
        typer.Option(
            "--spark-table",
            metavar="NAME",
            help="Save the rows as a table in Spark's catalog, too.",
        ),
    ] = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> int:
    """Publish a table: data, certificate, scheme and a private report.

    Exit status 4: fewer than 5 % of rows are published. The release exists and its budget is spent.
    """
    from incrowd.engine.source import open_spec_table, require_catalog
    from incrowd.methods.expect import expect
    from incrowd.privacy.randomness import SeededRandomness
    from incrowd.publication import publish as make
    from incrowd.spec.file import read_spec_file

    file, worker = read_spec_file(spec), choose_engine(engine, master, conf)
    if save_as is not None:
        require_catalog(worker).refuse_name(save_as)
    table = open_spec_table(file, engine=worker) if file.spec.size == "public" else None
    if not as_json:
        terminal.print_wrapped(f"{expect(table, file).summarize()} Details: incrowd check {spec}")
    seed_number = int(check_whole("seed", parse_number("seed", seed), 0)) if seed else None
    try:
        with terminal.show_progress("splitting the budget") as (step, tell):
            release = make(
                table,
                file,
                output=output,
                curator=curator,
                ledger=ledger,
                key=_load_signing_key(sign),
                bits=None if seed_number is None else SeededRandomness(seed_number),
                engine=worker,
                step=terminal.add_test_pause(step),
                progress=tell,
            )
        saved = _save_tables(release, save_as) if save_as is not None else ()
    except KeyboardInterrupt as error:
        raise terminal.StoppedError("Interrupted.") from error
    terminal.print_findings(release.findings, stderr=True)
    certificate = release.certificate
    if as_json:
        document = certificate.model_dump(exclude_none=True)
        booking = None if release.booking is None else release.booking.as_dict()
        terminal.print_json(
            {
                **document,
                "booked": release.is_booked,
                "booking": booking,
                "empty": release.is_empty,
                "nearly_empty": release.is_nearly_empty,
                "findings": results.list_findings(release),
            }
        )
        return EMPTY if release.is_empty or release.is_nearly_empty else DONE
    results.print_release(release, verbose=verbose)
    protection.print_weakness(certificate.guarantee.epsilon, certificate.guarantee.delta)
    for name in saved:
        print(f"Saved as Spark table {name}.")
    return EMPTY if release.is_empty or release.is_nearly_empty else DONE


def _save_tables(release: Release, name: str) -> tuple[str, ...]:
    """Save the rows as tables; whatever fails says that the release is there."""
    try:
        return release.save_table(name)
    except BaseException as error:
        error.add_note(f"The release exists and counts: {release.folder}")
        raise


def _load_signing_key(path: Path | None) -> Any:
    if path is None:
        return None
    from incrowd.release.keys import load_private_key

    return load_private_key(path)


def _serve_verification(folder: Path) -> int:
    """Open the page on which recipients verify a release: of this folder, or one in it."""
    from importlib import import_module

    from incrowd.errors import IncrowdError
    from incrowd.release.certificate import FILE

    if not folder.is_dir():
        raise IncrowdError(f"'{folder}' is not a folder. Name the folder of a release.")
    home = folder.resolve().parent if (folder / FILE).is_file() else folder
    import_module("incrowd.studio.command").serve_pages(home, only_verify=True)
    return 0


def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the release.")],
    key: Annotated[
        str | None,
        typer.Option(
            help="Public key that must have signed: 64 hexadecimal digits, or a PEM file."
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Open a page that verifies releases, in a browser.")
    ] = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> int:
    """Verify a release offline, from its folder alone.

    Exit status 1: something is not as certified.
    """
    if serve:
        return _serve_verification(folder)
    from incrowd.release.verify import read_assertions, read_certificate
    from incrowd.verification import verify as check_release

    findings = check_release(folder, key=key)
    if as_json:
        listed = [finding.as_dict() for finding in findings]
        document: dict[str, Any] = {"ok": not findings, "findings": listed}
        if not findings:
            sealed = read_certificate(folder)
            document["randomness"] = sealed.randomness
            document["format"] = sealed.format
            document["signed_by"] = sealed.signature.public_key if sealed.signature else None
            document["asserted"] = list(read_assertions(folder, sealed).list_stated())
        terminal.print_json(document)
        return int(bool(findings))
    terminal.print_findings(findings)
    if findings:
        print(f"Not verified: {folder}. {count_findings(findings)}")
        return 1
    certificate = read_certificate(folder)
    checked = "hash, values, groups and guarantee"
    if certificate.synthetic is not None:
        checked = "files, values, measured tables, model, rows and guarantee"
    if certificate.tabulation is not None:
        checked = "files, cells, sums, estimates, intervals and guarantee"
    print(f"Verified {folder}: {checked} are as certified.")
    signed = certificate.signature
    signature = "none" if signed is None else f"by {signed.public_key}"
    if signed and key is None:
        signature += "; compare it with the curator's public key, or name that key with --key"
    facts = [
        ("Guarantee", guarantee.describe_guarantee(certificate).removesuffix(".")),
        ("Protects", guarantee.describe_unit(certificate)),
        ("Meaning", guarantee.describe_protection(certificate)),
        ("Signature", signature),
    ]
    if stated := read_assertions(folder, certificate).list_stated():
        facts.append(("Asserted", f"by the curator, and not proved: {', '.join(stated)}"))
    if verbose:
        texts = [sentence.text for sentence in certificate.guarantee.statement]
        facts += [("" if at else "Statement", text) for at, text in enumerate(texts)]
    terminal.print_facts(facts)
    protection.print_weakness(certificate.guarantee.epsilon, certificate.guarantee.delta)
    return 0


def evaluate(
    original: Annotated[str, typer.Option(metavar="TABLE", help="Original table.")],
    released: Annotated[
        str, typer.Option(metavar="TABLE", help="Released table, or the folder of a release.")
    ],
    spec: Annotated[Path, typer.Option(metavar="SPEC", help="Spec with the hierarchies.")],
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column to predict from the others."),
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Rows outside the original table, to test predictions on."
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column that identifies a row in both tables."),
    ] = None,
    curator: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Private folder of the release. Default: beside it."),
    ] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Measure information loss, risk and utility of a released table.

    The result is private: it is computed from the original table.
    """
    from incrowd.evaluation.evaluate import evaluate as compare
    from incrowd.spec.file import read_spec_file
    from incrowd.spec.model import PersonId

    evaluation = compare(
        original, released, spec, target=target, holdout=holdout, identity=identity,
        curator=curator,
        engine=choose_engine(engine, master, conf),
    )  # fmt: skip
    if as_json:
        terminal.print_json(evaluation.as_dict())
        return
    unit = read_spec_file(spec).spec.unit
    if isinstance(unit, PersonId) and unit.rows > 1:
        each = "once per group" if unit.per_group == 1 else f"up to {unit.per_group} per group"
        print(f"Unit: one person. Up to {unit.rows} rows per person are compared, {each}.")
    elif isinstance(unit, PersonId):
        print("Unit: one person. One row per person is compared, so rows are people.")
    evaluation_facts.print_evaluation(evaluation, verbose=verbose)
    terminal.print_findings(evaluation.findings())


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="New folder.")
    ] = Path("demo"),
) -> int:
    """Publish and verify a fictional table, step by step."""
    from incrowd.cli.demo import run_demo as run

    return run(output)
