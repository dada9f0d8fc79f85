r"""The clock of a path: log t as a function of path time, and back.

t = ∫ e^{g} dτ with the log slowness g of the loss's link, a function of the margin m up to 10⁶ and more, so only log t
is ever formed:

    log t(x) = log ∫ exp φ(x) dx - log scale,    φ(x) = g(m) + x,    x = log(1 + scale·τ).

φ increases, and steeply: almost all of t comes from the last few units of φ before x. On each step of a path m is
known as a Chebyshev polynomial, and Gauss-Legendre nodes are placed by how far φ has fallen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev, legendre
from scipy.special import logsumexp

from polariscope.flow.losses._loss import Link

DEGREE = 9
POINTS = 0.5 - 0.5 * np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)
"""Chebyshev points of a step, as fractions of it; both ends are among them."""
_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(2 * POINTS - 1, DEGREE))
_DERIVATIVE = np.pad(chebyshev.chebder(np.eye(DEGREE + 1), axis=0), ((0, 1), (0, 0)))
FALLS = np.array([0.0, 2.0, 5.0, 10.0, 20.0, 40.0])
"""How far φ has fallen at the ends of the panels of a quadrature, backwards from its upper limit."""
_NODES, _WEIGHTS = (0.5 * (v + s) for v, s in zip(legendre.leggauss(10), (1.0, 0.0), strict=True))
FEW = 1024
"""Quadratures done at once: the polynomials at the nodes of each take 5 kB."""
_EPS = np.finfo(float).eps


def coefficients(values: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients of functions known at `POINTS`, which are on axis 1 of ``values`` (m, DEGREE + 1, …)."""
    return np.einsum("kp,mp...->mk...", _COEFFICIENTS, values)


def margin(flat: np.ndarray, growing: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The margin m at x from its two parts there."""
    return flat + np.expm1(x) * growing


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of paths, of one or of many, one after the other.

    Attributes:
        left, right: ends in x, (m,).
        flat, growing: Chebyshev coefficients on each step, (m, DEGREE + 1), of the two parts of the margin
            flat + (e^x - 1) growing. A step may span many decades of e^x.
        log_scale: log of the scale of the path a step belongs to, (m,).
        link: of the loss.
    """

    left: np.ndarray
    right: np.ndarray
    flat: np.ndarray
    growing: np.ndarray
    log_scale: np.ndarray
    link: Link

    def length(self, step: np.ndarray) -> np.ndarray:
        """right - left; the spacing of floats for steps that are cut at their start."""
        return np.maximum(self.right[step] - self.left[step], np.spacing(np.maximum(self.right[step], 1e-300)))

    def basis(self, step: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The Chebyshev polynomials of the steps at points of them, (…, DEGREE + 1)."""
        at = np.clip(2 * (x - self.left[step]) / self.length(step) - 1, -1.0, 1.0)
        return chebyshev.chebvander(at, DEGREE)

    def margin(self, step: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The margin m at points of the steps."""
        basis = self.basis(step, x)
        flat, growing = (np.einsum("...k,...k->...", basis, c[step]) for c in (self.flat, self.growing))
        return margin(flat, growing, x)

    def at(self, step: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The margin m and dm/dx at points of the steps."""
        basis, per = self.basis(step, x), 2 / self.length(step)
        (flat, flat_slope), (growing, growing_slope) = (
            ((basis * c[step]).sum(-1), (basis * (c[step] @ _DERIVATIVE.T)).sum(-1) * per)
            for c in (self.flat, self.growing)
        )
        slope = flat_slope + np.expm1(x) * growing_slope + np.exp(x) * growing
        return margin(flat, growing, x), slope

    def rate(self, step: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """φ and dφ/dx at points of the steps."""
        m, slope = self.at(step, x)
        return self.link.log_slowness(m) + x, self.link.slope(m) * slope + 1.0

    def log_piece(self, step: np.ndarray, x: np.ndarray) -> np.ndarray:
        """log of the time from the start of each step to x, (q,); -inf where they coincide."""
        parts = [self._log_piece(step[i : i + FEW], x[i : i + FEW]) for i in range(0, len(step), FEW)]
        return np.concatenate([np.zeros(0), *parts])

    def _log_piece(self, step: np.ndarray, x: np.ndarray) -> np.ndarray:
        length = (x - self.left[step])[:, None]
        _, slope = self.rate(step, x)
        back = np.append(np.minimum(FALLS / np.maximum(slope, 1.0)[:, None], length), length, axis=1)
        sizes = np.diff(back, axis=1)[..., None]
        at = x[:, None, None] - (back[:, :-1, None] + sizes * _NODES)
        phi = self.link.log_slowness(self.margin(step[:, None, None], at)) + at
        with np.errstate(divide="ignore"):
            return logsumexp(phi, b=sizes * _WEIGHTS, axis=(1, 2)) - self.log_scale[step]

    def find(self, step: np.ndarray, start: np.ndarray, end: np.ndarray, log_t: np.ndarray) -> np.ndarray:
        """x at which each log t is reached in its step, from log t = ``start`` to ``end``; by Newton in a bracket."""
        low, high, going = self.left[step], self.right[step], np.arange(len(step))
        first = np.isneginf(start)  # there t is almost linear in e^x; later log t is
        with np.errstate(invalid="ignore", over="ignore"):
            share = np.where(first, np.exp(log_t - end), (log_t - start) / (end - start))
        share = np.nan_to_num(share, nan=1.0).clip(0.0, 1.0)
        found = np.minimum(low + np.log1p(share * np.expm1(high - low)), high)
        for _ in range(200):
            at, x, wanted = step[going], found[going], log_t[going]
            reached = np.logaddexp(start[going], self.log_piece(at, x))
            miss = reached - wanted
            # m carries rounding errors of a few units in its last place; a smaller miss is not to be had.
            done = np.abs(miss) <= 64 * _EPS * np.maximum(1.0, np.abs(wanted))
            more = ~done & (high[going] - low[going] > _EPS * high[going])
            if not more.any():
                break
            going, at, x, miss, reached = (v[more] for v in (going, at, x, miss, reached))
            low[going], high[going] = np.where(miss < 0, x, low[going]), np.where(miss < 0, high[going], x)
            phi, _ = self.rate(at, x)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # then the bracket is halved
                newton = x - miss / np.exp(phi - self.log_scale[at] - reached)
            better = (newton > low[going]) & (newton < high[going])
            found[going] = np.where(better, newton, 0.5 * (low[going] + high[going]))
        return np.where(np.isneginf(log_t), self.left[step], found)


def bounds(
    left: np.ndarray, right: np.ndarray, margins: Sequence[np.ndarray], log_scale: np.ndarray, link: Link
) -> tuple[np.ndarray, np.ndarray]:
    """log of the least and the most time that steps can take, each (m,), for a margin that grows along them.

    Args:
        left, right: ends in x. margins: m at both, each (m,).
    """
    with np.errstate(divide="ignore"):
        wide = np.log(right - left) - log_scale
    least, most = (link.log_slowness(m) + x + wide for m, x in zip(margins, (left, right), strict=True))
    return least, most
