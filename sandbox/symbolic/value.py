# The value of an expression at points, to 120 digits. Each step is bounded before it is taken, so that the cost of an
# expression depends only on its length. Sympy's own evaluation and simplification have no such bound.

import random

import mpmath
import sympy

mpmath.mp.dps = 120
NEAR = mpmath.mpf(10) ** -60  # relative
NOTHING = mpmath.mpf(10) ** -90  # absolute: rounding errors of zero
POINTS = 12
DRAWS = random.Random(0)  # for the points; seeded by the pair's texts, so that no answer can be made to fit the points


class Unknown(Exception):
    """The expression is undefined at the point, or exceeds the bounds."""


# Sympy's function → mpmath's function, and the largest argument that it takes at a bounded cost.
NUMERIC = {
    sympy.log: (mpmath.log, None),
    sympy.Abs: (abs, None),
    sympy.floor: (mpmath.floor, 10**15),
    sympy.ceiling: (mpmath.ceil, 10**15),
    sympy.factorial: (mpmath.factorial, 10**4),
    sympy.exp: (mpmath.exp, 10**6),
    **{getattr(sympy, n): (getattr(mpmath, n), 10**20) for n in ("sin", "cos", "tan", "cot", "sec", "csc")},
    **{getattr(sympy, "a" + n): (getattr(mpmath, "a" + n), None) for n in ("sin", "cos", "tan", "cot", "sec", "csc")},
    **{getattr(sympy, n): (getattr(mpmath, n), 10**6) for n in ("sinh", "cosh", "tanh", "coth")},
}
EXACT = {sympy.pi: mpmath.pi, sympy.E: mpmath.e, sympy.I: mpmath.mpc(0, 1)}


def value(expression, point):
    """Return the value of an expression at a point, which maps the names of symbols to values."""
    try:
        result = worth(expression, point)
    except (ArithmeticError, ValueError) as fault:
        raise Unknown(str(fault))
    if not mpmath.isfinite(result):
        raise Unknown("is not finite")
    return mpmath.mpmathify(result)


def worth(e, point):
    if e.is_Rational:
        return mpmath.mpf(e.p) / e.q
    if e in EXACT:
        return +EXACT[e]
    if e.is_Symbol:
        return point[e.name]
    if e.is_Add:
        return mpmath.fsum(worth(x, point) for x in e.args)
    if e.is_Mul:
        return mpmath.fprod(worth(x, point) for x in e.args)
    if e.func in NUMERIC:
        function, most = NUMERIC[e.func]
        x = worth(e.args[0], point)
        if most is not None and abs(x) > most:
            raise Unknown("an argument beyond bounds")
        return function(x)
    if e.func is sympy.binomial:
        n, k = (worth(x, point) for x in e.args)
        if max(abs(n), abs(k)) > 10**4:
            raise Unknown("an argument beyond bounds")
        return mpmath.binomial(n, k)
    if e.is_Pow:
        return raised(worth(e.base, point), worth(e.exp, point))
    raise Unknown(f"cannot evaluate {e.func.__name__}")


def raised(base, exponent):
    if base == 0 and not mpmath.re(exponent) > 0:
        raise Unknown("a power of zero")
    if base != 0 and (abs(exponent) > 10**6 or abs(exponent) * (1 + abs(mpmath.log(abs(base)))) > 10**7):
        raise Unknown("a power beyond bounds")
    return mpmath.power(base, exponent)


def near(a, b):
    return abs(a - b) <= NEAR * max(abs(a), abs(b)) + NOTHING


def points(*expressions):
    """Yield points for the symbols of expressions: half with positive values, half with every other symbol negative."""
    names = sorted(set().union(*({s.name for s in e.free_symbols} for e in expressions)))
    for k in range(POINTS if names else 1):
        at = {}
        for j, name in enumerate(names):
            x = mpmath.mpf(DRAWS.randrange(1, 3 << 40)) / (1 << 40)
            at[name] = -x if k >= POINTS // 2 and (j + k) % 2 == 0 else x
        yield at


def values(a, b):
    """Return both values wherever both are real; at all points if an expression contains i or is real nowhere."""
    real, rest = [], []
    for at in points(a, b):
        try:
            pair = value(a, at), value(b, at)
        except Unknown:
            continue
        off = any(abs(v.imag) > NEAR * abs(v) + NOTHING for v in pair)
        (rest if off else real).append(pair)
    if a.has(sympy.I) or b.has(sympy.I) or not real:
        real += rest
    if len(real) < (3 if a.free_symbols or b.free_symbols else 1):
        raise Unreadable("cannot be evaluated")
    return real
