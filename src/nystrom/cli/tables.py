"""Tables in files, what their columns are (numbers, dates, categories, text, unused),
their cells as numbers or text, and the target.

Columns are a dict of names by kind, which a model keeps in its summary, so that new
rows are read as the training rows were.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._validation import unknown_name_error
from ..sources.arrow import ArrowFile, CsvFile
from ..sources.files import open_files
from ..sources.output import atomic_write
from ..sources.tabular import FileOptions

#: Rows of a piece: a hundred columns of them take 50 MB.
PIECE_ROWS = 65_536
#: Text that stands for a missing value.
MISSING_MARKERS = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null"]
MISSING_MARKERS += ["NULL", "None", "?"]
#: 12,5 where values are separated by something else than commas.
DECIMAL_COMMA_PATTERN = r"^([+-]?\d*),(\d+)$"
DECIMAL_POINT_PATTERN = r"^[+-]?\d*\.\d+$"
#: The kinds of columns, and what is done to them.
TREATMENTS = {
    "numbers": "standardised; missing: the median",
    "dates": "days since 1970, standardised; missing: the median",
    "categories": "one indicator per value; rare values grouped; missing: a value",
    "text": "ten components of its TF-IDF vectors",
}
#: Values that are not numbers, as a share, up to which they are mistakes.
MAX_MISTAKE_SHARE = 0.02
#: The largest number: squares of larger ones overflow in float64.
LARGEST = 1e150
#: A column is a date where its values look like this: 2026-11-17.
ISO_DATE_PATTERN = r"^\d{4}-\d{1,2}-\d{1,2}([ T].*)?$"
#: Digits that are a code, such as a postal one: a number has no 0 before it.
CODE_PATTERN = r"^0\d+$"
#: Text with more different values than this is a name or a note, not a category.
MAX_CATEGORIES = 200
#: Words, as scikit-learn counts them, that a note has on average; with fewer it is a
#: name or a code.
WORD_PATTERN, MIN_WORDS = r"\b\w\w+\b", 4
#: Whole numbers with no more different values than this are classes.
MAX_GUESSED_CLASSES = 20
#: Fewer rows than this are too few to learn from.
MIN_ROWS = 20
#: Of a class with fewer rows none is held out; two classes must have more.
MIN_CLASS_ROWS = 5


# ------------------------------------------------------------------------------- files


def read_table(path: str) -> pd.DataFrame:
    """All rows."""
    return pd.concat(list(read_pieces(path)))


def read_pieces(path: str) -> Iterator[pd.DataFrame]:
    """The rows of a table in pieces, numbered from 0; "-" is CSV from standard input.

    Cells of CSV files are text: whether a column has numbers is decided where all of it
    is known.
    """
    if path == "-":
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "standard input.csv")
            with open(copy, "wb") as stream:
                shutil.copyfileobj(sys.stdin.buffer, stream)
            yield from read_pieces(copy)
            return
    n_rows = 0
    for file in open_files(path, FileOptions(delimiter="detect")):
        if not isinstance(file, (CsvFile, ArrowFile)):
            raise ValueError(f"{path} is not a .csv, .tsv, .parquet or .arrow file.")
        for piece in _pieces_of(file):
            piece.index = pd.RangeIndex(n_rows, n_rows + len(piece))
            piece.attrs["separator"] = getattr(file, "delimiter", ",")
            n_rows += len(piece)
            yield piece
    if not n_rows:
        raise ValueError(f"{path} has a header and no rows; add rows.")


def _pieces_of(file: Any) -> Iterator[pd.DataFrame]:
    for table in file.iter_tables():
        for start in range(0, table.num_rows, PIECE_ROWS):
            piece = table.slice(start, PIECE_ROWS).to_pandas()
            # Without the index that pandas wrote, if it did.
            names = [n.strip() or f"column {i}" for i, n in enumerate(piece, 1)]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(
                        f"{file.path}: two columns are called {name!r}; rename one."
                    )
            piece.columns = pd.Index(names)
            if isinstance(file, CsvFile):
                if piece.iloc[-1].str.endswith("\n").any():
                    raise ValueError(
                        f"{file.path}: a quote is not closed. Close it, or double "
                        "quotes inside a value."
                    )
                piece = _clean(piece, decimal_comma=file.delimiter != ",")
            yield piece


def _clean(piece: pd.DataFrame, *, decimal_comma: bool) -> pd.DataFrame:
    """Trimmed text, gaps where nothing is given, points for decimal commas."""
    for name in piece.columns:
        text = piece[name].str.strip()
        piece[name] = text = text.mask(text.isin(MISSING_MARKERS))
        commas = text.str.match(DECIMAL_COMMA_PATTERN, na=False)
        # With points too they may stand for thousands: nobody can know.
        points = text.str.match(DECIMAL_POINT_PATTERN, na=False)
        if decimal_comma and commas.any() and not points.any():
            piece[name] = text.str.replace(DECIMAL_COMMA_PATTERN, r"\1.\2", regex=True)
    return piece


@contextmanager
def open_writer(path: str) -> Iterator[Callable[[pd.DataFrame], None]]:
    """A function that appends rows; the file is complete or not there."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    if not path.endswith(("-", ".csv", ".tsv", ".parquet")):
        raise ValueError(
            f"{path} is not allowed; tables are written as .csv, .tsv or .parquet."
        )
    with ExitStack() as stack:
        stream: Any = sys.stdout.buffer
        if path != "-":
            temporary = stack.enter_context(atomic_write(path))
            stream = stack.enter_context(open(temporary, "wb"))
        writer: Any = None

        def write(piece: pd.DataFrame) -> None:
            nonlocal writer
            if path.endswith(".parquet"):
                table = pa.Table.from_pandas(piece, preserve_index=False)
                if writer is None:
                    writer = stack.enter_context(ParquetWriter(stream, table.schema))
                writer.write_table(table.cast(writer.schema))
            else:
                delimiter = "\t" if path.endswith(".tsv") else ","
                text = piece.to_csv(None, sep=delimiter, header=not writer, index=False)
                stream.write(text.encode())
                writer = stream

        yield write


