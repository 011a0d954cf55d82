"""Runs a user's own Python environments for Ropewalk. Only the standard library is used.

Requests are JSON lines on standard input, replies are JSON lines on standard output, one for each request:

    {"do": "open", "session": 1, "module": "package:factory", "kwargs": {}, "kind": "gymnasium", "path": "",
     "actions": []}
    {"do": "reset", "session": 1, "seed": 7, "split": "train"}
    {"do": "step", "session": 1, "action": "left"}
    {"do": "solve", "session": 1}
    {"do": "close", "session": 1}
    {"do": "tasks", "module": "package:factory", "kwargs": {}, "kind": "gymnasium", "path": "", "actions": []}
    {"do": "load", "module": "package:function", "path": "", "text": ""}
    {"do": "score", "module": "package:function", "kwargs": {}, "path": "", "batch": false, "trajectories": [{}]}

A reply is {"text": …, "reward": …, "done": …, "success": true|false|null}, {"actions": […]|null},
{"tasks": {"train": …, "held_out": …}}, {"scores": [{"score": …, "success": …} or {"error": …}]} or {"error": …}.
The first may also have "admissible", "score" and, after a reset, "type" and "level". A number that JSON cannot write
(NaN, infinity) is an error, and so is a value of a wrong type. What the user's code prints goes to standard error.
Before the reply to a request that imported files of the user's own comes a line with them:

    {"code": [{"path": "/opt/rewards/scoring.py", "name": "scoring.py", "sha256": …}]}
"""

import hashlib
import importlib
import importlib.machinery
import importlib.util
import json
import math
import os
import sys
import types


class Code:
    """The files of the user's own code that were imported: those below `path`, and below the folder of the module.

    They are compiled from the bytes whose digest is reported. Compiled files in __pycache__ are not used for them:
    Python takes such a file for current if the source was changed in the same second and has the same size.
    """

    def __init__(self):
        self.folders = []  # pairs: what is the user's own, and the folder that names are relative to
        self.new = []  # files that no line has reported yet
        plain = importlib.machinery.SourceFileLoader.get_code

        def get_code(loader, module):
            path = os.path.abspath(loader.get_filename(module))
            name = self.name(path)
            if name is None:
                return plain(loader, module)
            text = loader.get_data(path)
            self.new.append({"path": path, "name": name, "sha256": hashlib.sha256(text).hexdigest()})
            return loader.source_to_code(text, path)

        importlib.machinery.SourceFileLoader.get_code = get_code

    def name(self, path):
        """Returns the name of a file of the user's own; None for another file."""
        for own, base in self.folders:
            if path == own or path.startswith(os.path.join(own, "")) and not installed(path[len(own) :]):
                return os.path.relpath(path, base)
        return None

    def follow(self, package, path):
        """Takes the folder of a package or module, and path, for the user's own."""
        if path:
            self.folders.append((os.path.abspath(path),) * 2)
        found = importlib.util.find_spec(package.partition(".")[0])
        for folder in (found and found.submodule_search_locations) or []:
            self.folders.append((os.path.abspath(folder), os.path.dirname(os.path.abspath(folder))))
        if found and found.has_location and not found.submodule_search_locations:
            file = os.path.abspath(found.origin)
            folder = os.path.dirname(file)
            alone = installed(folder) or folder == os.path.dirname(os.__file__)
            self.folders.append((file if alone else folder, folder))


def installed(path):
    """Reports whether a path leads through a folder of installed packages."""
    return not {"site-packages", "dist-packages"}.isdisjoint(path.split(os.sep))


CODE = Code()


def load(module, path, text=""):
    """Returns the object that package:name means. A text is that of the module, which is no file then."""
    if path and path not in sys.path:
        sys.path.insert(0, path)
    package, _, name = module.partition(":")
    if not package or not name:
        raise ValueError(f"module must be package:name, got {module!r}")
    if package not in sys.modules:
        importlib.invalidate_caches()  # a file may be new
        CODE.follow(package, path)
    if text and package not in sys.modules:
        made = types.ModuleType(package)
        exec(compile(text, f"<{package}>", "exec"), made.__dict__)
        sys.modules[package] = made
    found = importlib.import_module(package)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def text_of(seen):
    """Renders an observation as text: a text as it is, rows of a table as lines, anything else as JSON."""
    if isinstance(seen, str):
        return seen
    if hasattr(seen, "tolist"):  # arrays and scalars of numpy
        seen = seen.tolist()
    if isinstance(seen, (list, tuple)) and seen and all(isinstance(row, (list, tuple)) for row in seen):
        return "\n".join(" ".join(str(x) for x in row) for row in seen)
    return json.dumps(seen, sort_keys=True, ensure_ascii=False, allow_nan=False, default=plain)


