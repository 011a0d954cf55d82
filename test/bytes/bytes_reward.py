"""The reward function of the run "function" in cases.txt. Rewards within a group differ even if no answer is right."""


def score(trajectory):
    right = trajectory["answer"] == trajectory["gold"]
    return right + 0.01 * (trajectory["tokens"] % 7), right