def check_output_paths(
    writes: Sequence[str | None], reads: Sequence[str], *, overwrite: bool
) -> None:
    """Refuse before hours of work what could not, or should not, be written after."""
    in_use = {Path(path).resolve() for path in reads}
    for path in (each for each in writes if each and each != "-"):
        resolved, problem = Path(path).resolve(), ""
        if resolved in in_use:
            problem = "is also read or written by this command and would be lost"
        elif os.path.lexists(path) and not (overwrite and resolved.is_file()):
            problem = "exists already (--overwrite replaces it)"
        elif not os.access(resolved.parent, os.W_OK):
            problem = "cannot be written (no such folder, or no permission)"
        if problem:
            raise ValueError(f"{path} {problem}. Choose another name.")
        in_use.add(resolved)


def check_column(table: pd.DataFrame, name: str, purpose: str = "") -> None:
    """Refuse a name that a table does not have."""
    if name not in table.columns:
        kind = f"The table lacks a column{purpose}: column"
        raise unknown_name_error(kind, name, list(map(str, table.columns)))


# ----------------------------------------------------------------------------- columns


def find_columns(
    table: pd.DataFrame, categories: Sequence[str] = ()
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The names of columns by their kind, and why others are left out."""
    columns: dict[str, list[str]] = {kind: [] for kind in TREATMENTS}
    left_out: dict[str, str] = {}
    for name in table.columns:
        kind = _column_kind(table[name], name in categories)
        if kind in TREATMENTS:
            columns[kind].append(name)
        else:
            left_out[name] = kind
    if len(left_out) == table.shape[1]:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        reasons = reasons or "the target is the only one"
        raise ValueError(
            f"The table has no column to learn from ({reasons}). Add columns, or keep "
            "one with --category."
        )
    return columns, left_out


def _column_kind(column: pd.Series, is_category: bool) -> str:
    """A kind of TREATMENTS, or why it is left out."""
    text = column.dropna().astype(str).str.strip()
    if not len(text):
        return "no values"
    if is_category:
        return "categories"
    n_different = text.nunique()
    if n_different == 1:
        return "one value only"
    advice = f"Correct it, leave it empty, or add --category {column.name}."
    if not text.str.match(CODE_PATTERN).any() and _is_mostly_numbers(text):
        parse_numbers(column, advice)  # refuses those that are not
        return "numbers"
    if text.str.match(ISO_DATE_PATTERN).mean() > 1 - MAX_MISTAKE_SHARE:
        parse_days(column, advice)
        return "dates"
    is_key = n_different > 20 and n_different > 0.5 * len(text)
    if not is_key and n_different <= max(MAX_CATEGORIES, 0.02 * len(text)):
        return "categories"
    if text.str.count(WORD_PATTERN).mean() >= MIN_WORDS:
        return "text"
    return f"{n_different} different texts, such as {text.iloc[0][:30]!r}"


def _is_mostly_numbers(text: pd.Series) -> bool:
    """Whether values that are no numbers are so rare that they are mistakes."""
    wrong = pd.to_numeric(text, errors="coerce").isna()
    return bool(wrong.mean() <= MAX_MISTAKE_SHARE and (~wrong).sum() > 1)


def make_encoder(columns: dict[str, list[str]]) -> ColumnTransformer:
    """Make numbers of columns that are known by their kind."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=0.002, sparse_output=False
    )
    words = HashingVectorizer(n_features=1024)
    text = make_pipeline(words, TfidfTransformer(), TruncatedSVD(10, random_state=0))
    steps = [
        ("numbers", numbers, columns["numbers"] + columns["dates"]),
        ("categories", categories, columns["categories"]),
        *[(f"text {i}", text, name) for i, name in enumerate(columns["text"])],
    ]
    return ColumnTransformer([step for step in steps if step[2]])


