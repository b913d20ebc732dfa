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
from difflib import get_close_matches
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

from ..sources.arrow import COMPRESSED, CsvFile
from ..sources.files import file_format, open_files
from ..sources.output import atomic_write
from ..sources.tabular import FileError, FileOptions

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
    "numbers": "standardised; where missing, the median",
    "dates": "days since 1970, standardised; where missing, the median",
    "categories": "an indicator for each value; rare ones together, missing is one",
    "text": "words by TF-IDF, their 10 main components",
}
#: Values that are not numbers, as a share, up to which they are mistakes.
MAX_MISTAKE_SHARE = 0.02
#: The largest number: squares of larger ones overflow in float64.
LARGEST = 1e150
#: A column of text is a date where its values look like this: 2026-11-17.
ISO_DATE_PATTERN = r"^\d{4}-\d{1,2}-\d{1,2}([ T].*)?$"
#: Dates that may be read in two ways.
AMBIGUOUS_DATE_PATTERN = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?$"
#: Digits that are a code, such as a postal one: a number has no 0 before it.
CODE_PATTERN = r"^0\d+$"
#: Text with more different values than this is a name or a note, not a category.
MAX_CATEGORIES = 200
#: Words that a note has on average; with fewer it is a name or a code.
MIN_WORDS = 4
#: Whole numbers with no more different values than this are classes.
MAX_GUESSED_CLASSES = 20
#: Fewer rows than this are too few to learn from.
MIN_ROWS = 20


class CommandError(Exception):
    """The data, the model or the disk does not allow it; the message says what does."""


class TableFile:
    """A table, by its path or URL; "-" is CSV from standard input or to standard
    output.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        kind = "csv" if path == "-" else file_format(path)
        if kind not in ("csv", "parquet", "ipc") and not Path(path).is_dir():
            raise CommandError(
                f"{path}: the name must say what the file is: .csv, .tsv, .csv.gz, "
                ".parquet or .arrow, or - for standard input or output."
            )
        self.is_csv = kind == "csv"
        #: What its rows are counted in, in messages, from 1.
        self.unit = "line" if self.is_csv else "row"
        #: Between values; for files that are read, known once the first piece is.
        self.separator = "\t" if ".tsv" in path.lower() else ","

    def __str__(self) -> str:
        return "Standard input" if self.path == "-" else self.path

    def read(self) -> pd.DataFrame:
        """All rows."""
        return pd.concat(list(self.pieces()))

    def pieces(self) -> Iterator[pd.DataFrame]:
        """The rows in pieces.

        Rows are labelled by their line, from 1, not counting empty lines, or by their
        number in a Parquet or Arrow file. Cells of CSV files are text: whether a column
        has numbers is decided where all of it is known.
        """
        n_rows = 0
        with ExitStack() as stack:
            path = self.path
            if path == "-":
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                path = os.path.join(folder, "standard_input.csv")
                with open(path, "wb") as copy:
                    shutil.copyfileobj(sys.stdin.buffer, copy)
            try:
                for file in open_files(path, FileOptions(delimiter="detect")):
                    for piece in self._pieces_of(file):
                        n_rows += len(piece)
                        yield piece
            except FileNotFoundError:
                raise CommandError(f"There is no file {path}.") from None
            except FileError as error:
                text = str(error).replace(os.path.abspath(path), str(self))
                if "UTF-8" in text or r"\x00" in text:
                    text = f"{self} is not UTF-8 text. Save it as such, or convert it: "
                    text += f"iconv -f WINDOWS-1252 -t UTF-8 {self.path} > new.csv"
                raise CommandError(text) from None
        if not n_rows:
            raise CommandError(f"{self} has a header and no rows.")

    def _pieces_of(self, file: Any) -> Iterator[pd.DataFrame]:
        if isinstance(file, CsvFile):
            self.separator = file.delimiter
        names = [n.strip() or f"column {i}" for i, n in enumerate(file.names, 1)]
        for name in names:
            if names.count(name) > 1:
                raise CommandError(f"{self}: two columns are called {name!r}.")
        first = 2 if self.is_csv else 1
        for table in file.iter_tables():
            for start in range(0, table.num_rows, PIECE_ROWS):
                piece = table.slice(start, PIECE_ROWS).to_pandas()
                piece.columns = names
                n_lines = np.ones(len(piece), dtype=int)
                if self.is_csv:
                    for name in names:
                        n_lines += piece[name].str.count("\n").to_numpy(int)
                    if piece.iloc[-1].str.endswith("\n").any():
                        line = first + n_lines[:-1].sum()
                        raise CommandError(
                            f"{self}, line {line}: a quote is not closed. Close it, "
                            "or double quotes inside a value."
                        )
                    piece = _clean(piece, decimal_comma=self.separator != ",")
                last = first + np.cumsum(n_lines)
                piece.index = pd.Index(last - n_lines)
                first = int(last[-1])
                yield piece

    @contextmanager
    def open_writer(self) -> Iterator[Callable[[pd.DataFrame], None]]:
        """A function that appends rows; the file is complete or not there."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        if not self.is_csv and file_format(self.path) != "parquet":
            raise CommandError(f"{self}: tables are written as .csv or .parquet.")
        with ExitStack() as stack:
            stream: Any = sys.stdout.buffer
            if self.path != "-":
                temporary = stack.enter_context(atomic_write(self.path))
                packed = self.path.lower().endswith(COMPRESSED)
                codec = pa.Codec.detect(self.path).name if packed else None
                output = pa.output_stream(str(temporary), compression=codec)
                stream = stack.enter_context(output)
            writer: Any = None

            def write(piece: pd.DataFrame) -> None:
                nonlocal writer
                is_first, writer = writer is None, writer or stream
                if self.is_csv:
                    options = {"header": is_first, "sep": self.separator}
                    stream.write(piece.to_csv(index=False, **options).encode())
                    return
                table = pa.Table.from_pandas(piece, preserve_index=False)
                if is_first:
                    writer = stack.enter_context(ParquetWriter(stream, table.schema))
                writer.write_table(table.cast(writer.schema))

            yield write


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


