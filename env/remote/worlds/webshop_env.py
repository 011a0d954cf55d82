"""WebShop's release, played by its own engine: settings.release of the environment webshop names its folder."""

import functools
import itertools
import random

from web_agent_site.envs import web_agent_text_env as release

HELD_OUT = 500  # goals that ARLArena evaluates on: the first ones
NUMBERS = itertools.count()


@functools.cache
def server():
    """Opens the shop that the sessions of a process share: 1,000 products with generated goals, as in ARLArena."""
    random.seed(233)  # goals draw their prices, in every process the same
    return release.SimServer(
        "http://127.0.0.1:3000", release.DEFAULT_FILE_PATH, num_products=1000, human_goals=False
    )


class Shop:
    def __init__(self, turns):
        self.server, self.turns = server(), turns
        self.shop = release.WebAgentTextEnv(observation_mode="text", server=self.server)

    def tasks(self):
        return {"train": len(self.server.goals) - HELD_OUT, "held_out": HELD_OUT}

    def reset(self, seed=None, options=None):
        self.close()
        goal = seed if options["split"] == "held_out" else HELD_OUT + seed
        self.shop.session_prefix = f"{next(NUMBERS)}-"  # the engine would go on with an earlier session of the goal
        seen, _ = self.shop.reset(session=goal)
        self.taken = 0
        info = {"admissible": self.admissible(), "score": 0.0, "type": self.server.goals[goal]["category"]}
        return seen, info

    def step(self, action):
        seen, score, done, _ = self.shop.step(action)
        self.taken += 1
        won = bool(done and score >= 1)
        info = {"success": won, "score": float(score), "admissible": None if done else self.admissible()}
        return seen, 10.0 * won, done, self.taken >= self.turns, info

    def admissible(self):
        """Lists the buttons, except on the page for a search, where any search[…] is admissible."""
        have = self.shop.get_available_actions()
        return None if have["has_search_bar"] else [f"click[{name}]" for name in have["clickables"]]

    def close(self):
        self.server.user_sessions.pop(self.shop.session, None)
