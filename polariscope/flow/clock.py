r"""The clock of a path: log t as a function of path time, and back.

t = ∫ (1 + e^z) dτ, with z up to 10⁶ and more, so only log t is ever formed:

    log t(x) = log ∫ exp φ(x) dx - log ‖β*‖,    φ(x) = log(1 + e^z) + x,    x = log(1 + τ̂).

φ increases, and steeply: almost all of t comes from the last few units of φ before x. On each step of the path z is
known as a Chebyshev polynomial, and Gauss-Legendre nodes are placed by how far φ has fallen.
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev, legendre
from scipy.special import expit, logsumexp

DEGREE = 9
POINTS = 0.5 - 0.5 * np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)
"""Chebyshev points of a step, as fractions of it; both ends are among them."""
_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(2 * POINTS - 1, DEGREE))
_DERIVATIVE = np.pad(chebyshev.chebder(np.eye(DEGREE + 1), axis=0), ((0, 1), (0, 0)))
FALLS = np.array([0.0, 2.0, 5.0, 10.0, 20.0, 40.0])
"""How far φ has fallen at the ends of the panels of a quadrature, backwards from its upper limit."""
_NODES, _WEIGHTS = (0.5 * (v + s) for v, s in zip(legendre.leggauss(10), (1.0, 0.0), strict=True))
_EPS = np.finfo(float).eps


def coefficients(values: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients of functions known at `POINTS`, which are on axis 1 of ``values`` (m, DEGREE + 1, …)."""
    return np.einsum("kp,mp...->mk...", _COEFFICIENTS, values)


@dataclass(frozen=True, eq=False)
class Clock:
    """log t along a path of m steps.

    Attributes:
        x: the knots, (m + 1,).
        z: Chebyshev coefficients of the margin on each step, (m, DEGREE + 1).
        norm: ‖β*‖.
        log_t: log t at the knots, (m + 1,); -inf at the first.
    """

    x: np.ndarray
    z: np.ndarray
    norm: float
    log_t: np.ndarray

    def basis(self, step: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The Chebyshev polynomials of the steps at points of them, (…, DEGREE + 1)."""
        left, right = self.x[step], self.x[step + 1]
        at = np.clip(2 * (x - left) / (right - left) - 1, -1.0, 1.0)
        return np.cos(np.arange(DEGREE + 1) * np.arccos(at)[..., None])

    def rate(self, step: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """φ and dφ/dx at points of the steps."""
        basis, z = self.basis(step, x), self.z[step]
        slope = (basis * (z @ _DERIVATIVE.T)).sum(-1) * 2 / (self.x[step + 1] - self.x[step])
        z = (basis * z).sum(-1)
        return np.logaddexp(0.0, z) + x, expit(z) * slope + 1.0

    def log_piece(self, step: np.ndarray, x: np.ndarray) -> np.ndarray:
        """log ∫ exp φ - log ‖β*‖ from the start of each step to x, (q,); -inf where they coincide."""
        length = (x - self.x[step])[:, None]
        _, slope = self.rate(step, x)
        back = np.append(np.minimum(FALLS / np.maximum(slope, 1.0)[:, None], length), length, axis=1)
        sizes = np.diff(back, axis=1)[..., None]
        at = x[:, None, None] - (back[:, :-1, None] + sizes * _NODES)
        phi, _ = self.rate(step[:, None, None], at)
        with np.errstate(divide="ignore"):
            return logsumexp(phi, b=sizes * _WEIGHTS, axis=(1, 2)) - np.log(self.norm)

    def find(self, log_t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step in which each log t is reached, and x there, by Newton's method inside a bracket.

        Times outside the path give its ends.
        """
        log_t = np.minimum(log_t, self.log_t[-1])
        step = np.clip(np.searchsorted(self.log_t, log_t) - 1, 0, len(self.z) - 1)
        low, high = self.x[step], self.x[step + 1]
        x = high.copy()
        for _ in range(200):
            reached = np.logaddexp(self.log_t[step], self.log_piece(step, x))
            miss = reached - log_t
            phi, _ = self.rate(step, x)
            # z carries rounding errors of a few units in its last place; a smaller miss is not to be had.
            done = (np.abs(miss) <= 64 * _EPS * np.maximum(1.0, np.abs(log_t))) | (high - low <= _EPS * high)
            if done.all():
                break
            low, high = np.where(miss < 0, x, low), np.where(miss < 0, high, x)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # then the bracket is halved
                newton = x - miss / np.exp(phi - np.log(self.norm) - reached)
            better = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
            x = np.where(done, x, better)
        return step, np.where(np.isneginf(log_t), self.x[0], x)


def clock_of(x: np.ndarray, z: np.ndarray, norm: float) -> Clock:
    """The clock of a path from its knots x (m + 1,), the coefficients of its margin (m, DEGREE + 1) and ‖β*‖."""
    blank = Clock(x, z, norm, np.full(len(x), -np.inf))
    pieces = blank.log_piece(np.arange(len(z)), x[1:])
    return Clock(x, z, norm, np.append(-np.inf, np.logaddexp.accumulate(pieces)))
