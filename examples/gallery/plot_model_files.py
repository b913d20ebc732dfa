"""
How do I save a model without pickle?
=====================================

``save`` writes a file of names and arrays. Loading it runs no code, unlike a
pickle, and works for pipelines and searches.

When not to use it: to predict without Python, export the model to ONNX instead.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nystrom import KernelRidgeClassifier, load, save

X, y = load_digits(return_X_y=True)
model = make_pipeline(
    StandardScaler(),
    KernelRidgeClassifier(0.1, gamma=0.01, n_landmarks=200, random_state=0),
).fit(X[:1200], y[:1200])

path = Path(tempfile.mkdtemp()) / "digits.nystrom"
save(model, path)
loaded = load(path)
print(f"{path.stat().st_size / 1e6:.1f} MB")
print(np.array_equal(loaded.predict_proba(X), model.predict_proba(X)))

# %%
# A file that needs any other function is refused unless you trust it by name:
from sklearn.metrics.pairwise import rbf_kernel  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402

save(FunctionTransformer(rbf_kernel), path)
try:
    load(path)
except ValueError as error:
    print(error)
