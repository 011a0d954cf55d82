"""The chunked head against the full logits, with chunks down to one token; packed attention against single rows."""

import unittest
from unittest import mock

import torch
from support import noise, relative

from ropewalk_engine import head, packs
from ropewalk_engine.attention import _packed, pack


class Head(unittest.TestCase):
    def setUp(self):
        n, h, v = 13, 8, 37
        self.hidden, self.weight, self.bias = (
            noise(i, k).view(d) for i, k, d in ((1, n * h, (n, h)), (2, v * h, (v, h)), (3, v, (v,)))
        )
        self.targets = torch.arange(n) * 5 % v

    def full(self, temperature):
        p = ((self.hidden @ self.weight.T + self.bias) / temperature).log_softmax(1)
        return p.gather(1, self.targets[:, None])[:, 0], -(p.exp() * p).sum(1)

    def test_equals_the_full_head(self):
        a, b = noise(4, 13), noise(5, 13)
        a[2:5], b[3:9] = 0, 0  # 3 and 4 have no cotangent at all
        inputs = (self.hidden, self.weight, self.bias)
        for x in inputs:
            x.requires_grad_()
        for temperature in (1.0, 0.7):
            logprob, entropy = self.full(temperature)
            for use_entropy in (True, False):
                want = torch.autograd.grad(logprob @ a + (entropy @ b if use_entropy else 0), inputs, retain_graph=True)
                for chunk in (1, 4, 13, 100):
                    with (
                        self.subTest(temperature=temperature, chunk=chunk, entropy=use_entropy),
                        mock.patch.dict(head.CHUNK_BYTES, cpu=4 * 37 * chunk),
                    ):
                        self.assertEqual(head.chunk_tokens(37, torch.device("cpu")), chunk)
                        got, gotten = head.token_logprobs(*inputs, self.targets, temperature, use_entropy)
                        self.assertLess((got - logprob).abs().max(), 1e-5)
                        self.assertLess((gotten - (entropy if use_entropy else 0)).abs().max(), 1e-5)
                        grads = (
                            torch.autograd.grad(got @ a + gotten @ b, inputs)
                            if use_entropy
                            else torch.autograd.grad(got @ a, inputs)
                        )
                        for g, w in zip(grads, want):
                            self.assertLess(relative(g, w), 1e-5)

    def test_cotangents_that_are_not_finite_arrive(self):
        self.weight.requires_grad_()
        for bad in (float("nan"), float("inf")):
            got, _ = head.token_logprobs(self.hidden, self.weight, None, self.targets, 1.0, False)
            (grad,) = torch.autograd.grad(got, self.weight, torch.full_like(got, bad))
            self.assertFalse(torch.isfinite(grad).all())

    def test_never_holds_more_logits_than_a_chunk(self):
        """The largest tensor that a pass over many tokens makes is the gradient of the weight."""
        n, v, h = 4096, 64, 4
        largest = 0

        class Watch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, f, types, args=(), kwargs=None):
                nonlocal largest
                out = f(*args, **(kwargs or {}))
                for t in out if isinstance(out, (tuple, list)) else (out,):
                    if isinstance(t, torch.Tensor):
                        largest = max(largest, t.numel())
                return out

        hidden, weight = noise(1, n * h).view(n, h).requires_grad_(), noise(2, v * h).view(v, h).requires_grad_()
        with mock.patch.dict(head.CHUNK_BYTES, cpu=4 * v * 16), Watch():
            logprob, entropy = head.token_logprobs(hidden, weight, None, torch.zeros(n, dtype=torch.int64), 1.0, True)
            (logprob.sum() + entropy.sum()).backward()
        self.assertEqual(largest, n * h)


class PackedAttention(unittest.TestCase):
    def test_rows_do_not_see_each_other(self):
        for lengths in ([7], [9, 9, 9], [100, 99, 80, 40, 39, 33, 7, 3, 1], [64, 1]):
            for window in (None, 5):
                with self.subTest(lengths=lengths, window=window):
                    n = sum(lengths)
                    q, k, v = (
                        noise(i, n * h * 8).view(1, h, n, 8).requires_grad_() for i, h in ((1, 4), (2, 2), (3, 2))
                    )
                    got = _packed(pack(lengths, torch.device("cpu")), q, k, v, 0.3, window)[0]
                    at = torch.arange(n)
                    row = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
                    seen = (row == row[:, None]) & (at <= at[:, None]) & (at > at[:, None] - (window or n))
                    scores = (q[0] @ k[0].repeat_interleave(2, 0).transpose(1, 2) * 0.3).masked_fill(~seen, -torch.inf)
                    want = (scores.softmax(-1) @ v[0].repeat_interleave(2, 0)).transpose(0, 1)
                    self.assertLess((got - want).abs().max(), 1e-5)
                    c = noise(4, got.numel()).view(got.shape)
                    for g, w in zip(torch.autograd.grad(got, (q, k, v), c), torch.autograd.grad(want, (q, k, v), c)):
                        self.assertLess(relative(g, w), 1e-5)


class Packs(unittest.TestCase):
    def test_deal(self):
        lengths = [5, 1, 9, 2, 9, 3, 1]
        self.assertEqual(packs.deal(lengths, 1), [[2, 4, 0, 5, 3]])
        self.assertEqual(packs.deal(lengths, 2), [[2, 0], [4, 5, 3]])
        self.assertEqual(packs.deal([1, 1], 2), [[], []])

    def test_cut(self):
        self.assertEqual(packs.cut([0, 1, 2, 3], [11, 5, 4, 3], 8), [[0], [1, 2], [3]])
        self.assertEqual(packs.cut([], [], 8), [])

    def test_gather(self):
        p = packs.gather(
            torch.tensor([10, 11, 12, 20, 30, 31], dtype=torch.int32), [3, 1, 2], [0, 2], torch.device("cpu")
        )
        self.assertEqual(p.inputs.tolist(), [10, 11, 30])
        self.assertEqual(p.targets.tolist(), [11, 12, 31])
        self.assertEqual(p.positions.tolist(), [0, 1, 0])
        self.assertEqual(p.at.tolist(), [1, 2, 5])


if __name__ == "__main__":
    unittest.main()
