"""KernelRidgeClassifierCV: every score against refits, scored by scikit-learn."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    make_scorer,
    r2_score,
)
from sklearn.model_selection import LeaveOneOut, ShuffleSplit, StratifiedKFold

from nystrom import (
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Nystroem,
)
from nystrom.estimators._search import DEFAULT_ALPHAS, random_folds
from nystrom.models.calibration import fit_probability_link

N_ROWS, GAMMA = 160, 0.3
ALPHAS = np.array([1e-2, 1.0, 30.0])
FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)

narrow = pytest.mark.filterwarnings("ignore:The best of (alphas|gammas)")


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 2))


def classes_of(X, rng, n_classes):
    """Classes that overlap, of different sizes."""
    angle = np.arctan2(*(X[:, :2] + 0.5 * rng.standard_normal((len(X), 2))).T)
    cuts = np.quantile(angle, np.linspace(0, 1, n_classes + 1)[1:-1] ** 1.5)
    return np.digitize(angle, cuts)


def model(seed, alphas=ALPHAS, **options):
    options = {"gamma": GAMMA, "n_landmarks": 15, "cv": FOLDS} | options
    return KernelRidgeClassifierCV(alphas, random_state=seed, **options)


def features(indices, X):
    made = Nystroem(gamma=GAMMA, n_components=len(indices), sampler=indices)
    return made.fit(X).transform(X)


def held_out(Z, y, alpha, splits, w=None, class_weight=None):
    """Decisions of each test part by a fit to its train part."""
    for train, test in splits:
        ridge = RidgeClassifier(alpha, solver="cholesky", class_weight=class_weight)
        ridge.fit(Z[train], y[train], None if w is None else w[train])
        yield test, ridge.decision_function(Z[test]), ridge.predict(Z[test])


SCORES = {"accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}


# --- scores ---------------------------------------------------------------------------


@narrow
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("scoring", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_refits(X, rng, seed, scoring, n_classes, weighted):
    y = classes_of(X, rng, n_classes)
    w = rng.integers(0, 4, N_ROWS).astype(float) if weighted else np.ones(N_ROWS)
    fitted = model(seed, scoring=scoring).fit(X, y, w if weighted else None)
    Z, splits = features(fitted.landmarks_.indices, X), list(FOLDS.split(X, y))
    for alpha, score in zip(ALPHAS, fitted.scores_, strict=True):
        expected = [
            SCORES[scoring](y[test], told, sample_weight=w[test])
            for test, _, told in held_out(Z, y, alpha, splits, w)
        ]
        assert score == pytest.approx(np.mean(expected), abs=1e-12)
    assert fitted.best_score_ == fitted.scores_.max()
    best = ALPHAS[fitted.scores_ == fitted.best_score_]
    assert fitted.alpha_ == best.max()  # of equally good ones the largest


@narrow
@pytest.mark.parametrize("class_weight", ["balanced", {0: 4.0}])
def test_weights_of_classes_are_in_the_fits_and_not_in_the_scores(
    X, rng, seed, class_weight
):
    y = classes_of(X, rng, 3)
    fitted = model(seed, class_weight=class_weight).fit(X, y)
    Z, splits = features(fitted.landmarks_.indices, X), list(FOLDS.split(X, y))
    # "balanced" is about all rows, and not those of a fold.
    given = {c: N_ROWS / (3 * np.sum(y == c)) for c in range(3)}
    given = given if class_weight == "balanced" else class_weight
    for alpha, score in zip(ALPHAS, fitted.scores_, strict=True):
        parts = held_out(Z, y, alpha, splits, class_weight=given)
        expected = [accuracy_score(y[test], told) for test, _, told in parts]
        assert score == pytest.approx(np.mean(expected), abs=1e-12)


@narrow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cv", [FOLDS, ShuffleSplit(3, random_state=0)], ids=str)
def test_log_loss_is_that_of_refits_with_one_link_for_all_folds(
    X, rng, seed, n_classes, cv
):
    y = classes_of(X, rng, n_classes)
    fitted = model(seed, scoring="log_loss", cv=cv).fit(X, y)
    Z, splits = features(fitted.landmarks_.indices, X), list(cv.split(X, y))
    Y = 2.0 * (y[:, None] == np.arange(n_classes)) - 1
    Y = Y[:, 1:] if n_classes == 2 else Y
    for alpha, score in zip(ALPHAS, fitted.scores_, strict=True):
        parts = list(held_out(Z, y, alpha, splits))
        values = [F.reshape(len(F), -1) for _, F, _ in parts]
        tests = [test for test, _, _ in parts]
        rows = np.concatenate(tests)
        link = fit_probability_link(np.concatenate(values), Y[rows], np.ones(len(rows)))
        losses = [
            np.mean(link.losses(F, y[test]))
            for F, test in zip(values, tests, strict=True)
        ]
        assert score == pytest.approx(-np.mean(losses), abs=1e-6)
    again = model(seed, scoring="neg_log_loss", cv=cv).fit(X, y)
    np.testing.assert_array_equal(again.scores_, fitted.scores_)


@narrow
@pytest.mark.parametrize("cv", ["loo", LeaveOneOut()], ids=["name", "splitter"])
def test_leave_one_out_is_a_fit_without_each_row(X, rng, seed, cv):
    X = X[:50]
    y = classes_of(X, rng, 3)
    fitted = model(seed, cv=cv, scoring="balanced_accuracy").fit(X, y)
    Z, splits = features(fitted.landmarks_.indices, X), list(LeaveOneOut().split(X))
    for alpha, score in zip(ALPHAS, fitted.scores_, strict=True):
        told = [told[0] for _, _, told in held_out(Z, y, alpha, splits)]
        assert score == pytest.approx(balanced_accuracy_score(y, told), abs=1e-12)


@narrow
@pytest.mark.parametrize("cv", [FOLDS, "loo"], ids=["folds", "loo"])
@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "log_loss"])
def test_fewer_landmarks_score_as_they_would_alone(X, rng, seed, cv, scoring):
    y = classes_of(X, rng, 3)
    both = model(seed, n_landmarks=[6, 15], cv=cv, scoring=scoring).fit(X, y)
    assert both.scores_.shape == (2, 3)
    np.testing.assert_array_equal(both.n_landmarks_path_, [6, 15])
    full = model(seed, n_landmarks=[15], cv=cv, scoring=scoring).fit(X, y)
    order = full.landmarks_.indices
    for place, size in enumerate((6, 15)):
        alone = model(seed, sampler=order[:size], cv=cv, scoring=scoring).fit(X, y)
        np.testing.assert_allclose(both.scores_[place], alone.scores_, atol=1e-6)
    assert both.best_score_ == both.scores_.max()


@narrow
def test_the_fit_is_that_of_the_classifier_with_what_was_chosen(X, rng, seed):
    y = classes_of(X, rng, 3)
    w = rng.uniform(0.5, 2, N_ROWS)
    found = model(seed, n_landmarks=[6, 15]).fit(X, y, w)
    same = KernelRidgeClassifier(
        found.alpha_, kernel="rbf", gamma=GAMMA, random_state=seed
    )
    same.set_params(n_landmarks=found.n_landmarks_, sampler=found.landmarks_.indices)
    same.fit(X, y, w)
    np.testing.assert_allclose(
        found.decision_function(X), same.decision_function(X), atol=1e-6
    )
    np.testing.assert_allclose(found.predict_proba(X), same.predict_proba(X), atol=1e-4)


# --- scorers --------------------------------------------------------------------------


@narrow
@pytest.mark.parametrize("cv", [FOLDS, "loo"], ids=["folds", "loo"])
def test_a_scorer_says_what_sums_say(X, rng, seed, cv):
    y, w = classes_of(X, rng, 2), rng.integers(0, 3, N_ROWS)
    by_sums = model(seed, cv=cv).fit(X, y, w)
    asked = make_scorer(accuracy_score)
    by_scorer = model(seed, cv=cv, scoring=asked).fit(X, y, w)
    np.testing.assert_allclose(by_scorer.scores_, by_sums.scores_, atol=1e-12)
    by_sums = model(seed, cv=cv, scoring="log_loss").fit(X, y)
    by_scorer = model(seed, cv=cv, scoring=_loss).fit(X, y)
    np.testing.assert_allclose(by_scorer.scores_, by_sums.scores_, atol=1e-9)


def _loss(estimator, X, y):
    P = estimator.predict_proba(X)
    own = np.searchsorted(estimator.classes_, y)
    return np.mean(np.log(P[np.arange(len(y)), own]))


@narrow
@pytest.mark.parametrize("cv", [FOLDS.get_n_splits(), "loo", None])
@pytest.mark.parametrize("apart", [False, True])
def test_regression_is_scored_by_scorers(X, rng, seed, cv, apart):
    n = 40
    X = X[:n]
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] + rng.standard_normal(n)])
    options = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": 15, "cv": cv}
    options |= {"random_state": seed, "alpha_per_target": apart, "scoring": "r2"}
    fitted = KernelRidgeCV(ALPHAS, **options).fit(X, Y)
    Z = features(fitted.landmarks_.indices, X)
    splits = [[np.setdiff1d(np.arange(n), i), [i]] for i in range(n)]
    folds = [splits] if cv in ("loo", None) else random_folds(n, cv, seed)
    for alpha, score in zip(ALPHAS, fitted.scores_, strict=True):
        scores = []
        for fold in folds:
            pairs = splits if cv in ("loo", None) else [fold]
            told = np.concatenate(
                [
                    Ridge(alpha, fit_intercept=False, solver="cholesky")
                    .fit(Z[train], Y[train])
                    .predict(Z[test])
                    for train, test in pairs
                ]
            )
            rows = np.concatenate([test for _, test in pairs])
            kind = "raw_values" if apart else "uniform_average"
            scores.append(r2_score(Y[rows], told, multioutput=kind))
        np.testing.assert_allclose(score, np.mean(scores, axis=0), atol=1e-9)


def test_a_scorer_without_weights_is_refused_where_there_are_some(X, rng, seed):
    with pytest.raises(ValueError, match="takes no sample_weight"):
        model(seed, scoring=_loss).fit(
            X, classes_of(X, rng, 2), rng.uniform(1, 2, N_ROWS)
        )


# --- folds ----------------------------------------------------------------------------


def test_every_fold_has_its_share_of_each_class(rng, seed):
    y = np.repeat([0, 1, 2], [50, 33, 7])[rng.permutation(90)]
    folds = random_folds(90, 5, seed, y)
    counts = np.array([np.bincount(y[test], minlength=3) for _, test in folds])
    assert np.ptp(counts, axis=0).max() <= 1
    assert np.ptp(counts.sum(axis=1)) == 0
    tested = np.concatenate([test for _, test in folds])
    np.testing.assert_array_equal(np.sort(tested), range(90))


# --- grids that nobody has to give, and their ends ------------------------------------


def test_default_grids_find_what_is_good(seed):
    """Rings, at a scale far from 1: nothing is given."""
    rng = np.random.default_rng(seed)
    X = 1e3 * rng.standard_normal((600, 2))
    y = np.linalg.norm(X, axis=1) > 1200
    found = KernelRidgeClassifierCV(n_landmarks=60, random_state=seed)
    found.fit(X[:300], y[:300])
    assert found.score(X[300:], y[300:]) > 0.93
    np.testing.assert_array_equal(found.alphas_, DEFAULT_ALPHAS)
    scale = 1 / (2 * X[:300].var())
    np.testing.assert_allclose(found.gammas_, scale * 4.0 ** np.arange(-2, 3))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_default_alphas_follow_the_scale_of_the_kernel(rng, seed, scale):
    X = rng.standard_normal((120, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(120)
    near, far = (
        KernelRidgeCV(kernel="linear", n_landmarks=50).fit(c * X, y)
        for c in (1.0, scale)
    )
    np.testing.assert_allclose(far.alphas_, near.alphas_ * scale**2, rtol=1e-9)
    np.testing.assert_allclose(far.predict(scale * X), near.predict(X), atol=1e-6)


def noisy(rng, n=300):
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize(
    ("alphas", "end", "direction"),
    [([30.0, 100.0, 1e3], "smallest", "smaller"), ([1e-9, 1e-8, 1e-6], None, None)],
    ids=["too large", "flat"],
)
def test_the_end_of_a_grid_of_alphas(rng, seed, alphas, end, direction):
    X, y = noisy(rng)
    made = KernelRidgeCV(alphas, kernel="rbf", gamma=2.0, n_landmarks=20)
    if end is None:
        made.fit(X, y)
        return
    text = f"The best of alphas, 30, is the {end} of the grid, .* {direction} ones.*"
    with pytest.warns(UserWarning, match=text) as told:
        made.fit(X, y)
    assert len(told) == 1
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    ("gammas", "direction"),
    [((1e-3, 1e-2, 1e-1), "larger"), ((30.0, 300.0, 3000.0), "smaller")],
)
def test_the_end_of_a_grid_of_widths(rng, seed, gammas, direction):
    X, y = noisy(rng)
    # So few that narrow kernels miss most of the rows, by more than chance.
    options = {"kernel": "rbf", "n_landmarks": 12, "random_state": seed}
    text = f"best of gammas, .* towards {direction} ones"
    for make in (KernelRidgeCV, KernelRidgeClassifierCV):
        made = make([1e-3], gammas=gammas, **options)
        with pytest.warns(UserWarning, match=text):
            made.fit(X, y if make is KernelRidgeCV else y > 0)


def test_no_word_where_nothing_is_amiss(rng, seed):
    X, y = noisy(rng)
    options = {"kernel": "rbf", "n_landmarks": 20, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRidgeCV(gamma=2.0, **options).fit(X, y)
        KernelRidgeCV([30.0, 100.0], gamma=2.0, **options).fit(X, y)  # no grid
        KernelRidgeCV([100.0], gammas=["scale", "median", 1e-3], **options).fit(X, y)
        KernelRidgeCV([30.0, 100.0, 1e3], gamma=2.0, **options).fit(X[:60], y[:60])
        KernelRidgeClassifierCV(**options).fit(X, y > 0)


@pytest.mark.parametrize("scoring", ["accuracy", "log_loss", "f1_macro"])
def test_kernels_that_are_not_definite(rng, scoring):
    """Their factor may have fewer columns than one that is made of the same rows anew.

    A third of such rows showed it.
    """
    options = {"n_landmarks": 17, "sampler": "uniform", "cv": 3, "scoring": scoring}
    for _ in range(20):
        X, y = np.abs(rng.standard_normal((18, 9))), np.arange(18) % 2
        X[0] *= 1e3
        model = KernelRidgeClassifierCV([1e-5, 1.0], kernel="additive_chi2", **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the kernel is not definite
            model.fit(X, y)
        assert np.isfinite(model.scores_).all()
        assert np.isfinite(model.predict_proba(X)).all()
