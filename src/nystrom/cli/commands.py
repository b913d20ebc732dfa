"""The commands and their options; the work is imported when one of them runs."""

from __future__ import annotations

import json
from typing import Any

import click

from .console import without_tracebacks
from .tables import read_table

EXIT_CODES = (
    "Exit codes: 0 done, 1 the data or the model does not allow it, 2 wrong options, "
    "130 stopped by Ctrl-C."
)
_table = click.argument("table", metavar="TABLE")
_model = click.argument("model", type=click.Path(), metavar="MODEL")
_overwrite = click.option(
    "--overwrite", is_flag=True, help="Replace files that exist already."
)
_json = click.option("--json", "as_json", is_flag=True, help="Tell it as JSON.")
_seed = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),  # scikit-learn takes no others
    default=0,
    show_default=True,
    help="Of all draws.",
)


def _version(context: click.Context, _: Any, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"nystrom {version('nystrom')}")
        context.exit()


@click.group(epilog=EXIT_CODES)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def nystrom(debug: bool) -> None:
    """Kernel models from a table in a file, in linear time.

    TABLE is a .csv, .tsv, .csv.gz or .parquet file with a header, or - for CSV from
    standard input.
    """


@nystrom.command()
@_table
@click.option("--target", required=True, help="The column to predict.")
@click.option("-o", "--output", required=True, help="Where the model goes.")
@_overwrite
@click.option(
    "--task",
    type=click.Choice(["regression", "classification"]),
    help="What to learn; without it the target decides.",
)
@click.option("--landmarks", type=click.IntRange(min=2), help="At most so many.")
@click.option("--category", multiple=True, help="A column that is a category.")
@click.option("--ignore", multiple=True, help="A column to leave out.")
@click.option("--report", type=click.Path(), help="An HTML page about the model.")
@_seed
@_json
@click.option("--quiet", is_flag=True, help="Say nothing but errors.")
@without_tracebacks
def fit(
    table: str,
    target: str,
    output: str,
    overwrite: bool,
    task: str | None,
    landmarks: int | None,
    category: tuple[str, ...],
    ignore: tuple[str, ...],
    report: str | None,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Learn to predict a column of TABLE from the others.

    Width, ridge and number of landmarks are chosen by cross-validation; a fifth of the
    rows is held out to say how good the model is, and the model itself is then fitted
    to all rows.
    """
    from .console import StatusPrinter
    from .learning import train
    from .tables import check_output_paths

    if output == "-" or report == "-":
        raise click.UsageError("Models and reports go to files, not to -.")
    check_output_paths([output, report], [table], overwrite=overwrite)
    tell = StatusPrinter(quiet=quiet or as_json)
    rows = read_table(table)
    tell(f"rows: {len(rows)}, columns: {rows.shape[1]}")
    found = train(
        rows,
        target,
        table,
        task=task,
        n_landmarks=landmarks,
        categories=category,
        ignored=ignore,
        seed=seed,
        verbose=int(tell.live),
        log=tell,
    )
    from ..persistence.files import save

    if report is not None:
        from .report import write_report

        # The page first: where it cannot be made there is no model either.
        write_report(found, report)
    save(found.model, output)
    if as_json:
        click.echo(json.dumps(found.summary() | {"model": output}, indent=2))
    else:
        tell.summary(found.summary() | {"model": output})


@nystrom.command()
@_model
@_table
@click.option("-o", "--output", default="-", help="A table; - is standard output.")
@_overwrite
@click.option("--probabilities", is_flag=True, help="Of every class, of a classifier.")
@click.option("--deviations", is_flag=True, help="Of predictions, of a regression.")
@click.option("--keep-columns", is_flag=True, help="Write the columns of TABLE too.")
@without_tracebacks
def predict(
    model: str,
    table: str,
    output: str,
    overwrite: bool,
    probabilities: bool,
    deviations: bool,
    keep_columns: bool,
) -> None:
    """Predict the rows of TABLE, piece by piece: it may be of any size."""
    from .predicting import predict_table

    predict_table(
        model,
        table,
        output,
        overwrite=overwrite,
        probabilities=probabilities,
        deviations=deviations,
        keep=keep_columns,
    )


@nystrom.command()
@_model
@_table
@_json
@without_tracebacks
def score(model: str, table: str, as_json: bool) -> None:
    """Compare predictions for TABLE with the values that it has."""
    from .predicting import score_table

    found = score_table(model, table)
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo(
            "\n".join(f"{name:<12} {value:.6g}" for name, value in found.items())
        )


@nystrom.command()
@_table
@click.option(
    "-n",
    "--number",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many.",
)
@click.option(
    "--gamma",
    type=click.FloatRange(min=0),
    help="Of the rbf kernel, on standardised columns.",
)
@click.option("--category", multiple=True, help="A column that is a category.")
@click.option("--ignore", multiple=True, help="A column to leave out.")
@click.option("-o", "--output", default="-", help="A table; - is standard output.")
@_overwrite
@_seed
@without_tracebacks
def landmarks(
    table: str,
    number: int,
    gamma: float | None,
    category: tuple[str, ...],
    ignore: tuple[str, ...],
    output: str,
    overwrite: bool,
    seed: int,
) -> None:
    """Choose rows of TABLE that stand for all of them, the most telling first."""
    from .learning import write_landmark_rows

    write_landmark_rows(
        table, number, gamma, category, ignore, output, seed, overwrite=overwrite
    )


@nystrom.command()
@_model
@_table
@click.option("-o", "--output", required=True, help="The HTML page.")
@_overwrite
@without_tracebacks
def report(model: str, table: str, output: str, overwrite: bool) -> None:
    """Write an HTML page about MODEL, with rows of TABLE that it was not fitted to."""
    from .predicting import result_from_files
    from .report import write_report
    from .tables import check_output_paths

    check_output_paths([output], [model, table], overwrite=overwrite)
    write_report(result_from_files(model, table), output)


@nystrom.command()
@_model
@_json
@without_tracebacks
def info(model: str, as_json: bool) -> None:
    """Say what a MODEL is, and what it takes."""
    from .console import StatusPrinter
    from .predicting import load_model

    found = load_model(model).nystrom_summary_
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        StatusPrinter().summary(found)
