# Reads answers that are lists, intervals, equations and matrices, compares them, and prints the verdict.

import json
import sys

# Replacements for TeX commands. Other commands stay.
COMMANDS = {
    **dict.fromkeys(("dfrac", "tfrac", "cfrac"), r"\frac "),
    **dict.fromkeys(("dbinom", "tbinom"), r"\binom "),
    **dict.fromkeys(("left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr"), " "),
    **dict.fromkeys(("bigg", "Bigg", "biggl", "biggr"), " "),
    **dict.fromkeys(("displaystyle", "textstyle", "limits", "quad", "qquad", "boxed", "fbox"), " "),
    **dict.fromkeys(("lvert", "rvert", "vert", "mid"), "|"),
    **dict.fromkeys(("le", "leq", "leqslant"), "≤"),
    **dict.fromkeys(("ge", "geq", "geqslant"), "≥"),
    **dict.fromkeys(("ne", "neq"), "≠"),
    **{"lt": "<", "gt": ">", "langle": "(", "rangle": ")", "cup": "∪", "pm": "±", "mp": "∓", "in": "∈"},
}
SPACING = re.compile(r"\\(?:([A-Za-z]+)|(\\)|[,;:! ()\[\]])|[~$]")
SIGNS = str.maketrans({
    "−": "-", "–": "-", "×": "*", "·": "*", "÷": "/", "²": "^2", "³": "^3",
    "°": r"^\circ", "√": " sqrt ", "∞": r"\infty ", "π": r"\pi ",
})
# Sets that have a sign of their own, as the shapes that they are.
SETS = (
    (re.compile(r"\\mathbb\s*(?:\{\s*R\s*\}|R(?![A-Za-z]))|ℝ"), r"(-\infty,\infty)"),
    (re.compile(r"\\(?:emptyset|varnothing)(?![A-Za-z])|∅"), r"\{\}"),
)
THOUSANDS = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:(?:\\[,;: ]|[ ~\u00a0\u2009\u202f])[0-9]{3})+(?![0-9])")
CONJUNCTION = re.compile(r"\\(?:text|mbox|mathrm)\s*\{\s*(?:and|or)\s*\}|\b(?:and|or)\b")
RELATION = re.compile(r"[=<>≤≥≠]")
NAME = re.compile(r"\\?[A-Za-z]+(?:_\{?[A-Za-z0-9]+\}?)?(?:\([A-Za-z](?:,[A-Za-z])*\))?")
UNIT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mbox)\s*\{([^{}]*)\}\s*(?:\^\s*\{?\s*([0-9])\s*\}?)?\s*$")
# Units that no command marks: a word of a length that is no product of letters, or an abbreviation.
WORDS = re.compile(
    r"(?<=[0-9})\s])\s*\b((?:[a-z]{4,}|[kcm]m|[km]g|ml|lbs?|oz|ft|yd|mi|mph|hrs?|min|sec|deg)(?:\s+[a-z]{2,})*)\s*"
    r"(?:\^\s*\{?\s*([0-9])\s*\}?)?\s*$", re.IGNORECASE
)
PERCENT = re.compile(r"\\?%\s*$")
DEGREES = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)\s*$")
MATRIX = re.compile(r"\\begin\s*\{([pbB]?matrix)\}(.*)\\end\s*\{\1\}", re.DOTALL)
GROUPED = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])")
LENGTH = 4000
INFINITE = (sympy.oo, -sympy.oo)
BRACKETED = ("()", "(]", "[)", "[]", "union")
NESTING = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def read(text):
    """Return the answer as a shape: a tuple of its kind and the content of that kind."""
    if len(text) > LENGTH:
        raise Unreadable("is too long")
    if any(ord(c) < 32 and c not in "\t\n\r" for c in text):
        raise Unreadable("has control characters")
    for pattern, meaning in SETS:
        text = pattern.sub(lambda _, meaning=meaning: meaning, text)
    text = THOUSANDS.sub(lambda found: re.sub("[^0-9]", "", found[0]), text)
    text = CONJUNCTION.sub(",", text.translate(SIGNS).replace("{,}", ""))
    text = SPACING.sub(plain, text)
    for written, sign in (("<=", "≤"), (">=", "≥"), ("!=", "≠")):
        text = text.replace(written, sign)
    return shape(text.strip().rstrip(".").strip(), 0)


