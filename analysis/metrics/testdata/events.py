"""Reads an event file with TensorBoard's own reader. stdin: a folder; stdout: {tag: [[step, wall time, value], …]}."""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.stdin.read(), size_guidance={"scalars": 0})
events.Reload()
json.dump({tag: [[e.step, e.wall_time, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]},
          sys.stdout)
