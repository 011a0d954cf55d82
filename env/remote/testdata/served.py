"""Environments that openenv-core serves: served.py PORT LOG."""

import os
import random
import sys
import time

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
from pydantic import Field

LOG = sys.argv[2]


class Move(Action):
    move: int = Field(ge=0, le=1)


class Place(Observation):
    text: str = ""
    reached: bool = False
    episode: str = ""


class Walk(Environment):
    """Start at a place that the seed gives; reach 0 with the moves 0 and 1."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.moves = 0

    def shown(self, **more):
        return Place(text=f"You are at {self.place}.", episode=os.urandom(4).hex(), **more)

    def reset(self, seed=None, episode_id=None, start=0, **kwargs):
        with open(LOG, "a", encoding="utf-8") as f:
            f.write(f"reset {seed}\n")
        self.place, self.moves = start or random.Random(seed).choice([-3, -2, -1, 1, 2, 3]), 0
        return self.shown()

    def step(self, action, timeout_s=None, **kwargs):
        with open(LOG, "a", encoding="utf-8") as f:
            f.write(f"step {action.move}\n")
        self.moves += 1
        self.place += (-1, 1)[action.move]
        if self.place == 27:
            raise RuntimeError("nothing is there")
        if self.place == 28:
            time.sleep(3600)
        done = self.place == 0
        reward = float("nan") if self.place == 26 else 1.0 if done else -0.1
        return self.shown(reward=reward, done=done, reached=done)

    @property
    def state(self):
        return State(step_count=self.moves)


if __name__ == "__main__":
    app = create_fastapi_app(Walk, Move, Place, max_concurrent_envs=4)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
