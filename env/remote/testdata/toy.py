"""Small environments of Gymnasium's form, and faulty ones."""

import os
import random
import time


class Walk:
    """Start at a place that the seed gives; reach 0 with left and right."""

    def __init__(self, fault="", log="", start=0, hang_at=None):
        self.fault, self.log, self.start, self.hang_at = fault, log, start, hang_at

    def note(self, text):
        if self.log:
            with open(self.log, "a", encoding="utf-8") as f:
                f.write(text + "\n")

    def reset(self, seed=None):
        self.note(f"reset {seed}")
        self.place = self.start or random.Random(seed).choice([-3, -2, -1, 1, 2, 3])
        print("noise on standard output")
        if self.fault == "random":
            return f"You are at {self.place} at {os.urandom(8).hex()}.", {}
        return f"You are at {self.place}.", {}

    def step(self, action):
        self.note(f"step {action}")
        if self.fault == "hang":
            time.sleep(3600)
        if self.fault == "die":
            os._exit(3)
        if self.fault == "raise":
            raise RuntimeError("no such move")
        if self.fault == "flood":
            return "x" * 10_000_000, 0, False, False, {}
        if self.fault == "type":
            return object(), 0, False, False, {}
        if self.fault == "short":
            return "two", 0
        if self.fault == "unicode":
            return "\ud800", 0, False, False, {}
        if self.fault in ("nan", "inf"):
            return "gone", float(self.fault), False, False, {}
        if self.fault == "text reward":
            return "gone", "1", False, False, {}
        self.place += (-1, 1)[action]
        if self.place == self.hang_at:
            time.sleep(3600)
        done = self.place == 0
        return f"You are at {self.place}.", 1.0 if done else -0.1, done, abs(self.place) > 9, {"success": done}


def sums(log=""):
    if log:
        with open(log, "a", encoding="utf-8") as f:
            f.write("made\n")
    rows = [{"question": f"{n} + {n} = ?", "answer": str(2 * n)} for n in range(20)]
    return rows, lambda answer, entry: float(answer.strip() == entry["answer"])


class Stairs:
    """Go down to 0. It says what is admissible, and what its tasks are; info and more replace what it says."""

    def __init__(self, log="", info=None, more=None, tasks=None, plan=None, **_):
        self.log, self.info, self.more, self.plan = log, info or {}, more or {}, plan
        self.numbers = tasks or {"train": 6, "held_out": 3}

    def tasks(self):
        return self.numbers

    def told(self):
        ways = ["down", "up"] if self.place < 4 else ["down"]
        kind = "far" if self.start > 1 else "near"
        return {"admissible": ways, "score": 1 - self.place / 4, "type": kind, "level": self.start}

    def reset(self, seed=None, options=None):
        self.note(f"reset {(options or {}).get('split')} {seed}")
        self.start = self.place = 1 + seed % 3
        return f"You are at {self.place}.", {**self.told(), **self.info}

    def step(self, action):
        self.note(f"step {action}")
        if action == "die":
            os._exit(3)
        moved = {"down": -1, "up": 1}.get(action, 0)
        self.place += moved
        done = self.place == 0
        seen = f"You are at {self.place}." if moved else "Nothing happens."
        return seen, float(done), done, False, {**self.told(), **self.more}

    def expert(self):
        return self.plan or ["down"] * min(self.place, 2)

    note = Walk.note
