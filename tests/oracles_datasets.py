"""Preparing a data set, slowly and obviously."""

from __future__ import annotations

import numpy as np

from nystrom.datasets import cod_rna, covertype, year_prediction_msd

ADULT_NUMERIC = {0: "age", 2: "fnlwgt", 4: "education-num"} | {
    10: "capital-gain",
    11: "capital-loss",
    12: "hours-per-week",
}


def numeric_oracle(name, X, y):
    """The numbers that a raw table stands for."""
    if name == "adult":
        return adult_oracle(X, y)
    columns = {
        "cod_rna": cod_rna.COLUMNS,
        "covertype": covertype.COLUMNS,
        "year_prediction_msd": year_prediction_msd.COLUMNS,
    }[name]
    return X.astype(float), y, list(columns)


def adult_oracle(X, y):
    """Numeric columns first, then "column=word" for all words, sorted, of a column."""
    from nystrom.datasets.adult_columns import CATEGORIES, COLUMNS

    names = list(ADULT_NUMERIC.values())
    for column in COLUMNS:
        names += [f"{column}={word}" for word in sorted(CATEGORIES.get(column, ()))]
    table = np.zeros((len(X), len(names)))
    for i, row in enumerate(X):
        for j, word in enumerate(row):
            if j in ADULT_NUMERIC:
                table[i, names.index(ADULT_NUMERIC[j])] = float(word)
            else:
                table[i, names.index(f"{COLUMNS[j]}={word}")] = 1
    return table, np.array([label == ">50K" for label in y]).astype(int), names


def standardised_oracle(X):
    """Column by column, in float64."""
    result = np.zeros(X.shape)
    for j, column in enumerate(X.T):
        if len(set(column)) > 1:
            result[:, j] = (column - column.mean()) / column.std()
    return result