def plain(found):
    """Return the replacement for a TeX command or a space."""
    command, row = found.groups()
    return found[0] if row else COMMANDS.get(command, found[0]) if command else " "


def shape(text, depth):
    if depth > DEPTH:
        raise Unreadable("is nested too deeply")
    if found := re.match(r"\s*\\?[A-Za-z]\s*∈", text):
        text = text[found.end() :]
    pieces = split(text, "∪")
    if len(pieces) > 1:
        return "union", [shape(p, depth + 1) for p in pieces]
    text = text.strip()
    if matrix := MATRIX.fullmatch(text):
        rows = [row.split("&") for row in re.split(r"\\\\", matrix[2].strip().removesuffix("\\\\"))]
        return "matrix", [[Reader(cell).whole() for cell in row] for row in rows]
    for opening, closing in (("\\{", "\\}"), ("{", "}"), ("(", ")"), ("(", "]"), ("[", ")"), ("[", "]")):
        inner = enclosed(text, opening, closing)
        if inner is None:
            continue
        parts = split(inner, ",") if inner.strip() else []
        if len(parts) > 1 or "{" in opening:
            elements = [shape(p, depth + 1) for p in parts]
            return elements[0] if len(elements) == 1 else ("set" if "{" in opening else opening + closing, elements)
    elements = split(GROUPED.sub(lambda m: m[0].replace(",", ""), text), ",")
    elements = [e for e in elements if e.strip()] if len(elements) > 1 else elements
    if len(elements) > 1:
        return "set", [shape(e, depth + 1) for e in elements]
    if not elements:
        raise Unreadable("is empty")
    return single(elements[0])


def split(text, separator):
    """Split the text at separators outside of brackets."""
    parts, depth, begin = [], 0, 0
    for at, c in enumerate(text):
        depth += NESTING.get(c, 0)
        if c == separator and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return parts + [text[begin:]]


def enclosed(text, opening, closing):
    """Return the text between a pair of matching brackets; None if they do not match."""
    if not text.startswith(opening) or not text.endswith(closing) or len(text) < len(opening) + len(closing):
        return None
    inner = text[len(opening) : len(text) - len(closing)]
    depth = 0
    for c in inner:
        depth += NESTING.get(c, 0)
        if depth < 0:
            return None
    return inner if depth == 0 else None


def single(text):
    """Read one element: an expression with its unit, an equation, or a chain of inequalities. ± makes two elements."""
    if "±" in text or "∓" in text:
        return "set", [single(text.replace("±", up).replace("∓", down)) for up, down in ("+-", "-+")]
    operators = RELATION.findall(text)
    if not operators:
        text, unit = measured(text)
        return "value", Reader(DEGREES.sub("", text)).whole(), unit
    sides = RELATION.split(text)
    if set(operators) == {"="}:
        last, name = single(sides[-1]), "".join(sides[0].split())
        agreeing(sides)
        if NAME.fullmatch(name):
            return "named", last, difference(sides) if "(" not in name else None, name
        return "equation", last, difference(sides), ""
    if "=" in operators:
        raise Unreadable("mixes equations and inequalities")
    read_sides = [Reader(s).whole() for s in sides]
    chain = []
    for left, operator, right in zip(read_sides, operators, read_sides[1:]):
        if operator in ">≥":
            chain.append((sized(right - left), {">": "<", "≥": "≤"}[operator]))
        else:
            chain.append((sized(left - right), operator))
    return "inequality", chain


