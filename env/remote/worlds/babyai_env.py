"""Levels of BabyAI, described in words. Wants the package minigrid."""

import gymnasium
import minigrid  # registers the levels
from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT
from minigrid.utils.baby_ai_bot import BabyAIBot

ACTIONS = ["turn left", "turn right", "go forward", "pick up", "drop", "toggle"]
DOORS = ["an open", "a closed", "a locked"]


class Level:
    def __init__(self, name="BabyAI-GoToLocal-v0", train=1000, held_out=100):
        self.numbers, self.level = {"train": train, "held_out": held_out}, gymnasium.make(name)

    def tasks(self):
        return self.numbers

    def reset(self, seed=None, options=None):
        shown, _ = self.level.reset(seed=2 * seed + (options["split"] == "held_out"))
        return self.seen(shown), {"admissible": ACTIONS, "type": shown["mission"].partition(" the ")[0], "score": 0.0}

    def step(self, action):
        if action not in ACTIONS:
            return "That is no action.", 0.0, False, False, {"admissible": ACTIONS}
        shown, reward, done, cut, _ = self.level.step(ACTIONS.index(action))
        info = {"admissible": ACTIONS, "success": reward > 0, "score": min(1.0, max(0.0, float(reward)))}
        return self.seen(shown), float(reward), done, cut, info

    def expert(self):
        return ACTIONS[BabyAIBot(self.level).replan()]

    def seen(self, shown):
        """Says where things are. The view is 7 fields wide, and the agent is in the middle of its last row."""
        things = []
        for x, column in enumerate(shown["image"]):
            for y, (kind, color, state) in enumerate(column):
                what = IDX_TO_OBJECT[int(kind)]
                if what not in ("door", "key", "ball", "box", "goal", "lava"):
                    continue
                side, ahead = x - 3, 6 - y
                place = f"{ahead} ahead" + (f", {abs(side)} to the {'right' if side > 0 else 'left'}" if side else "")
                kind = DOORS[int(state)] if what == "door" else "a"
                things.append(f"{kind} {IDX_TO_COLOR[int(color)]} {what} ({place})")
        wall = "" if IDX_TO_OBJECT[int(shown["image"][3][5][0])] != "wall" else " A wall is in front of you."
        return f"Your task: {shown['mission']}. You see {', '.join(things) or 'nothing'}.{wall}"

    def close(self):
        self.level.close()
