"""The same flows written plainly in NumPy, in all parameters and ordinary time, for SciPy's integrators.

Losses, score maps, their Jacobians and the models' gradients are written by hand, apart from the package. Maps with
kinks are solved piece by piece: a piece ends where SciPy finds that a key's weight reaches 0, and that key rests.
"""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit, softmax

RELATIVE, ABSOLUTE = 1e-12, 1e-13
KINKED = ("relu", "l1", "sparsemax", "relu-elementwise")
PARTS = {"value": "Va", "tied": "Va", "keys": "VK", "query": "Vq", "keys-query": "VKq"}
"""What each model trains."""


def slope(problem, beta):
    """∇ℓ(β), by hand."""
    loss = problem["loss"]
    if loss in ("logistic", "exponential"):
        target = np.array(problem["target"])
        z = target @ beta
        return -(expit(-z) if loss == "logistic" else np.exp(-z)) * target
    if loss == "square":
        return beta - np.array(problem["target"])
    if loss == "regression":
        X, y = np.array(problem["X"]), np.array(problem["y"])
        return 2 * X.T @ (X @ beta - y)
    return softmax(beta) - (np.eye(len(beta))[problem["label"]] if loss == "cross-entropy" else np.array(problem["p"]))


def parts(scores, a, sign):
    """f(a), f'(a) of the maps that are f, or f/Σf; maps with kinks on the piece with the given signs (0: no weight)."""
    if scores in ("softmax", "softmax-off-by-one"):
        e = np.exp(a - a.max())
        return e, e
    if scores == "square":
        return a**2, 2 * a
    if scores in ("sigmoid", "sigmoid-normalized"):
        return expit(a), expit(a) * expit(-a)
    if scores == "elu-normalized":
        low = np.exp(np.minimum(a, 0))
        return np.where(a > 0, a + 1, low), np.where(a > 0, 1.0, low)
    if scores in ("relu", "relu-elementwise", "l1"):
        return sign * a, sign
    if scores in ("identity", "sum"):
        return a, np.ones_like(a)
    raise ValueError(scores)


def sparse(scores, a, sign, g):
    """s and Jᵀg of sparsemax on the piece with the given keys, and of entmax-1.5."""
    if scores == "sparsemax":
        return sign * (a + (1 - a @ sign) / sign.sum()), sign * (g - g @ sign / sign.sum())
    x = np.sort(a)[::-1] / 2
    for k in range(len(x), 0, -1):  # the largest support whose threshold lies below all of it
        mean = x[:k].mean()
        rest = 1 - np.sum((x[:k] - mean) ** 2)
        if rest >= 0 and (threshold := mean - np.sqrt(rest / k)) < x[k - 1]:
            root = np.maximum(a / 2 - threshold, 0)
            return root**2, root * (g - root @ g / root.sum())
    raise AssertionError


def pullback(problem, a, sign, g):
    """s = σ(a) and Jᵀg, by hand."""
    scores, tau = problem["scores"], problem.get("temperature", 1.0)
    if scores in ("sparsemax", "entmax-1.5"):
        s, back = sparse(scores, a / tau, sign, g)
        return s, back / tau
    f, df = parts(scores, a / tau, sign)
    if scores in ("sigmoid", "identity", "relu-elementwise"):
        return f, df * g / tau
    total = f.sum() + (np.exp(-a.max() / tau) if scores == "softmax-off-by-one" else 0.0)
    s = f / total
    return s, df * (g - s @ g) / total / tau


def piece(problem, a):
    """What names the smooth piece at logits a: the signs of the keys with weight, 0 for those without."""
    scores = problem["scores"]
    if scores == "sparsemax":
        b = np.sort(a / problem.get("temperature", 1.0))[::-1]
        k = np.flatnonzero(1 + np.arange(1, len(b) + 1) * b > np.cumsum(b))[-1] + 1
        return (a / problem.get("temperature", 1.0) > (b[:k].sum() - 1) / k).astype(float)
    if scores in ("relu", "relu-elementwise"):
        return (a > 0).astype(float)
    return np.sign(a) if scores == "l1" else np.ones(len(a))


def logits(problem, y):
    """The attention logits of parameters by name."""
    return {"value": lambda: y["a"], "tied": lambda: y["V"] @ y["a"]}.get(problem["model"], lambda: y["K"] @ y["q"])()


def velocity(problem, y, sign=1.0):
    """-∇L with respect to every parameter, by name."""
    V, a = y["V"], logits(problem, y)
    s, _ = pullback(problem, a, sign, np.zeros(len(a)))
    g = slope(problem, V @ s)
    _, back = pullback(problem, a, sign, V.T @ g)
    moved = {"V": -np.outer(g, s)}
    if problem["model"] == "value":
        return moved | {"a": -back}
    if problem["model"] == "tied":
        return {"V": moved["V"] - np.outer(back, y["a"]), "a": -V.T @ back}
    return moved | {"K": -np.outer(back, y["q"]), "q": -y["K"].T @ back}


def integrate(problem, times, method="DOP853"):
    """s at the times, (k, n), by SciPy."""
    y = {key: np.array(problem[f"{key}0"], float) for key in ("V", "a", "K", "q") if f"{key}0" in problem}
    trained = PARTS[problem["model"]]
    shapes, fixed = [y[key].shape for key in trained], {k: v for k, v in y.items() if k not in trained}
    edges = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def unpacked(flat):
        rows = zip(trained, np.split(flat, edges), shapes, strict=True)
        return fixed | {key: row.reshape(shape) for key, row, shape in rows}

    def field(_, flat):
        moved = velocity(problem, unpacked(flat), sign)
        return np.concatenate([moved[key].ravel() for key in trained])

    def weights(flat):
        a = logits(problem, unpacked(flat))
        return pullback(problem, a, sign, np.zeros(len(a)))[0]

    def lost(_, flat):
        return weights(flat)[sign != 0].min()

    lost.terminal = True
    sign, now = piece(problem, logits(problem, y)), 0.0
    state, found = np.concatenate([y[key].ravel() for key in trained]), []
    while len(found) < len(times):
        rest = times[len(found) :]
        watched = lost if problem["scores"] in KINKED and sign.any() else None
        how = {"method": method, "rtol": RELATIVE, "atol": ABSOLUTE, "t_eval": rest, "events": watched}
        path = solve_ivp(field, (now, rest[-1]), state, **how)
        found += [weights(flat) for flat in np.array(path.y).T]
        if path.status == 1:
            now, state = path.t_events[0][-1], path.y_events[0][-1]
            sign = np.where(weights(state) <= 1e-10, 0.0, sign)
    return np.array(found)