def check_column(
    table: pd.DataFrame, name: str, file: TableFile, purpose: str = ""
) -> None:
    """Refuse a name that a table does not have."""
    if name in table.columns:
        return
    names = [str(column) for column in table.columns]
    by_lower_name = {each.lower(): each for each in names}
    matches = get_close_matches(name.strip().lower(), by_lower_name, n=1)
    suggestion = f"did you mean {by_lower_name[matches[0]]!r}? It" if matches else "it"
    known = ", ".join(map(repr, names[:20])) + ", …" * (len(names) > 20)
    raise CommandError(
        f"{file} has no column {name!r}{purpose}; {suggestion} has {known}."
    )


def check_output_paths(
    writes: Sequence[str | None], reads: Sequence[str], *, overwrite: bool
) -> None:
    """Refuse before hours of work what could not, or should not, be written after."""
    in_use = {Path(path).resolve() for path in reads if path != "-"}
    for path in writes:
        if path is None or path == "-":
            continue
        resolved, problem = Path(path).resolve(), ""
        if resolved in in_use:
            problem = "is read, or written, by this very command, and would be lost"
        elif resolved.exists() and not resolved.is_file():
            problem = "is a folder or device"
        elif os.path.lexists(path) and not overwrite:
            problem = "exists already; --overwrite replaces it"
        try:
            tempfile.TemporaryFile(dir=resolved.parent).close()
        except OSError as error:
            problem = problem or f"cannot be written: {error.strerror}"
        if problem:
            raise CommandError(f"{path} {problem}. Choose another name.")
        in_use.add(resolved)


# ------------------------------------------------------------------------- its columns


