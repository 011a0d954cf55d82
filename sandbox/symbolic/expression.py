# Parses one written expression, in TeX or plain notation, into sympy's form. It does not interpret: it knows only the
# names in its tables, evaluates no text, and bounds every number and all nesting before sympy sees it.
#
# Conventions: a product without a sign binds like one with a sign (1/2x is x/2); log is the natural logarithm; e and i
# are constants; x^10 is x to the tenth; adjacent letters are a product, but four or more letters, or two capitals, are
# a word, which is not an expression.

import re

import sympy

BRACKETS = {"(": r"\)", "[": r"\]", "{": r"\}"}
WRAPPERS = r"\\(?:mathrm|mathbf|mathit|operatorname|text)\s*\{\s*([A-Za-z]+)\s*\}"


class Reader:
    """A recursive descent parser. Each method reads what its name says and advances."""

    def __init__(self, text):
        self.text, self.at, self.depth, self.bars = text, 0, 0, [0]

    def take(self, pattern):
        """Advance past a match and the space before it; return None if there is no match."""
        found = re.compile(r"\s*(?:" + pattern + ")").match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def sees(self, pattern):
        return re.compile(r"\s*(?:" + pattern + ")").match(self.text, self.at)

    def need(self, pattern):
        if not self.take(pattern):
            raise Unreadable(f"no {pattern} at {self.at}")

    def whole(self):
        result = self.sum()
        if self.text[self.at :].strip():
            raise Unreadable(f"cannot be read from {self.at} on")
        if result.has(sympy.nan, sympy.zoo):
            raise Unreadable("is undefined")
        return result

    def sum(self):
        self.depth += 1
        if self.depth > DEPTH:
            raise Unreadable("is nested too deeply")
        result = self.signed()
        while sign := self.take(r"[-+]"):
            term = self.product()
            result = sized(result + term if sign[0].strip() == "+" else result - term)
        self.depth -= 1
        return result

    def signed(self):
        negative = False
        while sign := self.take(r"[-+]"):
            negative ^= sign[0].strip() == "-"
        return -self.product() if negative else self.product()

    def product(self):
        result = self.powered()
        while True:
            if self.take(r"\*(?!\*)|\\cdot(?![A-Za-z])|\\times(?![A-Za-z])"):
                result = times(result, self.factor())
            elif self.take(r"/|\\div(?![A-Za-z])"):
                result = over(result, self.factor())
            elif self.follows():
                result = times(result, self.powered())
            else:
                return result

    def factor(self):
        """Read a factor after a multiplication sign. It may have its own sign."""
        return -self.powered() if self.take("-") else self.powered()

    def follows(self):
        """Return whether a factor without a sign follows. A number never does: "2 3" is not a product."""
        if self.sees(r"\|"):
            return self.bars[-1] == 0
        return self.sees(r"[A-Za-z({\[]|\\(?!cdot|times|div|rfloor|rceil)[A-Za-z]+")

    def powered(self):
        base = self.atom()
        while self.take("!(?!=)"):
            base = factorial(base)
        if self.take(r"\^|\*\*"):
            return power(base, self.exponent())
        return base

    def exponent(self):
        self.depth += 1
        if self.depth > DEPTH:
            raise Unreadable("is nested too deeply")
        negative = self.take("-")
        result = self.atom()
        if self.take(r"\^|\*\*"):
            result = power(result, self.exponent())
        self.depth -= 1
        return -result if negative else result

    def atom(self):
        if self.sees(r"\.?[0-9]"):
            return self.number()
        if opening := self.take(r"[({\[]"):
            return self.inside(BRACKETS[opening[0].strip()])
        if self.take(r"\|"):
            self.bars[-1] += 1
            result = self.sum()
            self.need(r"\|")
            self.bars[-1] -= 1
            return absolute(result)
        if wrapped := self.take(WRAPPERS):
            return self.name(wrapped[1])
        if command := self.take(r"\\([A-Za-z]+)"):
            return self.command(command[1])
        if letters := self.sees(r"([A-Za-z]+)"):
            return self.letters(letters[1])
        raise Unreadable(f"no operand at {self.at}")

    def inside(self, closing):
        self.bars.append(0)
        result = self.sum()
        self.need(closing)
        self.bars.pop()
        return result

    def number(self):
        if repeating := self.take(r"([0-9]*)\.([0-9]*)\\overline\s*\{([0-9]+)\}"):
            ahead, fixed, period = repeating.groups()
            if len(repeating[0]) > DIGITS:
                raise Unreadable("has too many digits")
            scale = 10 ** len(fixed)
            repeated = sympy.Rational(int(period), scale * (10 ** len(period) - 1))
            return sympy.Rational(int(ahead + fixed or "0"), scale) + repeated
        found = self.take(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
        digits = found[0].strip()
        if len(digits) > DIGITS:
            raise Unreadable("has too many digits")
        before, _, after = digits.partition(".")
        result = sympy.Rational(int(before + after), 10 ** len(after))
        if result.is_Integer and (part := self.take(r"\\frac\s*\{\s*([0-9]{1,9})\s*\}\s*\{\s*([0-9]{1,9})\s*\}")):
            if int(part[2]) == 0:
                raise Unreadable("divides by zero")
            return result + sympy.Rational(int(part[1]), int(part[2]))  # a mixed number
        return result

    def argument(self):
        """Read the argument of a TeX command: a group, or one digit, letter or command."""
        if self.take(r"\{"):
            return self.inside(r"\}")
        if digit := self.take("[0-9]"):
            return sympy.Integer(int(digit[0]))
        if letter := self.take("[A-Za-z]"):
            return self.symbol(letter[0].strip())
        if command := self.take(r"\\([A-Za-z]+)"):
            return self.command(command[1])
        raise Unreadable(f"no argument at {self.at}")

    def command(self, name):
        self.depth += 1
        if self.depth > DEPTH:
            raise Unreadable("is nested too deeply")
        result = self.commanded(name)
        self.depth -= 1
        return result

    def commanded(self, name):
        match name:
            case "frac":
                return over(self.argument(), self.argument())
            case "binom":
                return binomial(self.argument(), self.argument())
            case "sqrt":
                index = self.inside(r"\]") if self.take(r"\[") else sympy.Integer(2)
                if index == 0:
                    raise Unreadable("divides by zero")
                return power(self.argument(), 1 / index)
            case "lfloor" | "lceil":
                rounding = sympy.floor if name == "lfloor" else sympy.ceiling
                return whole(self.inside(r"\\r" + name[1:]), rounding)
        return self.name(name)

    def name(self, name):
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in FUNCTIONS:
            return self.applied(name)
        if name in LETTERS or len(name) == 1:
            return self.symbol(name)
        raise Unreadable(f"does not know {name}")

    def letters(self, run):
        """Read the first of the following letters, or all of them if they are a name."""
        if run in CONSTANTS or run in FUNCTIONS:
            self.take(run)
            return self.name(run)
        if len(run) > 3 or sum(letter.isupper() for letter in run) > 1:
            raise Unreadable(f"does not know {run}")
        self.take("[A-Za-z]")
        return self.symbol(run[0])

    def symbol(self, name):
        index = self.take(r"_\s*(?:\{\s*([A-Za-z0-9]{1,20})\s*\}|([A-Za-z0-9]))")
        if index:
            return sympy.Symbol(f"{name}_{index[1] or index[2]}")
        return {"e": sympy.E, "i": sympy.I}.get(name) or sympy.Symbol(name)

    def applied(self, name):
        """Read a function, possibly with an exponent or base before the argument: sin^2 x, log_2 8."""
        function, exponent = FUNCTIONS[name], None
        if name == "log" and self.take("_"):
            base = self.argument()
            if base in (0, 1):
                raise Unreadable("a logarithm without a base")
            function = lambda x: over(sympy.log(x), sympy.log(base))  # noqa: E731
        if self.take(r"\^"):
            exponent = self.exponent()
            if exponent == -1 and name in INVERSE:
                function, exponent = INVERSE[name], None
        result = sized(settled(function(self.operand())))
        return result if exponent is None else power(result, exponent)

    def operand(self):
        """Read a function's argument: what is in brackets, or the factors up to the next function, bracket or sign."""
        if opening := self.take(r"[({\[]"):
            return self.inside(BRACKETS[opening[0].strip()])
        result = self.powered() if not self.sees("-") else self.factor()
        while self.follows() and not self.sees(r"[(\[{|]") and not self.calls():
            result = times(result, self.powered())
        return result

    def calls(self):
        found = self.sees(r"\\?([A-Za-z]+)")
        return found and found[1] in FUNCTIONS
