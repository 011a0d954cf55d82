# Judge and program are two processes. The program's is forked before the judge reads tests and token, has neither, and
# serves calls. Arguments, results and exceptions cross as data, from which each side makes values of its own classes.
# So nothing that a program does to its interpreter, and nothing that it returns, reaches the tests.

import array
import collections
import ctypes
import datetime
import decimal
import enum
import fractions
import io
import json
import os
import random
import resource
import signal
import sys
import types

PROGRAM = "__main__"  # the entry point of tests that run all of a program
MOST_ITEMS = 1 << 20  # of an iterator, which is read to its end
PR_SET_DUMPABLE = 4
LISTS = {c.__name__: c for c in (list, tuple, set, frozenset, collections.deque)}
DICTS = {c.__name__: c for c in (dict, collections.Counter, collections.OrderedDict)}
VIEWS = {"keys": type({}.keys()), "values": type({}.values()), "items": type({}.items())}
TEXTS = {  # a class whose values a text holds: how it is written and read
    "Fraction": (fractions.Fraction, str, fractions.Fraction),
    "Decimal": (decimal.Decimal, str, decimal.Decimal),
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "bytearray": (bytearray, bytearray.hex, bytearray.fromhex),
}
MUTABLE = (list, dict, set, bytearray, collections.deque)


