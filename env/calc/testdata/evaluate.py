"""Evaluates a JSON list of expressions; / must leave no remainder."""
import ast
import json
import sys


def value(node):
    if isinstance(node, ast.Constant):
        return node.value
    a, b = value(node.left), value(node.right)
    if isinstance(node.op, ast.Div):
        if a % b:
            raise ValueError("%d / %d leaves a remainder" % (a, b))
        return a // b
    return {ast.Add: int.__add__, ast.Sub: int.__sub__, ast.Mult: int.__mul__,
            ast.FloorDiv: int.__floordiv__, ast.Mod: int.__mod__}[type(node.op)](a, b)


json.dump([str(value(ast.parse(e, mode="eval").body)) for e in json.load(sys.stdin)], sys.stdout)
