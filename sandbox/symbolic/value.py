# The value of an expression at points, to 120 digits, with a bound of its rounding error. Each step is bounded before
# it is taken, so that the cost of an expression depends only on its length. Sympy's own evaluation and simplification
# have no such bound.
#
# Values are real where they can be: a root with an odd index of a negative number is real and negative, and a value
# that needs a number that is not real on the way is off the domain. Only an expression with i is complex.

import itertools
import random

import mpmath
import sympy

mpmath.mp.dps = 120
ROUNDING = mpmath.mpf(10) ** -112  # relative, of one step
NEAR = mpmath.mpf(10) ** -90  # relative: of values whose error is smaller than this
POINTS = 24
LEAST = 3  # points at which two expressions with letters are compared, or they cannot be
SCALES = [mpmath.mpf(s) for s in ("3", "0.1", "10", "100", "3", "1000")]  # of the letters' values, in turns
# Where zeros are looked for: halfway between whole numbers and quarters up to 24, and farther apart up to a million.
GRID = [mpmath.mpf(k) / 2 + mpmath.mpf("0.13") for k in range(49)]
GRID += [mpmath.mpf("24.7") * mpmath.mpf("1.5") ** k for k in range(27)]
GRID = sorted([-x for x in GRID] + GRID)
DRAWS = random.Random(0)  # for the points; seeded by the pair's texts, so that no answer can be made to fit the points


class Unknown(Exception):
    """The expression cannot be evaluated within the bounds."""


class Undefined(Unknown):
    """The expression has no value at the point."""


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


class Value:
    """A value, a bound of its error, and whether only real numbers led to it."""

    def __init__(self, v, error=0, real=True):
        if not mpmath.isfinite(v):
            raise Undefined("is not finite")
        self.v, self.error = mpmath.mpmathify(v), error + ROUNDING * abs(v)
        self.real = real and not off(self.v, self.error)

    def plain(self):
        """Return the number without an imaginary part that is only an error."""
        return self.v if off(self.v, self.error) else mpmath.re(self.v)


def off(v, error):
    """Return whether a number is not real."""
    return abs(mpmath.im(v)) > error + NEAR * abs(v)


def value(expression, point):
    """Return the value of an expression at a point, which maps the names of symbols to values."""
    try:
        return worth(expression, point)
    except Unknown:
        raise
    except (ZeroDivisionError, ValueError) as fault:
        raise Undefined(str(fault))
    except ArithmeticError as fault:
        raise Unknown(str(fault))


def worth(e, point):
    if e.is_Rational:
        return Value(mpmath.mpf(e.p) / e.q)
    if e in EXACT:
        return Value(+EXACT[e])
    if e.is_Symbol:
        return Value(point[e.name])
    if e.is_Add:
        terms = [worth(x, point) for x in e.args]
        # Where terms cancel, what is left of them is their error.
        error = sum(t.error for t in terms) + ROUNDING * max(abs(t.v) for t in terms)
        return Value(mpmath.fsum(t.v for t in terms), error, all(t.real for t in terms))
    if e.is_Mul:
        factors = [worth(x, point) for x in e.args]
        most = mpmath.fprod(abs(f.v) + f.error for f in factors)
        v = mpmath.fprod(f.v for f in factors)
        return Value(v, most - abs(v), all(f.real for f in factors))
    if e.func in NUMERIC:
        function, most = NUMERIC[e.func]
        x = worth(e.args[0], point)
        if most is not None and abs(x.v) > most:
            raise Unknown("an argument beyond bounds")
        return applied(function, [x], most)
    if e.func is sympy.binomial:
        both = [worth(x, point) for x in e.args]
        if max(abs(x.v) for x in both) > 10**4:
            raise Unknown("an argument beyond bounds")
        return applied(mpmath.binomial, both, 10**4)
    if e.is_Pow:
        base, exponent = worth(e.base, point), worth(e.exp, point)
        bounded(base.v, exponent.v)
        if e.exp.is_Rational and e.exp.q % 2 == 1 and base.real and mpmath.re(base.v) < 0:
            root = applied(mpmath.power, [Value(-mpmath.re(base.v), base.error), exponent])
            return Value(-root.v if e.exp.p % 2 else root.v, root.error)
        return applied(mpmath.power, [base, exponent])
    raise Unknown(f"cannot evaluate {e.func.__name__}")


def applied(function, arguments, most=None):
    """Return a function's value. Its error is how far it moves when each argument moves by its own error."""
    at = [x.plain() for x in arguments]
    v, error = function(*at), mpmath.mpf(0)
    for i, x in enumerate(arguments):
        moved = at[:i] + [at[i] + x.error] + at[i + 1 :]
        if x.error and (most is None or abs(moved[i]) <= most):
            error += abs(function(*moved) - v)
    if function in (mpmath.floor, mpmath.ceil) and error:
        raise Unknown("too close to a step")
    return Value(v, 2 * error, all(x.real for x in arguments))


def bounded(base, exponent):
    if base == 0 and not mpmath.re(exponent) > 0:
        raise Undefined("a power of zero")
    if base != 0 and (abs(exponent) > 10**6 or abs(exponent) * (1 + abs(mpmath.log(abs(base)))) > 10**7):
        raise Unknown("a power beyond bounds")


