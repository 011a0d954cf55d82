# The names that the reader knows, with their meanings, and the operations whose results it bounds before sympy sees
# them.

import sympy

DEPTH = 40  # nesting of brackets, exponents and arguments
DIGITS = 300  # digits of a written number
BITS = 1 << 16  # bits of the numbers in one result
ROOT = 1 << 9  # bits of its numbers under roots, which sympy factors
WORK = 1 << 20  # bits of all results together; bits under roots count 64 times


class Unreadable(Exception):
    """The text is not an expression that the reader knows."""


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
    "lg": lambda x: over(sympy.log(x), sympy.log(10)),
    "exp": lambda x: power(sympy.E, x),
    "sqrt": lambda x: power(x, sympy.Rational(1, 2)),
    "abs": lambda x: absolute(x),
    "floor": lambda x: whole(x, sympy.floor),
    "ceil": lambda x: whole(x, sympy.ceiling),
}


SIZES = {}
SPENT = [0]


def size(e):
    """Return the bits of an expression's numbers, and the bits of those under roots."""
    if e.is_Rational:
        return e.p.bit_length() + e.q.bit_length(), 0
    if e not in SIZES:
        bits, roots = (sum(column) for column in zip((1, 0), *map(size, e.args)))
        SIZES[e] = bits, bits if e.is_Pow and not e.exp.is_Integer else roots
    return SIZES[e]


def sized(result):
    """Return the result of an operation, if it and all results so far together stay within bounds."""
    bits, roots = size(result)
    SPENT[0] += bits + 64 * roots
    if bits > BITS or roots > ROOT or SPENT[0] > WORK:
        raise Unreadable("a number beyond bounds")
    return result


def unrooted(*factors):
    """Refuse factors whose roots sympy would multiply into one that exceeds the bounds."""
    if sum(size(f)[1] for f in factors) > ROOT:
        raise Unreadable("a root beyond bounds")


def times(a, b):
    unrooted(a, b)
    return sized(a * b)


def over(a, b):
    if b == 0:
        raise Unreadable("divides by zero")
    unrooted(a, b)
    return sized(a / b)


def absolute(x):
    """Return the absolute value. For a complex number this is a root of the squares of its parts."""
    if x.has(sympy.I) and 2 * size(x)[0] > ROOT:
        raise Unreadable("a root beyond bounds")
    return sized(sympy.Abs(x))


def power(base, exponent):
    """Return base^exponent, if it stays within bounds."""
    if not exponent.is_Integer and size(base)[0] + size(exponent)[0] > ROOT:
        raise Unreadable("a root beyond bounds")
    if exponent.is_Rational:
        widest = max([1] + [max(abs(n.p), n.q).bit_length() for n in base.atoms(sympy.Rational)])
        if widest * abs(exponent) > BITS:
            raise Unreadable("a power beyond bounds")
    return sized(settled(sympy.Pow(base, exponent)))


def settled(result):
    """Refuse a number that cannot be evaluated. Otherwise sympy would try to evaluate it to find its sign."""
    if result.has(sympy.nan, sympy.zoo):
        raise Unreadable("is undefined")
    if result.is_number and not result.is_Rational and not result.has(*INFINITE):
        try:
            value(result, {})
        except Unknown:
            raise Unreadable("a number beyond bounds")
    return result


def whole(x, rounding):
    """Return the floor or the ceiling."""
    if not x.is_number or x.is_Rational:
        return rounding(x)
    try:
        v = value(x, {})
    except Unknown:
        raise Unreadable("a number beyond bounds")
    at = mpmath.re(v.v)
    if not v.real or abs(at) > 10**15 or abs(at - mpmath.nint(at)) < mpmath.mpf(10) ** -20:
        raise Unreadable("a number that cannot be rounded")
    return sympy.Integer(int(mpmath.floor(at))) + (rounding is sympy.ceiling)


def factorial(n):
    if n.is_number and not (n.is_Integer and 0 <= n <= 1000):
        raise Unreadable("a factorial beyond bounds")
    return sized(sympy.factorial(n))


def binomial(n, k):
    for x in (n, k):
        if x.is_number and not (x.is_Integer and 0 <= x <= 1000):
            raise Unreadable("a binomial coefficient beyond bounds")
    return sized(sympy.binomial(n, k))
