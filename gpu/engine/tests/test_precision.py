"""bfloat16 with float32 masters, recomputed layers, moments in the host's memory."""

import unittest

import torch
from driver import flat, random_rows
from models import VOCAB
from safetensors.torch import load_file
from support import host, noise, relative
from test_folders import W, contents, copy, train


class Precision(unittest.TestCase):
    def test_bfloat16_with_float32_masters(self):
        """The model computes in bfloat16. The saved weights moved in float32 and load back bit by bit."""
        h, dir = host("--dtype", "bfloat16"), copy()
        exact = host()
        rows = random_rows(23, VOCAB, 30, 9, 50)
        for e in (h, exact):
            e.load(dir)
        once = h.save()
        self.assertEqual(contents(once)[W], contents(dir)[W])
        a, b = h.forward(rows), exact.forward(rows)
        self.assertLess((a["logprobs"] - b["logprobs"]).abs().mean(), 2e-2)
        for e in (h, exact):
            for _ in range(2):
                # Both halves of a batch are summed in float32.
                for part in (rows[:1], rows[1:]):
                    kept, _ = e.forward(part, keep=True)
                    e.backward(part, kept, logprobs=noise(1, flat(part)["tokens"].numel()))
                e.step(lr=1e-5)  # far below bfloat16's resolution of these weights
        before, got, want = (load_file(f"{d}/{W}") for d in (dir, h.save(), exact.save()))
        for k in before:
            self.assertEqual(got[k].dtype, torch.float32)
            self.assertGreater(float((got[k] - before[k]).abs().max()), 0)
            self.assertLess(float((got[k] - want[k]).abs().max()), 4.1e-5)
        g = h.generate(rows, [1, 2, 3], 20)
        again = h.forward([r + x["tokens"] for r, x in zip(rows, g)])
        at, gaps = 0, []
        for r, x in zip(rows, g):
            at += len(r) + 20
            gaps.append((again["logprobs"][at - 20 : at] - x["logprobs"]).abs())
        self.assertLess(torch.cat(gaps).mean(), 2e-2)

    def test_checkpointing_and_offload_change_nothing(self):
        dir = copy("qwen2")
        saved = []
        for h in (host(), host("--checkpointing", "on", "--offload-optimizer")):
            h.load(dir)
            for _ in range(2):
                train(h)
            saved.append(h.save())
            h.load(saved[-1])
            self.assertEqual(h.call("state", role="policy")[0]["step"], 2)
        for name in (W, "optimizer.state"):
            a, b = (load_file(f"{d}/{name}") for d in saved)
            for k in a:
                self.assertLess(relative(a[k], b[k]), 1e-6, k)


if __name__ == "__main__":
    unittest.main()
