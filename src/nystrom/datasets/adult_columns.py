"""The columns of Adult: what each can hold, and how it becomes numbers.

The categories are fixed rather than found, so that a part of the set has the same
columns as the whole. "?", which the files write for an unknown value, is a category as
any other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .archive import NumericTable
from .preprocessing import finite_numbers

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
INCOMES = ("<=50K", ">50K")
_WORDS = {
    "workclass": (
        "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc "
        "State-gov Without-pay"
    ),
    "education": (
        "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors "
        "Doctorate HS-grad Masters Preschool Prof-school Some-college"
    ),
    "marital-status": (
        "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent "
        "Never-married Separated Widowed"
    ),
    "occupation": (
        "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing "
        "Handlers-cleaners Machine-op-inspct Other-service Priv-house-serv "
        "Prof-specialty Protective-serv Sales Tech-support Transport-moving"
    ),
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native-country": (
        "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador "
        "England France Germany Greece Guatemala Haiti Holand-Netherlands Honduras "
        "Hong Hungary India Iran Ireland Italy Jamaica Japan Laos Mexico Nicaragua "
        "Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico "
        "Scotland South Taiwan Thailand Trinadad&Tobago United-States Vietnam "
        "Yugoslavia"
    ),
}
#: The categories of each categorical column, in the order of their indicators.
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    column: tuple(words.split()) for column, words in _WORDS.items()
}
NUMERIC = tuple(column for column in COLUMNS if column not in CATEGORIES)
FEATURE_NAMES = (
    *NUMERIC,
    *(f"{column}={word}" for column, words in CATEGORIES.items() for word in words),
)


def as_numbers(X: np.ndarray, y: np.ndarray) -> NumericTable:
    """The numeric columns, then an indicator for each category of each other one."""
    if X.dtype.kind != "U" or y.dtype.kind != "U":
        raise ValueError(
            f"X and y of Adult are of type {X.dtype} and {y.dtype}; text is needed, as "
            f"it is in the files: {', '.join(COLUMNS)} and the income."
        )
    result = np.empty((len(X), len(FEATURE_NAMES)), np.float32)
    for j, column in enumerate(NUMERIC):
        result[:, j] = _numbers(column, X[:, COLUMNS.index(column)])
    first = len(NUMERIC)
    for column, words in CATEGORIES.items():
        codes = _codes(column, X[:, COLUMNS.index(column)], words)
        result[:, first : first + len(words)] = codes[:, None] == np.arange(len(words))
        first += len(words)
    # The test file ends its labels with a full stop.
    incomes = np.char.rstrip(y, " .")
    return result, _codes("the income", incomes, INCOMES), [*FEATURE_NAMES]


def _numbers(column: str, values: np.ndarray) -> np.ndarray:
    try:
        return finite_numbers(values.astype(np.float64), f"{column} of Adult")
    except ValueError as error:
        raise ValueError(f"The column {column} of Adult: {error}") from error


def _codes(column: str, values: np.ndarray, words: tuple[str, ...]) -> np.ndarray:
    """The place of each value in `words`, which are sorted."""
    found, codes = np.unique(np.char.strip(values), return_inverse=True)
    unknown = [str(word) for word in found if word not in words]
    if unknown:
        raise ValueError(
            f"{column} of Adult has the values {unknown[:3]}, which the set does not "
            f"have. Allowed: {', '.join(words)}."
        )
    return np.array([words.index(word) for word in found], np.int64)[codes]
