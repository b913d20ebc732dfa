"""
How do I deploy a model without Python?
=======================================

``export_onnx`` writes a fitted model as an ONNX graph, which runs in C++, Java or a
browser.

When not to use it: inside Python, ``save`` and ``load`` keep the estimator itself, with
all its methods.
"""

import importlib.util

import numpy as np

from nystrom import KernelRidge, export_onnx

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (5000, 2))
y = np.sin(X[:, 0]) * X[:, 1]
model = KernelRidge(0.01, kernel="rbf", gamma=0.5, n_landmarks=100, random_state=0)
model.fit(X, y)

# %%
# The graph and the model give the same predictions up to float32 rounding.
if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime"):
    import onnxruntime

    graph = export_onnx(model)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    (predicted,) = session.run(None, {"X": X[:1000].astype(np.float32)})
    print(f"{len(graph.SerializeToString()) / 1e3:.0f} kB")
    print(
        "largest difference:", np.abs(predicted.ravel() - model.predict(X[:1000])).max()
    )
else:
    print("onnx and onnxruntime are not installed.")
