"""The velocity in all parameters, written once for NumPy, JAX and torch, and the solvers that it is given to."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp


def softmax(xp, a):
    e = xp.exp(a - xp.amax(a, -1)[..., None])
    return e / e.sum(-1)[..., None]


def pull(xp, loss, data, beta):
    """-∇ℓ(β), (…, d)."""
    if loss == "logistic":
        return data["target"] / (1.0 + xp.exp((data["target"] * beta).sum(-1)))[..., None]
    if loss == "kl":
        return data["p"] - softmax(xp, beta)
    X, miss = data["X"], data["y"] - (data["X"] @ beta[..., None])[..., 0]
    return 2.0 * (miss[..., None, :] @ X)[..., 0, :]


def velocity(xp, loss, data, V, a):
    """(V̇, ȧ) of V (…, d, n) and a (…, n) with softmax."""
    s = softmax(xp, a)
    force = pull(xp, loss, data, (V @ s[..., None])[..., 0])
    payoff = (force[..., None, :] @ V)[..., 0, :]
    return force[..., :, None] * s[..., None, :], s * (payoff - (s * payoff).sum(-1)[..., None])


def data_of(problem):
    return {key: np.array(problem[key]) for key in ("target", "p", "X", "y") if key in problem}


def by_scipy(problem, t, method="DOP853", rtol=1e-9, atol=None):
    """s (n,) at t, by SciPy."""
    V, a, data = np.array(problem["V0"]), np.array(problem["a0"]), data_of(problem)

    def field(_, y):
        moved = velocity(np, problem["loss"], data, y[: V.size].reshape(V.shape), y[V.size :])
        return np.concatenate([moved[0].ravel(), moved[1]])

    start = np.concatenate([V.ravel(), a])
    path = solve_ivp(field, (0.0, t), start, method=method, rtol=rtol, atol=atol or rtol, t_eval=[t])
    return softmax(np, path.y[V.size :, 0])


def by_diffrax(problems, t, solver=None, rtol=1e-9, max_steps=100_000):
    """A function without arguments that gives s (b, n) at t, all flows side by side."""
    loss = problems[0]["loss"]
    data = {key: np.stack([data_of(p)[key] for p in problems]) for key in data_of(problems[0])}
    V, a = (np.stack([np.array(p[key]) for p in problems]) for key in ("V0", "a0"))

    def end(V, a, data):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: velocity(jnp, loss, args, *y)),
            solver or diffrax.Dopri8(),
            0.0,
            t,
            None,
            (V, a),
            data,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
            max_steps=max_steps,
        )
        assert solution.ys is not None
        return solution.ys[1][-1]

    compiled = jax.jit(jax.vmap(end))

    def run():
        with jax.enable_x64(True):
            return softmax(np, np.asarray(compiled(V, a, data)))

    return run


def by_torchdiffeq(problems, t, method, rtol=1e-9):
    """The same by torchdiffeq, which takes one step size for the whole batch; None where it is not installed."""
    try:
        import torch
        from torchdiffeq import odeint
    except ImportError:
        print("torchdiffeq is not installed; its rows are left out. pip install torchdiffeq")
        return None
    loss = problems[0]["loss"]
    data = {key: torch.tensor(np.stack([data_of(p)[key] for p in problems])) for key in data_of(problems[0])}
    start = tuple(torch.tensor(np.stack([np.array(p[key]) for p in problems])) for key in ("V0", "a0"))
    times = torch.tensor([0.0, t], dtype=torch.float64)

    def run():
        with torch.no_grad():
            path = odeint(
                lambda t, y: velocity(torch, loss, data, *y), start, times, method=method, rtol=rtol, atol=rtol
            )
        return softmax(np, path[1][-1].numpy())

    return run
