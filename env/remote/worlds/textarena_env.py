"""A game of TextArena for one player. Wants the package textarena."""

import textarena


class Game:
    """The recipe lists the game's actions, if it has a few that never change."""

    def __init__(self, name="FrozenLake-v0", actions=None, train=1000, held_out=100):
        self.name, self.actions, self.numbers = name, actions, {"train": train, "held_out": held_out}

    def tasks(self):
        return self.numbers

    def reset(self, seed=None, options=None):
        self.game = textarena.make(self.name)
        self.game.reset(num_players=1, seed=2 * seed + (options["split"] == "held_out"))
        self.read = 0
        return self.seen(), {"admissible": self.actions, "score": 0.0}

    def step(self, action):
        done, _ = self.game.step(action=action)
        if not done:
            return self.seen(), 0.0, False, False, {"admissible": self.actions}
        rewards, info = self.game.close()
        reward = float(rewards[0])
        told = {"score": min(1.0, max(0.0, reward)), "success": reward >= 1}
        return str(info[0].get("reason", "The game is over.")), reward, True, False, told

    def seen(self):
        """Returns what is new: the package's texts repeat the whole game."""
        _, text = self.game.get_observation()
        text, self.read = text[self.read :], len(text)
        return text.strip() or "Nothing happens."