class Side:
    """One process: what it sends, what it receives, and the objects that the other side may call."""

    def __init__(self, reads, writes):
        self.reads, self.writes = os.fdopen(reads, "r"), os.fdopen(writes, "w")
        self.classes, self.objects, self.judge = {}, [], False

    def know(self, names, entry):
        """Take the classes that the prompt defines. Both sides have them, and instances cross as their attributes."""
        for name, value in names.items():
            if isinstance(value, type) and value.__module__ == names["__name__"] and name != entry:
                self.classes[name] = value

    def send(self, message):
        self.writes.write(json.dumps(message) + "\n")
        self.writes.flush()

    def receive(self):
        line = self.reads.readline()
        if not line:
            raise EOFError("the program ended")
        return json.loads(line)

    def ask(self, message, arguments=()):
        """Send a request and return the answer. Until it comes, the other side may call functions that it was given."""
        self.send(message)
        while True:
            answer = self.receive()
            if answer[0] == "returned":
                for at, changed in answer[2]:
                    replace(arguments[at], self.read(changed))
                return self.read(answer[1])
            if answer[0] == "raised":
                raise self.exception(answer[1], answer[2])
            self.answer(answer)

    def answer(self, request):
        """Do what the other side asks for. The judge only calls functions that its tests passed."""
        try:
            what, number, *rest = request
            target = self.objects[number]
            if what == "attribute" and not self.judge:
                self.send(["returned", self.write(getattr(target, rest[0])), []])
                return
            if what != "call" or self.judge and not callable(target):
                raise TypeError("the request " + str(what))
            arguments = [self.read(a) for a in rest[0]]
            result = self.write(target(*arguments, **{k: self.read(v) for k, v in rest[1].items()}))
            changed = [[at, now] for at, a in enumerate(arguments) if (now := self.changed(a, rest[0][at])) is not None]
            self.send(["returned", result, changed])
        except Exception as error:
            self.send(["raised", type(error).__name__, self.texts(error)])
        except BaseException as error:  # SystemExit, KeyboardInterrupt
            self.send(["raised", "RuntimeError", [type(error).__name__]])

    def changed(self, argument, before):
        """Return a mutable argument as it is after the call; None if the call did not change it."""
        if not isinstance(argument, MUTABLE) and type(argument).__name__ not in self.classes:
            return None
        now = self.write(argument)
        return None if now == before else now

    def texts(self, error):
        try:
            return [self.write(a) for a in error.args]
        except Exception:
            return []

    def exception(self, name, arguments):
        known = self.classes.get(name) or getattr(sys.modules["builtins"], str(name), None)
        if not (isinstance(known, type) and issubclass(known, Exception)):
            known = RuntimeError
        try:
            return known(*(self.read(a) for a in arguments))
        except Exception:
            return RuntimeError(name)

    def write(self, v):
        """Return a value as JSON. What no data stands for becomes an object that the other side can call."""
        kind = type(v)
        if v is None or kind in (bool, str, float):
            return v
        if kind is int:
            return v if -(1 << 62) < v < 1 << 62 else ["int", hex(v)]
        if kind is complex:
            return ["complex", v.real, v.imag]
        if kind.__name__ in LISTS and kind is LISTS[kind.__name__]:
            return [kind.__name__, [self.write(x) for x in v]]
        if kind.__name__ in DICTS and kind is DICTS[kind.__name__]:
            return [kind.__name__, [[self.write(k), self.write(x)] for k, x in v.items()]]
        if kind.__name__ in TEXTS and kind is TEXTS[kind.__name__][0]:
            return [kind.__name__, TEXTS[kind.__name__][1](v)]
        for name, view in VIEWS.items():
            if isinstance(v, view):
                return [name, [self.write(x) for x in v]]
        if kind is range:
            return ["range", v.start, v.stop, v.step]
        if kind is datetime.timedelta:
            return ["timedelta", v.days, v.seconds, v.microseconds]
        if kind is array.array:
            return ["array", v.typecode, [self.write(x) for x in v]]
        if kind.__module__ == "numpy":
            return self.write_numpy(v)
        return self.write_other(v, kind)

    def write_numpy(self, v):
        if hasattr(v, "shape") and v.shape != ():
            return ["numpy", v.dtype.str, self.write(v.tolist())]
        return self.write(v.item())

    def write_other(self, v, kind):
        known = kind.__name__ in self.classes
        if isinstance(v, enum.Enum) and known:
            return ["enum", kind.__name__, v.name]
        if isinstance(v, tuple) and hasattr(kind, "_fields"):
            return ["named", kind.__name__, list(kind._fields), [self.write(x) for x in tuple(v)]]
        for base in (int, float, str, bytes, list, tuple, dict, set, frozenset, collections.deque):
            if isinstance(v, base):  # a class of one's own with the value of another
                return self.write(base(v))
        if known and not isinstance(v, type):
            slots = [n for c in kind.__mro__ for n in getattr(c, "__slots__", ()) if hasattr(v, n)]
            names = [*getattr(v, "__dict__", ()), *slots]
            return ["instance", kind.__name__, {n: self.write(getattr(v, n)) for n in names}]
        if hasattr(kind, "__next__"):
            items = []
            for x in v:
                if len(items) == MOST_ITEMS:
                    raise ValueError("an iterator that does not end")
                items.append(self.write(x))
            return ["iterator", items]
        if self.judge and not callable(v):
            raise TypeError("cannot pass a value of type " + kind.__name__)
        self.objects.append(v)
        return ["object", len(self.objects) - 1]

    def read(self, data):
        """Return the value that data stands for, built of this side's own classes."""
        if not isinstance(data, list):
            return data
        kind, *rest = data
        if kind in LISTS:
            return LISTS[kind](self.read(x) for x in rest[0])
        if kind in DICTS:
            return DICTS[kind]({self.read(k): self.read(x) for k, x in rest[0]})
        if kind in TEXTS:
            return TEXTS[kind][2](rest[0])
        match kind:
            case "int":
                return int(rest[0], 16)
            case "complex":
                return complex(*rest)
            case "keys":
                return dict.fromkeys(self.read(x) for x in rest[0]).keys()
            case "values":
                return dict(enumerate(self.read(x) for x in rest[0])).values()
            case "items":
                return dict(self.read(x) for x in rest[0]).items()
            case "range":
                return range(*rest)
            case "timedelta":
                return datetime.timedelta(*rest)
            case "array":
                return array.array(rest[0], [self.read(x) for x in rest[1]])
            case "numpy":
                import numpy

                return numpy.array(self.read(rest[1]), dtype=numpy.dtype(rest[0]))
            case "enum":
                return self.classes[rest[0]][rest[1]]
            case "named":
                return self.named(*rest)
            case "instance":
                return self.instance(*rest)
            case "iterator":
                return iter([self.read(x) for x in rest[0]])
            case "object":
                return Remote(self, int(rest[0]))
        raise TypeError("a value of kind " + str(kind))

    def named(self, name, fields, items):
        known = self.classes.get(name)
        if known is None or not issubclass(known, tuple):
            known = collections.namedtuple(name, fields, rename=True)
        return known._make(self.read(x) for x in items)

    def instance(self, name, attributes):
        made = object.__new__(self.classes[name])
        for key, value in attributes.items():
            object.__setattr__(made, key, self.read(value))
        return made