def plain(value):
    """Converts a value of numpy to one that JSON has."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"the observation holds a {type(value).__name__}, which has no form as text")


def number(value, what):
    """Returns a finite number, or raises."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        value = float(value)
    if not isinstance(value, (int, float)):
        raise TypeError(f"the {what} is a {type(value).__name__}, want a number")
    if not math.isfinite(value):
        raise ValueError(f"the {what} is {value}, want a finite number")
    return float(value)


def texts(value, what):
    """Returns a list of texts that are not empty, or raises."""
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{what} is a {type(value).__name__}, want a list of texts")
    for i, text in enumerate(value):
        if not isinstance(text, str) or not text:
            raise TypeError(f"{what}: item {i} is {text!r:.100}, want a text that is not empty")
    return list(value)


class Gymnasium:
    """An environment with reset(seed=…) and step(action), of Gymnasium's form or of the older one of Gym."""

    def __init__(self, made, actions):
        self.made, self.actions = made, actions

    def method(self, name):
        """Returns a method that the environment has beyond Gymnasium's form, also below Gymnasium's wrappers."""
        for made in (self.made, getattr(self.made, "unwrapped", None)):
            if callable(getattr(made, name, None)):
                return getattr(made, name)
        raise TypeError(f"the environment has no method {name}()")

    def tasks(self):
        got = self.method("tasks")()
        numbers = got.values() if isinstance(got, dict) and set(got) == {"train", "held_out"} else [None]
        if not all(type(n) is int and 1 <= n <= 1_000_000 for n in numbers):
            raise TypeError(
                'tasks() must return {"train": …, "held_out": …} with whole numbers from 1 to 1,000,000, '
                f"got {got!r:.100}"
            )
        return {"tasks": got}

    def solve(self):
        plan = self.method("expert")()
        plan = None if plan is None else texts([plan] if isinstance(plan, str) else plan, "expert()")
        return {"actions": self.known(plan, "expert()")}

    def known(self, names, what):
        """Returns names of actions; it raises if the recipe lists actions and one is not among them."""
        for name in names or []:
            if self.actions and name not in self.actions:
                raise ValueError(f"{what} holds {name!r:.100}, which is not one of the actions of the recipe")
        return names

    def told(self, info, begins, done):
        """Reads what info says about the state and, when an episode begins, about its task."""
        out = {}
        if not isinstance(info, dict):
            return out
        if info.get("admissible") is not None:
            out["admissible"] = self.known(texts(info["admissible"], "info: admissible"), "info: admissible")
            if not out["admissible"] and not done:
                raise ValueError("info: admissible is empty before the end of the episode")
        if info.get("score") is not None:
            out["score"] = number(info["score"], "score in info")
            if not 0 <= out["score"] <= 1:
                raise ValueError(f"info: score is {out['score']:g}, want a number from 0 to 1")
        if begins and info.get("type") is not None:
            (out["type"],) = texts([info["type"]], "info: type")
            if len(out["type"]) > 200 or not out["type"].isprintable():
                raise ValueError(f"info: type is {out['type']!r:.100}, want one line of at most 200 characters")
        if begins and info.get("level") is not None:
            level = info["level"].item() if hasattr(info["level"], "item") else info["level"]
            if type(level) is not int or not 1 <= level <= 1_000_000:
                raise TypeError(f"info: level is {level!r:.100}, want a whole number from 1 to 1,000,000")
            out["level"] = level
        return out

    def reset(self, seed, split):
        got = self.made.reset(seed=seed, options={"split": split}) if split else self.made.reset(seed=seed)
        seen, info = got if isinstance(got, tuple) and len(got) == 2 else (got, {})
        return {"text": text_of(seen), **self.told(info, True, False)}

    def step(self, action):
        got = self.made.step(self.actions.index(action) if self.actions else action)
        if not isinstance(got, tuple) or len(got) not in (4, 5):
            raise TypeError("step must return 5 values (Gymnasium) or 4 (Gym)")
        info = got[-1] if isinstance(got[-1], dict) else {}
        success = info.get("success", info.get("is_success"))
        done = any(bool(x) for x in got[2:-1])
        return {
            "text": text_of(got[0]),
            "reward": number(got[1], "reward"),
            "done": done,
            "success": None if success is None else bool(success),
            **self.told(info, False, done),
        }

    def close(self):
        if hasattr(self.made, "close"):
            self.made.close()


