#!/usr/bin/env python3
"""Writes values of the chart from a recipe's plan:

    ropewalk run RECIPE --dry-run --json >plan.json
    deploy/helm/values-of.py <plan.json >values-recipe.yaml
    helm install NAME deploy/helm/ropewalk -f values-recipe.yaml -f YOURS.yaml

Memory of a worker is the plan's estimate and ROOM for the program with its read cache. On the CPU engine that is the
engine's memory; workers of rollout hold the policy as well. With PyTorch on devices a worker of gpu also needs room for
the model's files, which rank 0 reads and writes as a whole.
"""

import json
import math
import sys

ROOM = 1 << 30  # bytes: the program itself, --cache-mb (256), Arrow batches
GIB = 1 << 30


def gib(count):
    return f"{max(1, math.ceil(count / GIB))}Gi"


def main():
    answer = json.load(sys.stdin)
    plan = answer.get("plan")
    if not plan or not plan.get("engine_memory"):
        sys.exit("values-of: the input has no plan with memory: ropewalk run RECIPE --dry-run --json")
    if plan["refused"]:
        sys.exit("values-of: the plan does not fit: " + "; ".join(map(str, plan["refused"])))
    memory, engine = plan["engine_memory"]["total"], answer["resolved"].get("engine", {})
    values = {"queues": {"gpu": {"resources": {"memory": gib(memory + ROOM)}}}}
    if plan["engine"] == "torch":
        checkpoint = max(plan["writes"]["base"], plan["writes"]["checkpoint"])
        values["queues"]["gpu"]["resources"]["memory"] = gib(checkpoint + 4 * ROOM)
        devices = engine.get("devices") or 1
        values["gpu"] = {"devices": devices, "updateDevices": devices, "hosts": (engine.get("hosts") or 1) > 1}
    else:
        values["queues"]["rollout"] = {"resources": {"memory": gib(memory + ROOM)}}
    json.dump(values, sys.stdout, indent=2)  # JSON is YAML
    print()


if __name__ == "__main__":
    main()
