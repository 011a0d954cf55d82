import json
import random
import sys

SIMPLE = (bool, int, float, complex, str, bytes, type(None))


def plain(value):
    """Returns a copy of plain data. Another value could make every comparison of a test true."""
    kind = type(value)
    if kind in SIMPLE:
        return value
    if kind in (list, tuple, set, frozenset):
        return kind([plain(v) for v in value])
    if kind is dict:
        return {plain(k): plain(v) for k, v in value.items()}
    raise TypeError("the function returned a value of type " + kind.__name__)


def parsed(source, name):
    """Returns the compiled source, or None if it is not Python."""
    try:
        return compile(source, name, "exec")
    except (SyntaxError, ValueError):
        return None


def grade(program):
    task = json.load(sys.stdin)
    out, entry = sys.stdout, task["entry_point"]
    prompt = parsed(task["prompt"], "prompt")
    own, judge = {"__name__": "solution"}, {"__name__": "tests"}
    if prompt is not None:  # imports, other functions, and the head of the function
        exec(prompt, own)
        exec(prompt, judge)
    if prompt is not None and parsed(program, "solution") is None:
        program = task["prompt"] + program  # the function's body alone
    exec(compile(program, "solution", "exec"), own)
    function = own[entry]

    def candidate(*args, **named):
        return plain(function(*args, **named))

    judge[entry] = candidate
    random.seed(0)
    exec(compile(task["test"], "tests", "exec"), judge)
    if "check" in judge:
        judge["check"](candidate)
    out.write("\n" + task["token"] + "\n")
    out.flush()


