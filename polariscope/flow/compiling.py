"""How JAX programs are compiled here."""

import jax


def _accepted(options: dict[str, bool]) -> dict[str, bool]:
    """The options, or none of them where this version of XLA does not know one."""
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:
        return {}
    return options


QUICK = _accepted({"xla_cpu_use_fusion_emitters": False})
"""Halves the time that XLA takes on a CPU; programs this small run no slower."""
