"""Runs each program of a JSON list as a notebook cell: its output, its last value, and whether it failed."""
import ast
import contextlib
import io
import json
import sys


def run(source):
    out = io.StringIO()
    value = None
    with contextlib.redirect_stdout(out):
        try:
            body = ast.parse(source).body
            last = body.pop() if isinstance(body[-1], ast.Expr) else None
            names = {}
            exec(compile(ast.Module(body, []), "main.py", "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "main.py", "eval"), names)
        except Exception as error:
            return {"failed": type(error).__name__, "stdout": out.getvalue(), "value": ""}
    return {"failed": "", "stdout": out.getvalue(), "value": "" if value is None else repr(value)}


json.dump([run(source) for source in json.load(sys.stdin)], sys.stdout)