class Remote:
    """An object of the other side. It can be called and, if it is the program's, has attributes."""

    def __init__(self, side, number):
        self.__dict__.update(_side=side, _number=number)

    def __call__(self, *arguments, **named):
        side = self._side
        return side.ask(
            ["call", self._number, [side.write(a) for a in arguments], {k: side.write(v) for k, v in named.items()}],
            arguments,
        )

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self._side.ask(["attribute", self._number, name])


def replace(argument, now):
    """Make an argument what the call made of it."""
    if isinstance(argument, (list, bytearray)):
        argument[:] = now
    elif isinstance(argument, (dict, set)):
        argument.clear()
        argument.update(now)
    elif isinstance(argument, collections.deque):
        argument.clear()
        argument.extend(now)
    elif type(argument) is type(now):
        argument.__dict__.clear()
        argument.__dict__.update(now.__dict__)


def parsed(source, name):
    """Return the compiled source, or None if it is not Python."""
    try:
        return compile(source, name, "exec")
    except (SyntaxError, ValueError):
        return None


def namespace(name):
    """Return the names of a new module. Dataclasses look theirs up."""
    sys.modules[name] = types.ModuleType(name)
    return sys.modules[name].__dict__


def whole(source):
    """Return a function that runs a whole program: it takes its standard input and returns what it prints."""
    code = compile(source, "solution", "exec")

    def run(text):
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
        sys.stdout = io.TextIOWrapper(printed := io.BytesIO())
        try:
            exec(code, namespace(PROGRAM))
        except SystemExit:
            pass
        sys.stdout.flush()
        return printed.getvalue().decode()

    return run


def load(side, program, prompt_text, entry):
    """Return what the tests call: the function of a program, also of its class Solution, or all of the program."""
    if entry == PROGRAM:
        return whole(program)
    prompt, own = parsed(prompt_text, "prompt"), namespace("solution")
    if prompt is not None:  # imports, other functions, and the head of the function
        exec(prompt, own)
        side.know(own, entry)
    if prompt is not None and parsed(program, "solution") is None:
        program = prompt_text + program  # the function's body alone
    exec(compile(program, "solution", "exec"), own)
    side.classes.update({n: own[n] for n in side.classes if isinstance(own.get(n), type)})
    if entry not in own and "Solution" in own:
        return getattr(own["Solution"](), entry)
    return own[entry]


def serve(side, program):
    """Run the program, and its function for each call."""
    try:
        side.objects.append(load(side, program, *side.receive()))
    except BaseException as error:
        side.send(["raised", type(error).__name__, side.texts(error)])
        return
    random.seed(0)
    side.send(["returned", None, []])
    while True:
        side.answer(side.receive())


def ended(child):
    """End the call as the program has ended: by a limit, or by a signal, which may have come from outside."""
    _, status, used = os.wait4(child, 0)
    spent = used.ru_utime + used.ru_stime
    if os.WIFSIGNALED(status):
        limit = spent >= resource.getrlimit(resource.RLIMIT_CPU)[0] / 2
        number = signal.SIGXCPU if limit else os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    raise RuntimeError("the program ended")


def judge(side, child):
    task = json.load(sys.stdin)
    os.close(0)
    out, entry, side.judge = sys.stdout, task["entry_point"], True
    names = namespace("tests")
    if entry != PROGRAM and (prompt := parsed(task["prompt"], "prompt")) is not None:
        exec(prompt, names)
        side.know(names, entry)
    try:
        side.ask([task["prompt"], entry])
        names[entry] = names["candidate"] = candidate = Remote(side, 0)
        random.seed(0)
        exec(compile(task["test"], "tests", "exec"), names)
        if "check" in names:
            names["check"](candidate)
    except (EOFError, BrokenPipeError):
        ended(child)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    out.write("\n" + task["token"] + "\n")
    out.flush()


def grade(program):
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # the program's process cannot look into the judge's
    to_program, from_judge = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            nothing, end = os.pipe()
            os.close(end)
            os.dup2(nothing, 0)
            for fd in (nothing, to_program[1], from_judge[0]):
                os.close(fd)
            serve(Side(to_program[0], from_judge[1]), program)
        except BaseException:
            pass  # the judge has ended, or the program has closed the pipes
        finally:
            os._exit(code)
    os.close(to_program[0])
    os.close(from_judge[1])
    judge(Side(from_judge[0], to_program[1]), child)


