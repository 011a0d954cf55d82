"""Outputs, gradients and updates against transformers' own forward pass, autograd and torch.optim.AdamW."""

import glob
import os
import unittest

import torch
from driver import random_rows
from models import KINDS, VOCAB
from safetensors.torch import load_file
from support import host, model, noise, plain_outputs, relative

LENGTHS = (5, 1, 30, 12, 100, 2, 30, 29)


def gradients_by_probe(h, load, rows, role="policy", **cotangents):
    """The gradient of every parameter, read from the first moments after one step: m = (1 − beta1)·g."""
    load()
    kept, _ = h.forward(rows, tuple(OUTPUT[k] for k in cotangents), role=role, keep=True)
    h.backward(rows, kept, role=role, **cotangents)
    h.step(role, lr=0.0, clip_norm=0.0)
    return {
        k.removeprefix("exp_avg."): v / (1 - 0.9)
        for k, v in load_file(h.save(role) + "/optimizer.state").items()
        if k.startswith("exp_avg.")
    }


OUTPUT = {"logprobs": "logprob", "entropies": "entropy", "values": "value"}


class EveryArchitecture(unittest.TestCase):
    def test_outputs(self):
        h, rows = host(), random_rows(1, VOCAB, *LENGTHS)
        for kind in KINDS:
            with self.subTest(kind):
                dir, m = model(kind)
                h.load(dir)
                for temperature in (1.0, 0.6):
                    got = h.forward(rows, temperature=temperature)
                    with torch.no_grad():
                        logprobs, entropies = plain_outputs(m, rows, temperature)
                    self.assertLess((got["logprobs"] - logprobs).abs().max(), 2e-5)
                    self.assertLess((got["entropies"] - entropies).abs().max(), 2e-5)

    def test_gradients(self):
        h, rows = host(), random_rows(2, VOCAB, *LENGTHS)
        n = sum(LENGTHS)
        for kind in KINDS:
            with self.subTest(kind):
                dir, m = model(kind)
                a, b = noise(1, n), noise(2, n)
                a[::3] = 0  # the head's backward pass leaves out tokens without weight
                b[::2] = 0
                got = gradients_by_probe(h, lambda: h.load(dir), rows, logprobs=a, entropies=b)
                m.zero_grad()
                logprobs, entropies = plain_outputs(m, rows)
                (logprobs @ a + entropies @ b).backward()
                self.assertEqual(set(got), {k for k, _ in m.named_parameters()})
                for k, p in m.named_parameters():
                    self.assertLess(relative(got[k], p.grad), 1e-5, k)

    def test_critic(self):
        h, rows = host(), random_rows(3, VOCAB, *LENGTHS)
        n = sum(LENGTHS)
        for kind in KINDS:
            with self.subTest(kind):
                dir, m = model(kind)
                h.load(dir, "critic")
                self.assertEqual(float(h.forward(rows, ("value",), "critic")["values"].abs().max()), 0)
                # Train the head away from zero for two steps, and take its weights from the folder.
                for _ in range(2):
                    kept, _ = h.forward(rows, ("value",), "critic", keep=True)
                    h.backward(rows, kept, "critic", values=noise(3, n))
                    h.step("critic")
                saved = h.save("critic")
                head = {k: v.requires_grad_() for k, v in load_file(saved + "/value_head.state").items()}
                self.assertEqual(
                    {k: tuple(v.shape) for k, v in head.items()},
                    {"value_head.weight": (1, 32), "value_head.bias": (1,)},
                )
                # vLLM loads every match of the first pattern that matches any file of the folder.
                patterns = ("*.safetensors", "*.bin", "*.pt")
                taken = [os.path.basename(f) for p in patterns for f in glob.glob(os.path.join(saved, p))]
                self.assertEqual(taken, ["model.safetensors"])
                self.assertTrue(os.path.exists(saved + "/optimizer.state"))
                taught, told = type(m).from_pretrained(saved, output_loading_info=True)
                self.assertEqual((set(told["missing_keys"]), set(told["unexpected_keys"])), (set(), set()))
                taught = taught.eval()
                want = []
                for r in rows:
                    x = taught.base_model(torch.tensor([r])).last_hidden_state[0, :-1]
                    want += [torch.zeros(1), (x @ head["value_head.weight"].T)[:, 0] + head["value_head.bias"]]
                want = torch.cat(want)
                h.load(saved, "critic")
                got = h.forward(rows, ("value",), "critic")["values"]
                self.assertLess((got - want).abs().max(), 2e-5)
                h.load(saved, "critic", optimizer=True)
                self.assertTrue(torch.equal(h.forward(rows, ("value",), "critic")["values"], got))
                (want @ noise(4, n)).backward()
                got = gradients_by_probe(
                    h, lambda: h.load(saved, "critic", optimizer=False), rows, "critic", values=noise(4, n)
                )
                for k, p in [*taught.named_parameters(), *head.items()]:
                    if p.grad is None:  # a separate output head
                        self.assertEqual((k, float(got[k].abs().max())), ("lm_head.weight", 0))
                    else:
                        self.assertLess(relative(got[k], p.grad), 1e-5, k)

    def test_five_steps_of_adamw(self):
        h, rows = host(), random_rows(4, VOCAB, *LENGTHS)
        n = sum(LENGTHS)
        for kind in KINDS:
            with self.subTest(kind):
                dir, m = model(kind)
                own = type(m).from_pretrained(dir).eval()
                before = {k: v.clone() for k, v in own.state_dict().items()}
                named = list(own.named_parameters())
                groups = [
                    {"params": [p for _, p in named if (p.dim() > 1) == matrix], "weight_decay": 0.1 if matrix else 0.0}
                    for matrix in (True, False)
                ]
                # A bias of keys moves all scores of a query alike, so its gradient is nearly zero. A small epsilon
                # would turn its rounding into a step.
                adam = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), eps=1e-3)
                h.load(dir)
                for i in range(5):
                    logprobs, entropies = plain_outputs(own, rows)
                    adam.zero_grad()
                    (logprobs @ noise(i, n) + 0.1 * entropies.sum()).backward()
                    norm = torch.nn.utils.clip_grad_norm_(own.parameters(), 50.0)
                    adam.step()
                    kept, _ = h.forward(rows, keep=True)
                    h.backward(rows, kept, logprobs=noise(i, n), entropies=torch.full((n,), 0.1))
                    got = h.step(lr=3e-3, clip_norm=50.0, epsilon=1e-3)
                    self.assertAlmostEqual(got["grad_norm"] / float(norm), 1, delta=1e-4)
                    self.assertEqual((got["step"], got["clipped"]), (i + 1, bool(norm > 50)))
                after = load_file(h.save() + "/model.safetensors")
                for k, p in own.named_parameters():
                    self.assertLess(relative(after[k] - before[k], p.detach() - before[k]), 1e-3, k)


if __name__ == "__main__":
    unittest.main()
