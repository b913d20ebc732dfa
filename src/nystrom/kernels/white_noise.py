"""White noise in scikit-learn's Gaussian-process kernels.

A `WhiteKernel` adds to k(x, x) of a row with itself and to no other value: it is the
noise of the targets, not a similarity of rows. Landmarks cannot stand for it. In ridge
regression it belongs to alpha: (K + σ²I) + αI = K + (σ² + α)I.
"""

from __future__ import annotations

from typing import Any

from sklearn.gaussian_process import kernels as gp


def split_white_noise(kernel: Any) -> tuple[Any, float]:
    """A kernel without its white noise, and the variance of that noise.

    Noise that is a term of a sum is split off, times constant factors. Anything else
    than a Gaussian-process kernel is returned as it is, with no noise.
    """
    if not has_white_noise(kernel):
        return kernel, 0.0
    signal, noise = _split(kernel, kernel)
    if signal is None:
        raise ValueError(
            f"kernel={kernel} is white noise alone, from which nothing can be "
            "predicted. Add a kernel to it, such as RBF() + WhiteKernel()."
        )
    return signal, noise


def has_white_noise(kernel: Any) -> bool:
    """Whether a Gaussian-process kernel has a WhiteKernel anywhere in it."""
    if not isinstance(kernel, gp.Kernel):
        return False
    parts = [kernel, *kernel.get_params(deep=True).values()]
    # A CompoundKernel keeps its kernels in a list.
    parts += getattr(kernel, "kernels", [])
    return any(isinstance(part, gp.WhiteKernel) for part in parts)


def refuse_white_noise(kernel: Any, caller: str) -> None:
    """Refuse white noise where there is no ridge for it."""
    if not has_white_noise(kernel):
        return
    signal, _ = split_white_noise(kernel)
    raise ValueError(
        f"kernel={kernel} has white noise, which adds to k(x, x) alone and is no "
        f"similarity of two rows; {caller} has no alpha that it could be added to, as "
        f"KernelRidge has. Leave it out: kernel={signal}."
    )


def _split(kernel: Any, whole: Any) -> tuple[Any, float]:
    """The signal, None where there is none, and the variance of the noise."""
    if isinstance(kernel, gp.WhiteKernel):
        return None, float(kernel.noise_level)
    if not has_white_noise(kernel):
        return kernel, 0.0
    if isinstance(kernel, gp.Sum):
        left, right = _split(kernel.k1, whole), _split(kernel.k2, whole)
        signals = [part for part, _ in (left, right) if part is not None]
        signal = gp.Sum(*signals) if len(signals) == 2 else next(iter(signals), None)
        return signal, left[1] + right[1]
    if isinstance(kernel, gp.Product):
        for factor, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            value = _constant_value(factor)
            if value is not None:
                signal, noise = _split(other, whole)
                scaled = None if signal is None else gp.Product(factor, signal)
                return scaled, value * noise
    raise ValueError(
        f"kernel={whole}: its WhiteKernel is multiplied by a kernel that is not "
        f"constant, or raised to a power, inside {kernel}, and cannot be moved to "
        "alpha. Write the noise as a term of a sum, kernel + WhiteKernel(...), or "
        "leave it out and choose alpha."
    )


def _constant_value(kernel: Any) -> float | None:
    """The one value of a constant kernel; None for any other."""
    if isinstance(kernel, gp.ConstantKernel):
        return float(kernel.constant_value)
    if isinstance(kernel, gp.Exponentiation):
        value = _constant_value(kernel.kernel)
        return None if value is None else value**kernel.exponent
    if isinstance(kernel, (gp.Sum, gp.Product)):
        left, right = _constant_value(kernel.k1), _constant_value(kernel.k2)
        if left is None or right is None:
            return None
        return left + right if isinstance(kernel, gp.Sum) else left * right
    return None
