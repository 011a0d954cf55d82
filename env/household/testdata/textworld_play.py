"""Plays tasks in TextWorld with the domain and the grammar of PyPI's alfworld.

Reads a JSON list of {problem, goal, actions} and writes a JSON list of games. A game is a list of turns
{text, admissible, won}; its first turn is the state before any action.
"""

import json
import sys
import time

from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from alfworld.info import ALFRED_PDDL_PATH, ALFRED_TWL2_PATH
from textworld import EnvInfos
from textworld.envs.pddl import PddlEnv


def turn(state):
    return {"text": state.feedback, "admissible": state["admissible_commands"], "won": bool(state["won"])}


def play(task, domain, grammar):
    env = AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True)))
    env.load({"pddl_domain": domain, "grammar": grammar.replace("UNKNOWN GOAL", task["goal"]),
              "pddl_problem": task["problem"]})
    turns = [turn(env.reset())]
    for action in task["actions"]:
        state, _, done = env.step(action)
        turns.append(turn(state))
        if done:
            break
    return turns


def main(source, target):
    with open(ALFRED_PDDL_PATH) as d, open(ALFRED_TWL2_PATH) as g, open(source) as s:
        domain, grammar, tasks = d.read(), g.read(), json.load(s)
    games = []
    for i, task in enumerate(tasks):
        began = time.monotonic()
        games.append(play(task, domain, grammar))
        print(f"task {i}: {len(games[-1])} turns, {time.monotonic() - began:.1f} s", flush=True)
    with open(target, "w") as f:
        json.dump(games, f)


main(*sys.argv[1:])
