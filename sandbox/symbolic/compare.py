# Reads answers that are lists, intervals, equations and matrices, compares them, and says the verdict.

import json
import sys

# TeX commands by what stands for them from here on; others stay.
COMMANDS = {
    **dict.fromkeys(("dfrac", "tfrac", "cfrac"), r"\frac "),
    **dict.fromkeys(("dbinom", "tbinom"), r"\binom "),
    **dict.fromkeys(("left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr", "bigg", "Bigg", "biggl", "biggr"), " "),
    **dict.fromkeys(("displaystyle", "textstyle", "limits", "quad", "qquad"), " "),
    **dict.fromkeys(("lvert", "rvert", "vert", "mid"), "|"),
    **dict.fromkeys(("le", "leq", "leqslant"), "≤"),
    **dict.fromkeys(("ge", "geq", "geqslant"), "≥"),
    **dict.fromkeys(("ne", "neq"), "≠"),
    **{"lt": "<", "gt": ">", "langle": "(", "rangle": ")", "cup": "∪", "pm": "±", "mp": "∓", "in": "∈"},
}
SPACING = re.compile(r"\\(?:([A-Za-z]+)|(\\)|[,;:! ()\[\]])|[~$]")
SIGNS = str.maketrans({
    "−": "-", "–": "-", "×": "*", "·": "*", "÷": "/", "²": "^2", "³": "^3", "°": r"^\circ", "√": " sqrt ", "∞": r"\infty ", "π": r"\pi ",
})
CONJUNCTION = re.compile(r"\\(?:text|mbox|mathrm)\s*\{\s*(?:and|or)\s*\}|\b(?:and|or)\b")
RELATION = re.compile(r"[=<>≤≥≠]")
NAME = re.compile(r"\\?[A-Za-z]+(?:_\{?[A-Za-z0-9]+\}?)?(?:\([A-Za-z](?:,[A-Za-z])*\))?")
UNIT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mbox)\s*\{([^{}]*)\}\s*(?:\^\s*\{?\s*([0-9])\s*\}?)?\s*$")
DEGREES = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)\s*$")
MATRIX = re.compile(r"\\begin\s*\{([pbB]?matrix)\}(.*)\\end\s*\{\1\}", re.DOTALL)
GROUPED = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])")
LENGTH = 4000
INFINITE = (sympy.oo, -sympy.oo)
NESTING = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def read(text):
    """The answer as a shape: a tuple of its kind and what that kind holds."""
    if len(text) > LENGTH:
        raise Unreadable("is too long")
    if any(ord(c) < 32 and c not in "\t\n\r" for c in text):
        raise Unreadable("has control characters")
    text = CONJUNCTION.sub(",", text.translate(SIGNS).replace("{,}", ""))
    text = SPACING.sub(plain, text)
    for written, sign in (("<=", "≤"), (">=", "≥"), ("!=", "≠")):
        text = text.replace(written, sign)
    return shape(text.strip().rstrip(".").strip(), 0)


def plain(found):
    """What stands for a TeX command or a space."""
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
    """Cuts at the separators outside brackets."""
    parts, depth, begin = [], 0, 0
    for at, c in enumerate(text):
        depth += NESTING.get(c, 0)
        if c == separator and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return parts + [text[begin:]]


def enclosed(text, opening, closing):
    """What stands between brackets that are each other's partners; None where they are not."""
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
    """One element: an expression with its unit, an equation, a chain of inequalities; ± makes two of it."""
    if "±" in text or "∓" in text:
        return "set", [single(text.replace("±", up).replace("∓", down)) for up, down in ("+-", "-+")]
    operators = RELATION.findall(text)
    if not operators:
        unit = ""
        if (found := UNIT.search(text)) and text[: found.start()].strip() and found[1].strip() not in ("e", "i"):
            text, unit = text[: found.start()], " ".join(found[1].lower().split()) + (found[2] or "")
        return "value", Reader(DEGREES.sub("", text)).whole(), unit
    sides = RELATION.split(text)
    if set(operators) == {"="}:
        last = single(sides[-1])
        if NAME.fullmatch("".join(sides[0].split())):
            return "named", last, difference(sides) if "(" not in sides[0] else None
        return "equation", last, difference(sides)
    if "=" in operators:
        raise Unreadable("mixes equations and inequalities")
    read_sides = [Reader(s).whole() for s in sides]
    chain = []
    for left, operator, right in zip(read_sides, operators, read_sides[1:]):
        chain.append((right - left, {">": "<", "≥": "≤"}[operator]) if operator in ">≥" else (left - right, operator))
    return "inequality", chain


def difference(sides):
    """The first side less the second, of an equation that has two."""
    if len(sides) != 2:
        return None
    return Reader(sides[0]).whole() - Reader(sides[1]).whole()


def same(a, b):
    """Whether two shapes are equal."""
    kinds = {a[0], b[0]}
    if kinds & {"named", "equation"}:
        return same_equations(a, b)
    if a[0] != b[0]:
        return False
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
            return paired(a[1], b[1], same)
    return len(a[1]) == len(b[1]) and all(same(x, y) for x, y in zip(a[1], b[1]))


def same_equations(a, b):
    """An equation beside what is none stands for its last side; so do two whose first sides are names."""
    equations = [x for x in (a, b) if x[0] in ("named", "equation")]
    if len(equations) == 2 and {a[0], b[0]} != {"named"}:
        return a[2] is not None and b[2] is not None and proportional(a[2], b[2], False)
    if len(equations) == 2 and a[2] is not None and b[2] is not None and proportional(a[2], b[2], False):
        return True
    return same(*(x[1] if x[0] in ("named", "equation") else x for x in (a, b)))


def paired(a, b, alike):
    """Whether the elements pair off, in any order."""
    left = list(b)
    for x in a:
        at = next((i for i, y in enumerate(left) if alike(x, y)), None)
        if at is None:
            return False
        del left[at]
    return not left


def equal(a, b):
    """Whether two expressions are the same: as sympy writes them, or at every point."""
    if a == b:
        return True
    if a.has(*INFINITE) or b.has(*INFINITE) or a.is_Rational and b.is_Rational:
        return False
    return all(near(x, y) for x, y in values(a, b))


def proportional(a, b, upright):
    """Whether a is b times a number that is not 0 and, where upright, is positive."""
    pairs = values(a, b)
    if all(near(x, 0) and near(y, 0) for x, y in pairs):
        return True
    x, y = max(pairs, key=lambda p: abs(p[1]))
    if near(x, 0) or near(y, 0) or upright and not mpmath.re(x / y) > 0:
        return False
    return all(near(p * y, q * x) for p, q in pairs)


def main():
    pair = json.load(sys.stdin)
    DRAWS.seed(pair["answer"] + "\n" + pair["gold"])
    try:
        verdict = "equal" if same(read(pair["answer"]), read(pair["gold"])) else "different"
    except (Unreadable, ArithmeticError, RecursionError, TypeError, ValueError):  # the latter are sympy's, of what it cannot hold
        verdict = "unreadable"
    print(json.dumps({"verdict": verdict, "grader": "sympy " + sympy.__version__}))


main()