def parse_columns(columns: dict[str, list[str]], table: pd.DataFrame) -> pd.DataFrame:
    """The columns as numbers and text, as the encoder takes them."""
    parse = {"numbers": parse_numbers, "dates": parse_days}
    values: dict[str, np.ndarray] = {}
    for kind in TREATMENTS:
        for name in columns[kind]:
            check_column(table, name, ", which the model needs")
            values[name] = parse.get(kind, _parse_text)(table[name])
    return pd.DataFrame(values, index=table.index)


def _parse_text(column: pd.Series) -> np.ndarray:
    """Trimmed text; a missing value has a name, as it may be informative.

    Whole numbers are floats only beside missing values: 3.0 and 3 are one category.
    """
    cells = column.astype(object).where(column.notna(), "(missing)")
    cells = cells.map(lambda v: int(v) if isinstance(v, float) and v % 1 == 0 else v)
    return cells.astype(str).str.strip().to_numpy(dtype=object)


MEND = "Correct it, or leave it empty."


def parse_numbers(column: pd.Series, advice: str = MEND) -> np.ndarray:
    """Finite numbers, NaN where none is given."""
    numbers = pd.to_numeric(column, errors="coerce")
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    problem = f"is not a number up to {LARGEST:g}. {advice}"
    _refuse(column, ~(np.abs(values) <= LARGEST), problem)
    return values


def parse_days(column: pd.Series, advice: str = MEND) -> np.ndarray:
    """Days since 1970; times of the day as fractions."""
    dates = pd.to_datetime(
        column.astype(str), errors="coerce", format="ISO8601", utc=True
    )
    problem = f"is not a date such as 2026-11-17. {advice}"
    _refuse(column, dates.isna().to_numpy(), problem)
    days = (dates - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64, na_value=np.nan)


def _refuse(column: pd.Series, wrong: np.ndarray, problem: str) -> None:
    """An error for the first cell that is given and wrong, if there is one."""
    for first in np.flatnonzero(wrong & column.notna().to_numpy())[:1]:
        raise ValueError(
            f"Row {column.index[first]}, column {column.name!r}: "
            f"{str(column.iloc[first])!r} {problem}"
        )


# ------------------------------------------------------------------------------ target


def guess_task(y: pd.Series) -> tuple[str, str]:
    """Regression or classification, and why."""
    text = y.dropna().astype(str).str.strip()
    numbers = pd.to_numeric(text, errors="coerce")
    n_different = text.nunique()
    is_few = n_different <= MAX_GUESSED_CLASSES
    if numbers.isna().any() and (is_few or not _is_mostly_numbers(text)):
        return "classification", "the target is text"
    if text.str.match(CODE_PATTERN).any():
        return "classification", "the target is codes that begin with 0"
    if n_different == 2 or (is_few and (numbers == numbers.round()).all()):
        return "classification", f"the target has {n_different} different values"
    return "regression", f"the target has {n_different} different numbers"


def parse_target(y: pd.Series, task: str) -> np.ndarray:
    """Numbers, or labels, of which a model can be learnt."""
    if len(y) < MIN_ROWS or y.astype(str).nunique() < 2:
        raise ValueError(
            f"The table has {len(y)} rows with a value of {y.name!r}, and "
            f"{y.astype(str).nunique()} different values; {MIN_ROWS} rows and 2 values "
            "are needed."
        )
    if task == "regression":
        advice = "Correct it, leave it empty, or fit classes: --task classification."
        return parse_numbers(y, advice)
    labels = as_labels(y)
    counts = np.unique(labels, return_counts=True)[1]
    if np.sum(counts >= MIN_CLASS_ROWS) < 2:
        raise ValueError(
            f"Column {y.name!r} has {len(counts)} classes in {len(labels)} rows, such "
            f"as {str(labels[0])[:30]!r}; at least 2 classes of {MIN_CLASS_ROWS} rows "
            "are needed. Choose another target, add rows, or merge rare classes. If it "
            "holds numbers, write them with digits and a decimal point only."
        )
    return labels


def as_labels(y: pd.Series) -> np.ndarray:
    """Classes: whole numbers where all are such, else text, as a CSV file has it."""
    text = y.astype(str).str.strip()
    numbers = pd.to_numeric(text, errors="coerce")
    whole = numbers.notna().all() and (numbers == numbers.round()).all()
    if whole and not text.str.match(CODE_PATTERN).any() and numbers.abs().max() < 2**53:
        return numbers.astype(np.int64).to_numpy()
    return text.to_numpy(dtype=object).astype(str)


def as_known_labels(y: pd.Series, classes: np.ndarray) -> np.ndarray:
    """Labels that must be classes of a model."""
    found = as_labels(y) if classes.dtype.kind == "i" else y.astype(str).str.strip()
    labels = np.asarray(found).astype(classes.dtype.kind)
    for unknown in labels[~np.isin(labels, classes)][:1]:
        raise ValueError(
            f"{str(unknown)!r} in column {y.name!r} is not a class of the model "
            f"({', '.join(map(repr, classes[:5].tolist()))}). Correct it, or drop "
            "such rows."
        )
    return labels
