"""The commands and their options; errors without tracebacks, warnings in words."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import click

from nystrom import save

from .learning import BASELINES, evaluate, load_model, predicted_pieces, train
from .report import write_report
from .tables import TREATMENTS, check_output_paths, open_writer

#: Exit code of Ctrl-C; 1 is click's for errors and 2 for wrong options.
INTERRUPT_EXIT_CODE = 130

_table = click.argument("table", metavar="TABLE")
_model = click.argument("model", type=click.Path(), metavar="MODEL")
_overwrite = click.option("--overwrite", is_flag=True, help="Replace existing files.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class CommandGroup(click.Group):
    """Commands that report an error in one message, which says what to do."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _print_warning
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Stopped; no file was written.", err=True)
            ctx.exit(INTERRUPT_EXIT_CODE)
        except BrokenPipeError:
            sys.stderr.close()  # the reader has enough
            ctx.exit(0)
        except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
            if ctx.params["debug"]:
                raise
            text = str(error).strip() or type(error).__name__
            raise click.ClickException(text) from None


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print the message alone, without file name and line number."""
    click.echo(f"Warning: {' '.join(str(message).split())}", err=True)


def print_summary(summary: dict[str, Any]) -> None:
    """The summary of a model as a table on standard output."""
    columns, held_out = summary["columns"], summary["held_out"]
    without, target = summary["rows_without_target"], summary["target"]
    lines = {
        "task": f"{summary['task']} of {target}",
        "classes": format_list(summary["classes"]),
        "rows": f"{summary['rows']}"
        + f", and {without} without a value of {target}" * (without > 0),
        **{kind: format_list(columns[kind]) for kind in TREATMENTS},
        "dropped": format_list(list(summary["left_out"])),
        "landmarks": f"{summary['landmarks']}, {summary['kernel']}",
        "penalty": ", ".join(f"{k} = {v:.3g}" for k, v in summary["penalty"].items()),
        "error": f"{summary['approximation_error']:.3g} (relative trace error)",
        "held out": f"{summary['held_out_rows']} rows",
    }
    for metric, value in held_out["nystrom"].items():
        low, high = summary["intervals"][metric]
        others = [f"{name} {held_out[name][metric]:.4g}" for name in BASELINES]
        lines[metric] = f"{value:.4g} [{low:.4g}, {high:.4g}] ({', '.join(others)})"
    lines["warnings"] = " ".join(summary["warnings"])
    lines["seconds"] = f"{summary['seconds']:.1f}"
    formatter = click.HelpFormatter()
    formatter.write_dl([(name, text) for name, text in lines.items() if text])
    click.echo(formatter.getvalue(), nl=False)


def format_list(names: list[str], max_items: int = 12) -> str:
    """How many, and the first of them; "" where there are none."""
    more = ", …" if len(names) > max_items else ""
    return f"{len(names)}: {', '.join(names[:max_items])}{more}" if names else ""


@click.group(
    cls=CommandGroup,
    epilog=(
        "Exit codes: 0 success, 1 unsuitable data or model, 2 wrong options, 130 "
        "stopped by Ctrl-C."
    ),
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(package_name="nystrom", message="%(prog)s %(version)s")
def nystrom(debug: bool) -> None:
    """Kernel models from a table in a file, in linear time.

    TABLE is a .csv, .tsv, .csv.gz, .parquet or .arrow file with a header, a folder of
    them, a pattern or URL such as "s3://bucket/*.parquet", or - for CSV from standard
    input.
    """


@nystrom.command()
@_table
@click.option("--target", required=True, help="The column to predict.")
@click.option("-o", "--output", required=True, help="The model file to write.")
@_overwrite
@click.option(
    "--task",
    type=click.Choice(["regression", "classification"]),
    help="Type of model; by default it depends on the target.",
)
@click.option("--landmarks", type=click.IntRange(min=2), help="Largest number.")
@click.option("--category", multiple=True, help="Treat this column as a category.")
@click.option("--ignore", multiple=True, help="A column to leave out.")
@click.option("--report", type=click.Path(), help="Write an HTML report.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),  # scikit-learn takes no others
    default=0,
    show_default=True,
    help="Seed of all random numbers.",
)
@_json
@click.option("--quiet", is_flag=True, help="Print errors only.")
def fit(
    table: str,
    target: str,
    output: str,
    overwrite: bool,
    report: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Learn to predict a column of TABLE from the others.

    Width, penalty and number of landmarks are chosen by cross-validation. A fifth of
    the rows is held out to score the model. It is then fitted to all rows.
    """
    if "-" in (output, report):
        raise click.UsageError("Models and reports need a file name, not -.")
    check_output_paths([output, report], [table], overwrite=overwrite)
    is_quiet = quiet or as_json
    if is_quiet:
        warnings.simplefilter("ignore")
    verbose = int(not is_quiet and sys.stderr.isatty())
    model, held_out = train(table, target, verbose=verbose, **options)
    if report is not None:
        # The page first: where it cannot be written there is no model either.
        write_report(model, held_out, report)
    save(model, output)
    summary = model.nystrom_summary_
    if as_json:
        click.echo(json.dumps(summary, indent=2))
    elif not quiet:
        print_summary(summary)


@nystrom.command()
@_model
@_table
@click.option("-o", "--output", default="-", help="A table; - is standard output.")
@_overwrite
@click.option(
    "--uncertainty",
    is_flag=True,
    help="Add the probability of each class, or a standard deviation.",
)
@click.option("--keep-columns", is_flag=True, help="Write the columns of TABLE too.")
def predict(
    model: str, table: str, output: str, overwrite: bool, **options: bool
) -> None:
    """Predict the rows of TABLE, piece by piece: it may be of any size."""
    check_output_paths([output], [model, table], overwrite=overwrite)
    pieces = predicted_pieces(load_model(model), table, **options)
    with open_writer(output) as write:
        for piece in pieces:
            write(piece)


@nystrom.command()
@_model
@_table
@_json
def score(model: str, table: str, as_json: bool) -> None:
    """Compare predictions for TABLE with its target column."""
    evaluation = evaluate(load_model(model), table)
    found = {"rows": len(evaluation.y_true), **evaluation.metrics()}
    lines = [f"{name:<12} {value:.6g}" for name, value in found.items()]
    click.echo(json.dumps(found) if as_json else "\n".join(lines))


@nystrom.command()
@_model
@_json
def info(model: str, as_json: bool) -> None:
    """Show what a MODEL is and which columns it needs."""
    summary = load_model(model).nystrom_summary_
    if as_json:
        click.echo(json.dumps(summary, indent=2))
    else:
        print_summary(summary)
