"""The package gym-sokoban as an environment with seeds and texts."""

import random

import numpy
from gym_sokoban.envs import SokobanEnv

TILES = "#_.*$@&"  # of gym_sokoban.envs.render_utils: wall, floor, target, box on target, box, player, player on target


class Rooms:
    def __init__(self, size=6, boxes=1, steps=20):
        self.settings = {"dim_room": (size, size), "num_boxes": boxes, "max_steps": steps, "reset": False}

    def shown(self):
        state = self.env.room_state.copy()
        state[(state == 5) & (self.env.room_fixed == 2)] = 6
        return "\n".join("".join(TILES[tile] for tile in row) for row in state)

    def reset(self, seed=None):
        random.seed(seed)
        numpy.random.seed(seed)
        self.env = SokobanEnv(**self.settings)
        self.env.reset()
        return self.shown(), {}

    def step(self, action):
        _, reward, done, info = self.env.step(action, observation_mode="tiny_rgb_array")
        return self.shown(), reward, done, {"success": bool(info.get("all_boxes_on_target", False))}
