"""ALFWorld's games, played by its own package. Wants the packages alfworld and textworld, and a folder of games."""

import pathlib

import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredExpert

TOLD = textworld.EnvInfos(admissible_commands=True, won=True)


class Games:
    def __init__(self, folder, held_out="valid_unseen", turns=50):
        self.games = {
            split: sorted(
                path
                for path in pathlib.Path(folder, name).glob("*/*/game.tw-pddl")
                if "movable" not in str(path) and "Sliced" not in str(path)
            )
            for split, name in (("train", "train"), ("held_out", held_out))
        }
        self.turns, self.game = turns, None

    def tasks(self):
        return {split: len(games) for split, games in self.games.items()}

    def reset(self, seed=None, options=None):
        self.close()
        path = self.games[options["split"]][seed]
        wrappers = [AlfredDemangler()]
        if path.with_name("traj_data.json").exists():  # the expert reads it
            wrappers.append(AlfredExpert())
        self.game = textworld.start(str(path), TOLD, wrappers=wrappers)
        self.state, self.taken = self.game.reset(), 0
        text = self.state.feedback.partition("-= Welcome to TextWorld, ALFRED! =-")[2].strip()
        return text, {**self.told(), "type": path.parts[-3].partition("-")[0]}

    def step(self, action):
        self.state, _, done = self.game.step(action)
        self.taken += 1
        won = bool(self.state.won)
        info = {**self.told(), "success": won}
        return self.state.feedback.strip(), 10.0 * won, done, self.taken >= self.turns, info

    def told(self):
        ways = [way for way in self.state.admissible_commands if way != "help"]
        return {"admissible": ways or None, "score": float(bool(self.state.won))}

    def expert(self):
        return self.state.get("extra.expert_plan")

    def close(self):
        if self.game:
            self.game.close()
        self.game = None
