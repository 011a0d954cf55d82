# The names that a reader knows and what they stand for, and the steps whose outcome it bounds before sympy sees them.

import sympy

DEPTH = 40  # brackets, exponents and arguments inside one another
DIGITS = 300  # of a written number
BITS = 1 << 16  # of the whole numbers that a power or factorial leads to


class Unreadable(Exception):
    """The text is no expression that this reader knows."""


LETTERS = """alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau
upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell""".split()
CONSTANTS = {"pi": sympy.pi, "infty": sympy.oo, "infinity": sympy.oo, "inf": sympy.oo, "oo": sympy.oo}
TRIGONOMETRIC = {name: getattr(sympy, name) for name in ("sin", "cos", "tan", "cot", "sec", "csc")}
INVERSE = {name: getattr(sympy, "a" + name) for name in TRIGONOMETRIC}
FUNCTIONS = {
    **TRIGONOMETRIC,
    **{"arc" + name: f for name, f in INVERSE.items()},
    **{"a" + name: f for name, f in INVERSE.items()},
    **{name: getattr(sympy, name) for name in ("sinh", "cosh", "tanh", "coth")},
    "ln": sympy.log,
    "log": sympy.log,
    "lg": lambda x: sympy.log(x) / sympy.log(10),
    "exp": lambda x: power(sympy.E, x),
    "sqrt": lambda x: power(x, sympy.Rational(1, 2)),
    "abs": sympy.Abs,
    "floor": lambda x: whole(x, sympy.floor),
    "ceil": lambda x: whole(x, sympy.ceiling),
}


def power(base, exponent):
    """base^exponent, where it stays within bounds."""
    if exponent.is_Rational:
        widest = max([1] + [max(abs(n.p), n.q).bit_length() for n in base.atoms(sympy.Rational)])
        if widest * abs(exponent) > BITS:
            raise Unreadable("a power beyond bounds")
    return settled(sympy.Pow(base, exponent))


def settled(result):
    """A number that is beyond what can be evaluated stops here: sympy itself would try to, to find its sign."""
    if result.has(sympy.nan, sympy.zoo):
        raise Unreadable("is undefined")
    if result.is_number and not result.is_Rational and not result.has(*INFINITE):
        try:
            value(result, {})
        except Unknown:
            raise Unreadable("a number beyond bounds")
    return result


def whole(x, rounding):
    """floor or ceiling."""
    if not x.is_number or x.is_Rational:
        return rounding(x)
    try:
        v = value(x, {})
    except Unknown:
        raise Unreadable("a number beyond bounds")
    if abs(v.imag) > NOTHING or abs(v) > 10**15 or abs(v.real - mpmath.nint(v.real)) < mpmath.mpf(10) ** -20:
        raise Unreadable("a number that cannot be rounded")
    return sympy.Integer(int(mpmath.floor(v.real))) + (rounding is sympy.ceiling)


def factorial(n):
    if n.is_number and not (n.is_Integer and 0 <= n <= 1000):
        raise Unreadable("a factorial beyond bounds")
    return sympy.factorial(n)


def binomial(n, k):
    for x in (n, k):
        if x.is_number and not (x.is_Integer and 0 <= x <= 1000):
            raise Unreadable("a binomial coefficient beyond bounds")
    return sympy.binomial(n, k)
