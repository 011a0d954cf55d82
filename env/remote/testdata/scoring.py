"""Reward functions, and faulty ones."""

import os
import time


def one(trajectory, scale=1, warm=False):
    answer = trajectory["answer"]
    if answer == "raise":
        raise ValueError("no such answer")
    if answer == "nan":
        return float("nan")
    if answer == "text":
        return "1"
    if answer == "none":
        return None
    if answer == "triple":
        return 1, True, 2
    if answer == "exit":
        os._exit(1)
    if answer == "hang":
        time.sleep(3600)
    if answer == "pair":
        return 0.5, True
    if answer == "bool":
        return True
    return scale * float(answer == trajectory["gold"])


def several(trajectories, **kwargs):
    return [one(t, **kwargs) for t in trajectories]


def short(trajectories):
    return []
