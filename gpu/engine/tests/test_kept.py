"""Compares what the layers keep for their backward passes with the count of the engine and of gpu/plan."""

import unittest

import torch
from models import KINDS
from support import model

from ropewalk_engine import passes, resident
from ropewalk_engine.progress import Progress
from ropewalk_engine.settings import Settings

SETTINGS = Settings(torch.device("cpu"), torch.float32, False, "off", False, 4096, 1 << 30)
TOKENS = 200


def kept(dir):
    """(how many numbers a kept pass saves of each token, the model's configuration). Shared memory counts once."""
    progress = Progress()
    r, _ = resident.load(dir, "policy", False, "", None, SETTINGS, progress)
    own = {p.untyped_storage().data_ptr() for p in r.scorer.parameters()}
    saved = {}

    def save(t):
        s = t.untyped_storage()
        if s.data_ptr() not in own:
            saved[s.data_ptr()] = (s.nbytes(), t)  # held, so that no other tensor gets its memory
        return t

    with torch.autograd.graph.saved_tensors_hooks(save, lambda t: t):
        passes.forward(
            r,
            torch.arange(TOKENS + 1, dtype=torch.int32) % r.vocab,
            [TOKENS + 1],
            ["logprob"],
            1.0,
            True,
            SETTINGS,
            progress,
        )
    return sum(n for n, _ in saved.values()) / 4 / TOKENS, r.scorer.causal.config


class Kept(unittest.TestCase):
    def test_near_the_rule(self):
        # Models with windows are left out: their masks are as wide as the row is long.
        for kind in (k for k in KINDS if "window" not in k):
            with self.subTest(kind):
                (few, _), (many, c) = (kept(model(kind, num_hidden_layers=n)[0]) for n in (2, 6))
                self.assertLess(abs((many - few) / (passes.kept_per_token(c) * 4 / 6) - 1), 0.15)


if __name__ == "__main__":
    unittest.main()