class Question:
    """A list of questions with a score: an object with score_answer(answer, entry), or a pair (rows, score).

    Sessions with the same factory and arguments share one list, because making it may take long.
    """

    def __init__(self, made):
        if isinstance(made, tuple) and len(made) == 2 and callable(made[1]):
            self.rows, self.score = made
        elif hasattr(made, "score_answer"):
            self.rows, self.score = made, made.score_answer
        else:
            raise TypeError("the factory must return (rows, score) or an object with score_answer")
        self.entry = None

    def reset(self, seed, split):
        self.entry = self.rows[seed]
        question = self.entry["question"]
        if not isinstance(question, str):
            raise TypeError(f"the question is a {type(question).__name__}, want a text")
        return {"text": question}

    def step(self, action):
        score = number(self.score(action, self.entry), "score")
        return {"text": f"Score: {score:g}", "reward": score, "done": True, "success": None}

    def solve(self):
        answer = self.entry.get("answer")
        if not isinstance(answer, str) or not answer:
            raise TypeError("the question's row holds no answer as a text")
        return {"actions": [answer]}

    def close(self):
        pass


def scored(result):
    """Reads what a reward function returned for a trajectory: a number, or a pair of a number and a truth value."""
    success = None
    if isinstance(result, (tuple, list)):
        result, success = result if len(result) == 2 else (None, None)
        if hasattr(success, "item"):  # a truth value of numpy
            success = success.item()
        if not isinstance(success, bool):
            raise TypeError("the function must return a number, or a pair of a number and a truth value")
    return {"score": number(result, "score"), "success": success}


def attempted(call):
    """Calls a function of one trajectory's result. What it raises is that trajectory's alone."""
    try:
        return scored(call())
    except Exception as e:
        return {"error": described(e)}


def described(e):
    return f"{type(e).__name__}: {e}"[:2000]


def scores(request):
    """Calls a user's reward function."""
    function = load(request["module"], request["path"])
    rows, kwargs = request["trajectories"], request["kwargs"]
    if not request["batch"]:
        return {"scores": [attempted(lambda: function(row, **kwargs)) for row in rows]}
    results = function(rows, **kwargs)
    if hasattr(results, "tolist"):
        results = results.tolist()
    if not isinstance(results, (list, tuple)) or len(results) != len(rows):
        raise TypeError(f"the function must return a list of {len(rows)} results")
    return {"scores": [attempted(lambda: result) for result in results]}


class Adapter:
    def __init__(self):
        self.sessions = {}
        self.lists = {}  # of questions, by factory and arguments

    def made(self, request):
        """Calls the factory; that of questions once."""
        if request["kind"] != "question":
            return load(request["module"], request["path"])(**request["kwargs"])
        key = json.dumps([request["module"], request["path"], request["kwargs"]], sort_keys=True)
        if key not in self.lists:
            self.lists[key] = load(request["module"], request["path"])(**request["kwargs"])
        return self.lists[key]

    def opened(self, request):
        made = self.made(request)
        return Question(made) if request["kind"] == "question" else Gymnasium(made, request["actions"])

    def reply(self, request):
        do = request["do"]
        if do == "load":
            load(request["module"], request["path"], request["text"])
            return {}
        if do == "score":
            return scores(request)
        if do == "tasks":
            opened = self.opened(request)
            try:
                return opened.tasks()
            finally:
                opened.close()
        session = request["session"]
        if do == "open":
            self.sessions[session] = self.opened(request)
            return {}
        if do == "close":
            self.sessions.pop(session).close()
            return {}
        if do == "reset":
            return self.sessions[session].reset(request["seed"], request["split"])
        if do == "step":
            return self.sessions[session].step(request["action"])
        if do == "solve":
            return self.sessions[session].solve()
        raise ValueError(f"unknown request {do!r}")


def main():
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)  # the user's code may print
    adapter = Adapter()
    for line in sys.stdin:
        try:
            reply = json.dumps(adapter.reply(json.loads(line)), allow_nan=False)
        except Exception as e:  # the user's code may raise anything; the caller decides
            reply = json.dumps({"error": described(e)})
        if CODE.new:
            replies.write(json.dumps({"code": CODE.new}) + "\n")
            CODE.new = []
        replies.write(reply + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
