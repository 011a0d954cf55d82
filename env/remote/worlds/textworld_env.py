"""TextWorld's generated games: each task is a game that its seed makes. Wants the package textworld."""

import os
import tempfile

import textworld

TOLD = textworld.EnvInfos(
    admissible_commands=True, policy_commands=True, description=True, objective=True, won=True, max_score=True
)


class Games:
    def __init__(self, rooms=2, objects=4, quest=3):
        self.size = {"nb_rooms": rooms, "nb_objects": objects, "quest_length": quest}
        self.folder = tempfile.TemporaryDirectory()
        self.game = None

    def tasks(self):
        return {"train": 1000, "held_out": 100}

    def reset(self, seed=None, options=None):
        self.close_game()
        made = textworld.GameOptions()
        for name, value in self.size.items():
            setattr(made, name, value)
        made.seeds = 2 * seed + (options["split"] == "held_out")
        made.path = os.path.join(self.folder.name, f"{made.seeds}.z8")
        path, _ = textworld.make(made)
        self.game = textworld.start(path, TOLD)
        self.state = self.game.reset()
        level = len(self.state.policy_commands)
        text = f"{self.state.objective}\n\n{self.state.description}"
        return text, {**self.told(), "type": f"{level} commands", "level": level}

    def step(self, action):
        if "\\" in action or not (action.isascii() and action.isprintable()):  # the interpreter would end or hang
            return "That is no command.", 0.0, False, False, self.told()
        self.state, _, done = self.game.step(action)
        text = self.state.feedback.rpartition("\n>")[0].strip()
        won = bool(self.state.won)
        return text, float(won), done, False, {**self.told(), "success": won}

    def told(self):
        return {"admissible": self.state.admissible_commands or None, "score": float(bool(self.state.won))}

    def expert(self):
        return self.state.policy_commands or None

    def close_game(self):
        if self.game:
            self.game.close()
        self.game = None

    def close(self):
        self.close_game()
        self.folder.cleanup()