def near(a, b):
    """Return whether two values are equal, as far as their errors tell."""
    return abs(a.v - b.v) <= a.error + b.error + NEAR * max(abs(a.v), abs(b.v))


def nothing(a):
    """Return whether a value is 0, as far as its error tells."""
    return abs(a.v) <= a.error


def points(*expressions):
    """Yield points for the symbols of expressions, and whether both must be defined there alike: of several scales and
    signs, then around the kinks. At whole numbers a fraction may have a hole that says nothing."""
    names = sorted(set().union(*({s.name for s in e.free_symbols} for e in expressions)))
    if names:
        yield dict.fromkeys(names, mpmath.mpf(0)), False
        for _ in range(4):
            yield {name: mpmath.mpf(DRAWS.randrange(-9, 10)) for name in names}, False
    for k in range(POINTS if names else 1):
        yield drawn(names, k), True
    for at in itertools.islice(around(names, expressions), 2 * POINTS):
        yield at, True


def drawn(names, k):
    """Return a point. Half of them are positive, and in the others every other letter is negative."""
    at = {}
    for j, name in enumerate(names):
        x = SCALES[(k // 2 + j * (k // 12)) % len(SCALES)] * DRAWS.randrange(1, 1 << 42) / (1 << 42)
        at[name] = -x if k % 2 and (j + k // 2) % 2 == 0 else x
    return at


def around(names, expressions):
    """Yield points on both sides of the kinks of functions that have some: near to them, and farther away."""
    for kink in itertools.islice(kinks(*expressions), 12):
        for name in sorted(s.name for s in kink.free_symbols):
            at = drawn(names, 0)
            for root in roots(kink, name, at):
                for step in (mpmath.mpf("0.001"), mpmath.mpf("0.4")):
                    width = step * (1 + abs(root)) * (1 + mpmath.mpf(DRAWS.randrange(1 << 20)) / (1 << 21))
                    yield {**at, name: root + width}
                    yield {**at, name: root - width}


def kinks(*expressions):
    """Yield each expression whose zeros are kinks or ends of the domain once."""
    seen = set()
    for e in expressions:
        for part in sympy.preorder_traversal(e):
            for kink in kinks_of(part):
                if kink.free_symbols and kink not in seen:
                    seen.add(kink)
                    yield kink


def kinks_of(e):
    if e.func in (sympy.Abs, sympy.log) or e.is_Pow and not e.exp.is_Integer:
        return sympy.Mul.make_args(e.args[0])
    if e.func in (sympy.floor, sympy.ceiling):
        return [e.args[0] + n for n in (0, 1, -1)]
    if e.func in (sympy.asin, sympy.acos, sympy.asec, sympy.acsc):
        return [e.args[0] - 1, e.args[0] + 1] + turns(e.args[0])
    if e.func in (sympy.atan, sympy.acot):
        return turns(e.args[0])
    return []


def turns(argument):
    """Return the kinks of a trigonometric function's inverse: the quarter turns of the function's own argument."""
    if argument.func in (sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec, sympy.csc):
        return [argument.args[0] + n * sympy.pi / 2 for n in (1, -1, 2, -2)]
    return []


def roots(e, name, at):
    """Return some zeros of an expression in one letter, the others being fixed: where its sign changes on a grid."""

    def sign(x):
        try:
            v = value(e, {**at, name: x})
        except Unknown:
            return 0
        return 0 if not v.real or nothing(v) else 1 if mpmath.re(v.v) > 0 else -1

    found, signs = [], [sign(x) for x in GRID]
    for (a, b), (left, right) in zip(itertools.pairwise(GRID), itertools.pairwise(signs)):
        if left * right >= 0:
            continue
        for _ in range(24):
            middle = (a + b) / 2
            a, b = (middle, b) if sign(middle) == left else (a, middle)
        found.append((a + b) / 2)
    return found[:4]


def values(a, b):
    """Return both values wherever both are real; at all points if an expression contains i or is real nowhere. None if
    one is real at a point where the other is not."""
    real, rest = [], []
    for at, alike in points(a, b):
        pair = []
        for e in (a, b):
            try:
                pair.append(value(e, at))
            except Undefined:
                pair.append(None)
            except Unknown:
                break
        if len(pair) < 2 or pair == [None, None]:
            continue
        if None in pair:
            if alike and next(p for p in pair if p is not None).real:
                return None
        elif pair[0].real and pair[1].real:
            real.append(pair)
        elif pair[0].real == pair[1].real or a.has(sympy.I) or b.has(sympy.I):
            rest.append(pair)
        elif not branched(*pair):
            return None
    if a.has(sympy.I) or b.has(sympy.I) or not real:
        real += rest
    if len(real) < (LEAST if a.free_symbols or b.free_symbols else 1):
        raise Unreadable("cannot be evaluated")
    return real


def branched(a, b):
    """Return whether two values, one of them off the real numbers on its way, differ by the choice of a branch alone.

    That is the sign of a root, or whole turns of a logarithm. So the root of xy is that of x times that of y.
    """
    turn = (a.v - b.v) / (2j * mpmath.pi)
    whole = Value(mpmath.nint(mpmath.re(turn)), a.error + b.error)
    return near(Value(a.v, a.error), Value(-b.v, b.error)) or near(Value(turn, a.error + b.error), whole)