def measured(text):
    """Return the text without its unit, and the unit."""
    if found := PERCENT.search(text):
        return text[: found.start()], "%"
    for pattern in (UNIT, WORDS):
        found = pattern.search(text)
        if not found or not text[: found.start()].strip() or found[1].strip() in ("e", "i"):
            continue
        word = " ".join(found[1].lower().split())
        if word in FUNCTIONS or word in CONSTANTS or word in LETTERS:
            continue
        return text[: found.start()], word + (found[2] or "")
    return text, ""


def agreeing(sides):
    """Check that all sides of an equation without letters are the same number. x = 29 = 30 is two answers."""
    numbers = [side for side in map(reading, sides) if side is not None and side.is_number and not side.has(*INFINITE)]
    if any(not equal(numbers[-1], number) for number in numbers[:-1]):
        raise Unreadable("is equal to two numbers")


def reading(side):
    """Return a side's expression; None if it is a name."""
    return None if NAME.fullmatch("".join(side.split())) else Reader(UNIT.sub("", DEGREES.sub("", side))).whole()


def difference(sides):
    """Return the first side minus the second; None if the equation does not have two sides."""
    if len(sides) != 2:
        return None
    return sized(Reader(sides[0]).whole() - Reader(sides[1]).whole())


def same(a, b):
    """Return whether two shapes are equal."""
    kinds = {a[0], b[0]}
    if kinds & {"named", "equation"}:
        return same_equations(a, b)
    if a[0] != b[0]:
        x, y = (bounds_of(coordinates(x, other)) for x, other in ((a, b), (b, a)))
        return x[0] == y[0] and x[0] in BRACKETED and same(x, y)
    match a[0]:
        case "value":
            return (a[2] == b[2] or not (a[2] and b[2])) and equal(a[1], b[1])
        case "matrix":
            if [len(r) for r in a[1]] != [len(r) for r in b[1]]:
                return False
            return all(equal(x, y) for p, q in zip(a[1], b[1]) for x, y in zip(p, q))
        case "inequality":
            return paired(a[1], b[1], lambda p, q: p[1] == q[1] and proportional(p[0], q[0], p[1] != "≠"))
        case "set" | "union":
            return paired(a[1], b[1], same_elements)
    return len(a[1]) == len(b[1]) and all(same_elements(x, y) for x, y in zip(a[1], b[1]))


def coordinates(a, other):
    """Return x=1, y=2 as the point (1,2) where the other answer is a point. The names are in the alphabet's order."""
    names = [x[3] for x in a[1] if x[0] == "named"] if a[0] == "set" else []
    if other[0] != "()" or len(names) != len(a[1]) or len(set(names)) != len(names):
        return a
    return "()", [x[1] for x in sorted(a[1], key=lambda x: x[3])]


def bounds_of(a):
    """Return an inequality in one letter as an interval, or a list of them as a union. Other shapes stay."""
    if a[0] == "set" and len(a[1]) > 1 and all(x[0] == "inequality" for x in a[1]):
        parts = [bounds_of(x) for x in a[1]]
        return ("union", parts) if all(p[0] in BRACKETED for p in parts) else a
    if a[0] != "inequality" or len(a[1]) > 2:
        return a
    ends = {-1: ("(", -sympy.oo), 1: (")", sympy.oo)}  # the interval's lower and upper end
    letters = set().union(*(e.free_symbols for e, _ in a[1]))
    for e, operator in a[1]:
        slope = e.coeff(next(iter(letters))) if len(letters) == 1 else sympy.S.Zero
        rest = e - slope * next(iter(letters), 0)
        if slope == 0 or not slope.is_number or not rest.is_number:
            return a
        at, up = sized(-rest / slope), 1 if mpmath.re(value(slope, {}).v) > 0 else -1
        if operator == "≠":
            sides = ("()", [endpoint(-sympy.oo), endpoint(at)]), ("()", [endpoint(at), endpoint(sympy.oo)])
            return ("union", list(sides)) if len(a[1]) == 1 else a
        if ends[up][1] not in INFINITE:
            return a  # two bounds on one side
        ends[up] = ")]"[operator == "≤"] if up > 0 else "(["[operator == "≤"], at
    return ends[-1][0] + ends[1][0], [endpoint(ends[-1][1]), endpoint(ends[1][1])]


