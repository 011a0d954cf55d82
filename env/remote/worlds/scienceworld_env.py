"""ScienceWorld's tasks. Wants the package scienceworld, and Java."""

from scienceworld import ScienceWorldEnv

FREE = []  # Java programs without a session: to start one takes seconds
SPLITS = {}  # variations of a task, for training and held out


class Science:
    """The variations of some tasks. Each session has a Java program of its own."""

    def __init__(self, tasks=("find-plant", "find-living-thing"), simplifications="easy", turns=100):
        self.simplifications = simplifications
        self.world = FREE.pop() if FREE else ScienceWorldEnv("")
        self.world.envStepLimit = turns
        self.splits = {"train": [], "held_out": []}
        for name in tasks:
            if name not in SPLITS:
                self.world.load(name, 0, "")
                SPLITS[name] = list(self.world.get_variations_train()), list(self.world.get_variations_dev())
            for split, variations in zip(self.splits.values(), SPLITS[name]):
                split += [(name, n) for n in variations]

    def tasks(self):
        return {split: len(tasks) for split, tasks in self.splits.items()}

    def reset(self, seed=None, options=None):
        name, variation = self.splits[options["split"]][seed]
        self.world.load(name, variation, self.simplifications)
        seen, info = self.world.reset()
        # A room has hundreds of admissible actions, so prompts do not list them. The package's own solutions are drawn
        # again at each reset, so they are no expert.
        return f"{info['taskDesc']}\n\n{seen}", {"score": max(0, info["score"]) / 100, "type": name}

    def step(self, action):
        seen, reward, done, info = self.world.step(action)
        score = max(0, info["score"]) / 100
        return seen, reward / 100, done, False, {"score": score, "success": score >= 1}

    def close(self):
        FREE.append(self.world)
