"""Generation against the forward pass and an obvious slow sampler, and the random numbers against PROTOCOL.md."""

import itertools
import math
import os
import shutil
import tempfile
import unittest

import torch
from driver import Refused, random_rows
from models import KINDS, VOCAB
from support import host, model, noise, plain_outputs

from ropewalk_engine import draws, products

MASK = (1 << 64) - 1


def slow_uniform(stream, t):
    """PROTOCOL.md's rule in Python integers."""
    x = (stream + (t + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return ((x ^ (x >> 31)) >> 11) * 2.0**-53


def signed(v):
    return v - (1 << 64) if v >> 63 else v


class Draws(unittest.TestCase):
    def test_first_outputs_of_splitmix(self):
        # Vigna's splitmix64.c from state 0.
        want = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
        for t, x in enumerate(want):
            self.assertEqual(float(draws.uniform(torch.zeros(1, dtype=torch.int64), t)[0]), (x >> 11) * 2.0**-53)

    def test_uniform(self):
        streams = [0, 1, MASK, 1 << 63, 12345678901234567890]
        for t in (0, 1, 7, 100_000):
            got = draws.uniforms(torch.tensor([signed(s) for s in streams]), t, 3)
            self.assertEqual(got.tolist(), [[slow_uniform(s, t + i) for s in streams] for i in range(3)])

    def test_invert(self):
        for v, invert in itertools.product((1, 2, 37, 255, 256, 257, 1000), (draws.invert, draws._invert_by_blocks)):
            w = noise(v, 64 * v).view(64, v).exp()
            w[:, ::3] = 0
            w[:, v // 2] = 1
            u = torch.rand(64, dtype=torch.float64, generator=torch.Generator().manual_seed(v))
            u[0], u[1] = 0, 1 - 2.0**-53
            for row, got, x in zip(w.double().tolist(), invert(w, u).tolist(), u.tolist()):
                threshold, sum_, want = x * math.fsum(row), 0.0, None
                for i, p in enumerate(row):
                    sum_ += p
                    if p and (want is None):
                        last = i
                        if sum_ > threshold:
                            want = i
                self.assertEqual(got, last if want is None else want)
                self.assertGreater(row[got], 0)


class Products(unittest.TestCase):
    class Doubled(torch.nn.Linear):
        """A layer that is not plain any more."""

        def forward(self, x):
            return 2 * super().forward(x)

    @torch.no_grad()
    def test_equal_the_modules(self):
        for inside, outside in ((8, 6), (512, 300)):  # the second is packed
            self.assertEqual(products._gains(torch.zeros(outside, inside)), inside == 512)
            for biases, kind, copy in itertools.product((0, 1, 2), (torch.nn.Linear, self.Doubled), (True, False)):
                with self.subTest(inside=inside, biases=biases, kind=kind.__name__, copy=copy):
                    modules = (
                        torch.nn.Linear(inside, outside, bias=biases > 0),
                        kind(inside, outside, bias=biases > 1),
                    )
                    for rows in (1, 3, 70):
                        x, residual = (
                            noise(rows, rows * inside).view(rows, inside),
                            noise(1, rows * outside).view(rows, outside),
                        )
                        want = [m(x) for m in modules]
                        self.assertLess((products.joined(modules, copy)(x) - torch.cat(want, 1)).abs().max(), 1e-5)
                        self.assertLess(
                            (products.adding(modules[1], copy)(residual, x) - residual - want[1]).abs().max(), 1e-5
                        )


class Generate(unittest.TestCase):
    def test_equals_forward_and_the_slow_sampler(self):
        h = host()
        rows = random_rows(5, VOCAB, 1, 7, 30, 30, 66, 7)
        rows[5] = rows[1]  # a group: one prefix, two streams
        streams = [3, 1 << 63, MASK, 5, 6, 7]
        for kind in KINDS:
            dir, m = model(kind)
            for temperature in (1.0, 0.5):
                with self.subTest(kind, temperature=temperature):
                    h.load(dir)
                    got = h.generate(rows, streams, [9, 1, 12, 5, 12, 12], temperature)
                    whole = [r + g["tokens"] for r, g in zip(rows, got)]
                    again = h.forward(whole, temperature=temperature)
                    at = 0
                    for r, g, budget in zip(rows, got, [9, 1, 12, 5, 12, 12]):
                        n = len(g["tokens"])
                        self.assertEqual((n, g["finish"]), (budget, 1))
                        part = slice(at + len(r), at + len(r) + n)
                        self.assertLess((again["logprobs"][part] - g["logprobs"]).abs().max(), 1e-5)
                        self.assertLess((again["entropies"][part] - g["entropies"]).abs().max(), 1e-5)
                        at += len(r) + n
                    self.slow(m, whole, rows, streams, temperature)

    def slow(self, m, whole, rows, streams, temperature):
        """Each token is the first whose cumulative probability exceeds the row's draw."""
        for w, r, stream in zip(whole, rows, streams):
            with torch.no_grad():
                p = (m(torch.tensor([w])).logits[0].double() / temperature).softmax(-1).cumsum(-1)
            for t, token in enumerate(w[len(r) :]):
                c, u = p[len(r) + t - 1], slow_uniform(stream, t)
                self.assertLess(u, c[token] + 1e-5)
                self.assertGreater(u, (c[token - 1] if token else 0) - 1e-5)

    def test_likeliest_tokens(self):
        h, (dir, m) = host(), model("qwen3 tied")
        h.load(dir)
        rows, streams = random_rows(7, VOCAB, 3, 9, 20), [1, 2, 3]
        for temperature, limits in ((1.0, {}), (0.5, {}), (0, {}), (1.0, dict(top_k=3))):
            with self.subTest(temperature=temperature, **limits):
                plain = h.generate(rows, streams, 6, temperature, **limits)
                named = h.generate(rows, streams, 6, temperature, **limits, top=5, top_tokens=4)
                for row, x, y in zip(rows, plain, named):
                    self.assertEqual(x["tokens"], y["tokens"])
                    self.assertTrue(torch.equal(x["logprobs"], y["logprobs"]))
                    with torch.no_grad():
                        z = m(torch.tensor([row + y["tokens"]])).logits[0].double() / (temperature or 1)
                    for t, top in enumerate(y["top"]):
                        want = z[len(row) + t - 1].log_softmax(-1).topk(5).values
                        if limits:
                            want[3:] = -torch.inf
                            want -= want[:3].logsumexp(0)
                        torch.testing.assert_close(top.double(), want, atol=1e-4, rtol=0)

    def test_truncation_leaves_the_likeliest_tokens(self):
        h, (dir, m) = host(), model("qwen3 tied")
        h.load(dir)
        rows, streams = random_rows(7, VOCAB, 3, 9, 20), [1, 2, 3]
        for limits in (dict(top_k=5), dict(top_p=0.6), dict(min_p=0.5), dict(top_k=20, top_p=0.7, min_p=0.3)):
            for temperature in (1.0, 0.5):
                with self.subTest(**limits, temperature=temperature):
                    for row, stream, got in zip(rows, streams, h.generate(rows, streams, 6, temperature, **limits)):
                        self.follows(m, row, stream, got, temperature, **limits)
        want = h.generate(rows, streams, 6, 0)
        for x, y in zip(want, h.generate(rows, streams, 6, 0, top_k=2, top_p=0.5)):
            self.assertEqual(x["tokens"], y["tokens"])
            self.assertTrue(torch.equal(x["logprobs"], y["logprobs"]), "temperature 0 is not truncated")

    def follows(self, m, row, stream, got, temperature, top_k=0, top_p=0.0, min_p=0.0):
        """Each token is drawn from the likeliest tokens of the slow model, whose numbers are the engine's."""
        for t, token in enumerate(got["tokens"]):
            with torch.no_grad():
                z = m(torch.tensor([row + got["tokens"][:t]])).logits[0, -1].double() / temperature
            order = sorted(range(VOCAB), key=lambda i: (-z[i].item(), i))[: top_k or VOCAB]
            p = z[order].softmax(0)
            if top_p:
                order = order[: int((p.cumsum(0) < top_p).sum()) + 1]
            order = [i for n, i in enumerate(order) if p[n] >= min_p * p[0]]
            left = torch.full_like(z, -torch.inf)
            left[order] = z[order]
            p = left.softmax(0)
            c, u = p.cumsum(0), slow_uniform(stream, t)
            self.assertLess(u, c[token] + 1e-5)
            self.assertGreater(u, (c[token - 1] if token else 0) - 1e-5)
            self.assertAlmostEqual(got["logprobs"][t].item(), p[token].log().item(), delta=1e-4)
            self.assertAlmostEqual(got["entropies"][t].item(), torch.special.entr(p).sum().item(), delta=1e-4)

    def test_rows_do_not_depend_on_the_batch(self):
        h, (dir, _) = host(), model("qwen3 tied")
        h.load(dir)
        rows, streams = random_rows(6, VOCAB, *range(1, 40)), list(range(100, 139))
        budgets = [1 + i * 7 % 50 for i in range(39)]  # so that slots are dropped often
        together = h.generate(rows, streams, budgets)
        for i in (0, 3, 20, 38):
            alone = h.generate(rows[i : i + 1], streams[i : i + 1], budgets[i : i + 1])[0]
            self.assertEqual(alone["tokens"], together[i]["tokens"])
            self.assertLess((alone["logprobs"] - together[i]["logprobs"]).abs().max(), 1e-5)
        backwards = h.generate(rows[::-1], streams[::-1], budgets[::-1])[::-1]
        self.assertEqual([g["tokens"] for g in backwards], [g["tokens"] for g in together])
        self.assertEqual([len(g["tokens"]) for g in together], budgets)

    def test_waves_that_fit_the_cache(self):
        """A cache of 1 MiB holds a few of these rows at a time; a pack of 64 tokens, a few of the prefixes."""
        small, (dir, _) = host("--cache-mib", "1", "--pack-tokens", "64"), model("qwen3 tied")
        rows, streams = random_rows(7, VOCAB, *[1 + i * 11 % 90 for i in range(30)]), list(range(30))
        small.load(dir)
        host().load(dir)
        got, want = small.generate(rows, streams, 40), host().generate(rows, streams, 40)
        self.assertEqual([g["tokens"] for g in got], [g["tokens"] for g in want])
        for outputs in (("logprob", "entropy"), ("entropy",), ("logprob",)):
            a, b = small.forward(rows, outputs), host().forward(rows, outputs)
            self.assertEqual(set(a), {{"logprob": "logprobs", "entropy": "entropies"}[o] for o in outputs})
            for k in a:
                self.assertLess((a[k] - b[k]).abs().max(), 1e-5)

    def test_large_matrices(self):
        """The packed products of each architecture's layers, with few rows (one thread) and with many."""
        h = host()
        for kind in ("qwen2", "qwen3 tied", "llama biased", "mistral"):
            with self.subTest(kind):
                dir, _ = model(kind, hidden_size=256, intermediate_size=1024, num_hidden_layers=1)
                h.load(dir)
                rows = random_rows(10, VOCAB, 4, 9, 3)
                got = h.generate(rows, [1, 2, 3], 6)
                again = h.forward([r + g["tokens"] for r, g in zip(rows, got)])
                for i, g in enumerate(got):
                    at = sum(len(r) + 6 for r in rows[:i]) + len(rows[i])
                    self.assertLess((again["logprobs"][at : at + 6] - g["logprobs"]).abs().max(), 1e-5)
                    self.assertLess((again["entropies"][at : at + 6] - g["entropies"]).abs().max(), 1e-5)

    def test_numbers_that_are_none(self):
        """The call says so, and the engine continues to serve."""
        dir, m = model("llama", num_hidden_layers=1)
        h = host()
        h.load(dir)
        want = h.generate([[1, 2]], [3], 5)[0]["tokens"]
        with tempfile.TemporaryDirectory() as broken:
            with torch.no_grad():
                m.model.norm.weight[3] = torch.nan
            m.save_pretrained(broken)
            shutil.copy(os.path.join(dir, "tokenizer.json"), broken)
            h.load(broken)
            with self.assertRaises(Refused) as e:
                h.generate([[1, 2]], [3], 5)
            self.assertEqual((e.exception.kind, e.exception.name), ("non_finite", "log-probability"))
        h.load(dir)
        self.assertEqual(h.generate([[1, 2]], [3], 5)[0]["tokens"], want)

    def test_stop(self):
        h, (dir, _) = host(), model("qwen3")
        h.load(dir)
        rows = random_rows(8, VOCAB, 5, 9, 2, 17)
        free = h.generate(rows, [1, 2, 3, 4], 30)
        stop = (free[0]["tokens"][4], free[2]["tokens"][0])
        for g, f in zip(h.generate(rows, [1, 2, 3, 4], 30, stop=stop), free):
            n = next((i + 1 for i, t in enumerate(f["tokens"]) if t in stop), 30)
            self.assertEqual((g["tokens"], g["finish"]), (f["tokens"][:n], 0 if f["tokens"][n - 1] in stop else 1))

    def test_temperature_zero(self):
        h = host()
        for kind in ("llama", "qwen3 tied"):
            dir, m = model(kind)
            h.load(dir)
            prefix = random_rows(9, VOCAB, 10)
            got = h.generate(prefix, [9], 12, temperature=0)[0]
            tokens = list(prefix[0])
            for t in got["tokens"]:
                with torch.no_grad():
                    self.assertEqual(t, int(m(torch.tensor([tokens])).logits[0, -1].argmax()))
                tokens.append(t)
            with torch.no_grad():
                logprobs, entropies = plain_outputs(m, [tokens])
            self.assertLess((got["logprobs"] - logprobs[10:]).abs().max(), 1e-5)
            self.assertLess((got["entropies"] - entropies[10:]).abs().max(), 1e-5)

    def test_no_rows(self):
        h, (dir, _) = host(), model("qwen3")
        h.load(dir)
        self.assertEqual(h.generate([], [], []), [])
        self.assertEqual({k: v.numel() for k, v in h.forward([]).items()}, {"logprobs": 0, "entropies": 0})
        kept, _ = h.forward([], keep=True)
        h.backward([], kept)
        self.assertEqual(h.step(weight_decay=0.0)["grad_norm"], 0)


if __name__ == "__main__":
    unittest.main()