def endpoint(e):
    return "value", e, ""


def same_elements(a, b):
    """Compare elements of lists. There a name identifies its element: x=2, y=3 is not x=3, y=2."""
    return not (a[0] == b[0] == "named" and a[3] != b[3]) and same(a, b)


def same_equations(a, b):
    """Compare shapes of which at least one is an equation.

    Compared with something that is not an equation, an equation means its last side, unless it is the gold and its
    first side is not a name. The same holds for two equations whose first sides are names.
    """
    equations = [x for x in (a, b) if x[0] in ("named", "equation")]
    if b[0] == "equation" and len(equations) == 1 and (b[2] is None or b[2].free_symbols):
        return False
    if len(equations) == 2 and {a[0], b[0]} != {"named"}:
        return a[2] is not None and b[2] is not None and proportional(a[2], b[2], False)
    if len(equations) == 2 and a[2] is not None and b[2] is not None and proportional(a[2], b[2], False):
        return True
    return same(*(x[1] if x[0] in ("named", "equation") else x for x in (a, b)))


def paired(a, b, alike):
    """Return whether the elements can be matched one to one, in any order."""
    left = list(b)
    for x in a:
        at = next((i for i, y in enumerate(left) if alike(x, y)), None)
        if at is None:
            return False
        del left[at]
    return not left


def equal(a, b):
    """Return whether two expressions are the same: in sympy's form, or at every point, on the same domain."""
    if a == b:
        return True
    if a.has(*INFINITE) or b.has(*INFINITE) or a.is_Rational and b.is_Rational:
        return False
    pairs = values(a, b)
    return pairs is not None and all(near(x, y) for x, y in pairs)


def proportional(a, b, upright):
    """Return whether a is b times a number that is not 0 and, if upright, is positive."""
    pairs = values(a, b)
    if pairs is None:
        return False
    if all(nothing(x) and nothing(y) for x, y in pairs):
        return True
    x, y = max(pairs, key=lambda p: abs(p[1].v))
    if nothing(x) or nothing(y) or upright and not mpmath.re(x.v / y.v) > 0:
        return False
    return all(near(product(p, y), product(q, x)) for p, q in pairs)


def product(a, b):
    return Value(a.v * b.v, abs(a.v) * b.error + abs(b.v) * a.error)


# What may be around the letter of an option.
WRAPPING = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|boxed|fbox)\s*\{(.*)\}|\*\*(.*)\*\*|\*(.*)\*|__(.*)__|"
    r"\$(.*)\$|\\?\((.*?)\\?\)|\\?\[(.*?)\\?\]|\{(.*)\}|(.*)[.:)]|(?i:option|choice|answer)[\s:]+(.*)", re.DOTALL
)


def option(text):
    """Return the capital letter that is all of a text but its wrapping; "" if there is more."""
    text = text[:LENGTH].strip()
    while found := WRAPPING.fullmatch(text):
        text = next(part for part in found.groups() if part is not None).strip()
    return text if re.fullmatch("[A-Z]", text) else ""


def compared(answer, gold):
    if option(gold) and option(answer):
        return option(answer) == option(gold)
    return same(read(answer), read(gold))


def main():
    pair = json.load(sys.stdin)
    DRAWS.seed(pair["answer"] + "\n" + pair["gold"])
    try:
        verdict = "equal" if compared(pair["answer"], pair["gold"]) else "different"
    except Exception:  # Unreadable, or an error of sympy; no answer can avoid its grade by an error
        verdict = "unreadable"
    print(json.dumps({"verdict": verdict, "grader": "sympy " + sympy.__version__}))


main()