def find_columns(
    table: pd.DataFrame, file: TableFile, categories: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The names of columns by their kind, and why others are left out."""
    columns: dict[str, Any] = {kind: [] for kind in TREATMENTS}
    left_out = columns["left_out"] = {}
    for name in table.columns:
        kind = _column_kind(table[name], file, name in categories)
        if kind in TREATMENTS:
            columns[kind].append(name)
        else:
            left_out[name] = kind
    if len(left_out) == table.shape[1]:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        raise CommandError(f"{file} has no column to learn from ({reasons}).")
    return columns


def _column_kind(column: pd.Series, file: TableFile, is_category: bool) -> str:
    """A kind of TREATMENTS, or why it is left out."""
    given, types = column.dropna(), pd.api.types
    if not len(given):
        return "no values"
    if is_category or types.is_bool_dtype(given):
        return "categories"
    if types.is_datetime64_any_dtype(column):
        return "dates"
    text = given.astype(str).str.strip()
    n_different = text.nunique()
    if n_different == 1:
        return "one value only"
    if types.is_numeric_dtype(column) or types.is_timedelta64_dtype(column):
        return "numbers"
    advice = f"Correct it, leave it empty, or add --category {column.name}."
    if not text.str.match(CODE_PATTERN).any() and _is_mostly_numbers(text):
        parse_numbers(column, file, advice)  # refuses those that are not
        return "numbers"
    if text.str.match(ISO_DATE_PATTERN).mean() > 1 - MAX_MISTAKE_SHARE:
        parse_days(column, file, advice)
        return "dates"
    is_key = n_different > 20 and n_different > 0.5 * len(text)
    if not is_key and n_different <= max(MAX_CATEGORIES, 0.02 * len(text)):
        return "categories"
    if text.str.split().str.len().mean() >= MIN_WORDS:
        return "text"
    reason = f"{n_different} different texts, such as {text.iloc[0][:30]!r}"
    if text.str.match(AMBIGUOUS_DATE_PATTERN).mean() > 1 - MAX_MISTAKE_SHARE:
        reason += "; dates are understood where they are written 2026-11-17"
    return reason


def make_encoder(columns: dict[str, Any]) -> ColumnTransformer:
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
        *[(f"text {name}", text, name) for name in columns["text"]],
    ]
    return ColumnTransformer([step for step in steps if step[2]])


def parse_columns(
    columns: dict[str, Any], table: pd.DataFrame, file: TableFile
) -> pd.DataFrame:
    """The columns as numbers and text, as the encoder takes them."""
    parse = {"numbers": parse_numbers, "dates": parse_days}
    values: dict[str, np.ndarray] = {}
    for kind in TREATMENTS:
        for name in columns[kind]:
            check_column(table, name, file, ", which the model needs")
            values[name] = parse.get(kind, _parse_text)(table[name], file)
    return pd.DataFrame(values, index=table.index)


def _parse_text(column: pd.Series, file: TableFile) -> np.ndarray:
    """Trimmed text; a missing value has a name, as it may be informative."""
    cells = column.astype(object).where(column.notna(), "(missing)")
    return cells.astype(str).str.strip().to_numpy(dtype=object)


MEND = "Correct it, or leave it empty."


def parse_numbers(column: pd.Series, file: TableFile, advice: str = MEND) -> np.ndarray:
    """Finite numbers, NaN where none is given; durations in days."""
    if pd.api.types.is_timedelta64_dtype(column):
        return (column / pd.Timedelta(days=1)).to_numpy(np.float64, na_value=np.nan)
    numbers = pd.to_numeric(column, errors="coerce")
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    is_text = np.isnan(values) & column.notna().to_numpy()
    _refuse(column, is_text, file, f"is not a number. {advice}")
    too_large = f"is too large; numbers go up to {LARGEST:g}. {advice}"
    _refuse(column, np.abs(values) > LARGEST, file, too_large)
    return values


def parse_days(column: pd.Series, file: TableFile, advice: str = MEND) -> np.ndarray:
    """Days since 1970; times of the day as fractions."""
    parsed = column
    if not pd.api.types.is_datetime64_any_dtype(column):
        text = column.astype(object).where(column.isna(), column.astype(str))
        parsed = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
        wrong = (parsed.isna() & column.notna()).to_numpy()
        _refuse(column, wrong, file, f"is not a date such as 2026-11-17. {advice}")
    if getattr(parsed.dtype, "tz", None) is not None:
        parsed = parsed.dt.tz_convert("UTC").dt.tz_localize(None)
    days = (parsed - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64, na_value=np.nan)


def _refuse(
    column: pd.Series, wrong: np.ndarray, file: TableFile, problem: str
) -> None:
    """An error for the first of the wrong cells, if there are any."""
    for first in np.flatnonzero(wrong)[:1]:
        raise CommandError(
            f"{file}, {file.unit} {column.index[first]}, column {column.name!r}: "
            f"{str(column.iloc[first])!r} {problem}"
        )


def _is_mostly_numbers(text: pd.Series) -> bool:
    """Whether values that are no numbers are so rare that they are mistakes."""
    wrong = pd.to_numeric(text, errors="coerce").isna()
    return bool(wrong.mean() <= MAX_MISTAKE_SHARE and (~wrong).sum() > 1)


# -------------------------------------------------------------------------- its target


def guess_task(y: pd.Series) -> tuple[str, str]:
    """Regression or classification, and why."""
    given = y.dropna()
    if pd.api.types.is_bool_dtype(given):
        return "classification", "the target is true or false"
    text = given.astype(str).str.strip()
    numbers = pd.to_numeric(text, errors="coerce")
    n_different = given.nunique()
    is_few = n_different <= MAX_GUESSED_CLASSES
    if numbers.isna().any() and (is_few or not _is_mostly_numbers(text)):
        return "classification", "the target is text"
    if text.str.match(CODE_PATTERN).any():
        return "classification", "the target is codes that begin with 0"
    if n_different == 2 or (is_few and (numbers == numbers.round()).all()):
        return "classification", f"the target has {n_different} different values"
    return "regression", f"the target has {n_different} different numbers"


def check_target(y: pd.Series, file: TableFile) -> None:
    """Refuse a target with too few values, or with a single one."""
    if len(y) < MIN_ROWS:
        raise CommandError(
            f"{file} has {len(y)} rows with a value of {y.name!r}; {MIN_ROWS} are "
            "needed to learn from, and to say how well."
        )
    if y.astype(str).nunique() < 2:
        raise CommandError(f"{file}: all rows have the same {y.name!r}, {y.iloc[0]}.")


def parse_target(y: pd.Series, task: str, file: TableFile) -> np.ndarray:
    """Numbers, or labels."""
    if task == "regression":
        advice = "Correct it, leave it empty, or fit classes: --task classification."
        return parse_numbers(y, file, advice)
    labels = as_labels(y)
    counts = np.unique(labels, return_counts=True)[1]
    n_classes, n_rows = len(counts), len(labels)
    too_many = n_classes > MAX_GUESSED_CLASSES and 2 * n_classes > n_rows
    if too_many or np.sum(counts > 1) < 2:
        raise CommandError(
            f"{file}: column {y.name!r} has {n_classes} classes in {n_rows} rows, "
            f"such as {str(labels[0])[:30]!r}; at least 2 classes of two rows or more "
            "are needed, and numbers may have digits and a decimal point only. "
            "Choose another target, add rows, or merge rare classes."
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


def as_known_labels(y: pd.Series, classes: np.ndarray, file: TableFile) -> np.ndarray:
    """Labels as the text of a model's classes; some must be among them."""
    found = as_labels(y) if classes.dtype.kind == "i" else y.astype(str).str.strip()
    text = np.asarray(found).astype(str)
    if not np.isin(text, classes.astype(str)).any():
        raise CommandError(
            f"{file}: no value of {y.name!r}, such as {str(text[0])!r}, is a class of "
            f"the model ({', '.join(map(repr, classes[:5].tolist()))})."
        )
    return text
