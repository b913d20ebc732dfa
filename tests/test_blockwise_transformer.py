"""Transformers on rows that are not in memory: one pass, lazily transformed rows."""

import pickle

import numpy as np
import pytest
from lists import skip_older_array_api
from sklearn.decomposition import IncrementalPCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from nystrom import BlockwiseTransformer, KernelRidge
from nystrom import sources as nystrom_sources
from nystrom.estimators import blockwise_transformer
from nystrom.sources import DenseRows, TransformedRows

RIDGE = {"kernel": "rbf", "gamma": 0.2, "n_landmarks": 50, "random_state": 0}


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((3000, 4)) * [1, 10, 100, 0.1] + [5, 0, 7, 1]
    return X, np.sin(X[:, 0]) + X[:, 1] / 10


def model():
    return make_pipeline(BlockwiseTransformer(StandardScaler()), KernelRidge(**RIDGE))


@parametrize_with_checks(
    [BlockwiseTransformer(StandardScaler()), BlockwiseTransformer(RobustScaler())]
)
def test_estimator_checks(estimator, check):
    skip_older_array_api(check)
    check(estimator)


@pytest.fixture(params=["npy", "parquet", "path", "source"])
def stored(request, rows, tmp_path):
    X, y = rows
    if request.param == "source":
        return DenseRows(X), y
    path = tmp_path / f"t.{'npy' if request.param == 'npy' else 'parquet'}"
    if request.param == "npy":
        np.save(path, np.column_stack([X, y]))
        return nystrom_sources.open(path, target=-1), None
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    if request.param == "path":
        table.to_parquet(path)
        return path, y
    table.assign(y=y).to_parquet(path, row_group_size=700)
    return nystrom_sources.open(path, target="y"), None


def test_a_pipeline_on_files_is_that_of_rows_in_memory(stored, rows, monkeypatch):
    monkeypatch.setattr(blockwise_transformer, "BLOCK_ROWS", 1000)
    X, y = rows
    given, targets = stored
    found = model().fit(given, targets)
    expected = make_pipeline(StandardScaler(), KernelRidge(**RIDGE)).fit(X, y)
    np.testing.assert_allclose(found.predict(given), expected.predict(X), rtol=1e-6)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-6)
    score = found.score(given, targets)
    np.testing.assert_allclose(score, expected.score(X, y), rtol=1e-6)
    scaler = found[0].transformer_
    np.testing.assert_allclose(scaler.mean_, X.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(scaler.scale_, X.std(axis=0), rtol=1e-9)
    assert found[0].n_samples_fit_ == 3000
    assert found[0].n_features_in_ == 4


def test_rows_are_transformed_as_they_are_read(rows):
    X, _ = rows
    source = DenseRows(X)
    lazy = BlockwiseTransformer(MaxAbsScaler()).fit_transform(source)
    assert isinstance(lazy, TransformedRows)
    expected = MaxAbsScaler().fit_transform(X)
    np.testing.assert_array_equal(lazy.rows(10, 20), expected[10:20])
    np.testing.assert_array_equal(lazy.take([7, 3]), expected[[7, 3]])
    again = pickle.loads(pickle.dumps(lazy))
    assert again.fingerprint() == lazy.fingerprint()
    other = BlockwiseTransformer(StandardScaler()).fit_transform(source)
    assert other.fingerprint() != lazy.fingerprint()


def test_without_partial_fit_a_stated_sample_is_fitted(rows):
    X, _ = rows
    transformer = BlockwiseTransformer(RobustScaler(), subsample=500, random_state=0)
    found = transformer.fit(DenseRows(X))
    assert found.n_samples_fit_ == 500
    expected = np.median(X, axis=0)
    np.testing.assert_allclose(
        found.transformer_.center_, expected, atol=0.2 * X.std(axis=0).max()
    )
    assert not np.array_equal(found.transformer_.center_, expected)
    again = transformer.fit(DenseRows(X)).transformer_.center_
    np.testing.assert_array_equal(again, found.transformer_.center_)
    whole = transformer.set_params(subsample=5000).fit(DenseRows(X))
    np.testing.assert_allclose(whole.transformer_.center_, expected)


def test_weights_count(rows):
    X, _ = rows
    weights = np.arange(3000) % 3.0
    source = DenseRows(X, weights)
    found = BlockwiseTransformer(StandardScaler()).fit(source).transformer_
    expected = StandardScaler().fit(X, sample_weight=weights)
    np.testing.assert_allclose(found.mean_, expected.mean_)
    lazy = BlockwiseTransformer(StandardScaler()).fit_transform(source)
    np.testing.assert_array_equal(lazy.weights, weights)


def test_other_widths_and_sparse_rows(rows):
    X, y = rows
    bins = KBinsDiscretizer(5, quantile_method="averaged_inverted_cdf")
    for transformer, width in ((IncrementalPCA(2), 2), (bins, 20)):
        pipeline = make_pipeline(
            BlockwiseTransformer(transformer), KernelRidge(**RIDGE)
        )
        pipeline.fit(DenseRows(X), y)
        assert pipeline[-1].n_features_in_ == width
        np.testing.assert_allclose(
            pipeline.predict(DenseRows(X)), pipeline.predict(X), rtol=1e-9
        )


def test_dask_arrays_stay_lazy(rows):
    da = pytest.importorskip("dask.array")
    X, y = rows
    chunked = da.from_array(X, chunks=(700, 4))
    fitted = model().fit(chunked, y)
    lazy = fitted.predict(chunked)
    assert hasattr(lazy, "compute")
    expected = model().fit(DenseRows(X), y).predict(X)
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-9)


def test_in_memory_it_is_the_transformer(rows):
    X, _ = rows
    found = BlockwiseTransformer(StandardScaler())
    np.testing.assert_array_equal(
        found.fit_transform(X), StandardScaler().fit_transform(X)
    )
    np.testing.assert_allclose(found.inverse_transform(found.transform(X)), X)
    assert found.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    assert not hasattr(BlockwiseTransformer(IncrementalPCA()), "no_such_method")
    with pytest.raises(ValueError, match="subsample"):
        BlockwiseTransformer(StandardScaler(), subsample=0).fit(X)
