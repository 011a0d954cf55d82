"""Two processes under torchrun against one: results are equal, checkpoints go both ways, and all end together."""

import os
import resource
import signal
import time
import unittest

import torch
from driver import ZERO, Host, Refused, flat, random_rows
from models import VOCAB
from safetensors.torch import load_file
from support import host, model, noise, relative

KIND = "qwen3 tied"
ROWS = random_rows(40, VOCAB, 5, 1, 30, 12, 100, 7)
N = sum(len(r) for r in ROWS)


def two():
    return host("--threads", "1", ranks=2)


def folder(dir):
    return {n: open(os.path.join(dir, n), "rb").read() for n in sorted(os.listdir(dir))}


def update(h, i, role="policy"):
    """One step over two kept passes, one of which leaves a rank without rows."""
    outputs = ("value",) if role == "critic" else ("logprob", "entropy")
    kept, _ = h.forward(ROWS, outputs, role, keep=True)
    small, _ = h.forward(ROWS[:1], outputs, role, keep=True)
    of = {"values": noise(i, N)} if role == "critic" else {"logprobs": noise(i, N), "entropies": noise(i + 50, N)}
    h.backward(ROWS[:1], small, role, **{k: v[:5] for k, v in of.items()})
    h.backward(ROWS, kept, role, **of)
    return h.step(role, lr=1e-3, epsilon=1e-4)


class TwoRanks(unittest.TestCase):
    def setUp(self):
        for h in (host(), two()):
            h.load(model(KIND)[0])

    def test_outputs_and_samples(self):
        self.assertEqual(two().hello["ranks"], 2)
        self.assertEqual(two().listening(), {"127.0.0.1"})
        a, b = host().forward(ROWS), two().forward(ROWS)
        for k in a:
            self.assertLess((a[k] - b[k]).abs().max(), 1e-5)
        a, b = (h.generate(ROWS, list(range(6)), [9, 20, 1, 30, 5, 6], stop=(3,)) for h in (host(), two()))
        self.assertEqual([(g["tokens"], g["finish"]) for g in a], [(g["tokens"], g["finish"]) for g in b])
        # The ranks are in step again.
        self.assertEqual(two().forward([[1, 2]])["logprobs"].numel(), 2)

    def test_gradients_and_five_steps(self):
        for role in ("policy", "critic"):
            for h in (host(), two()):
                h.load(model(KIND)[0], role)
            before = load_file(host().save(role) + "/model.safetensors")
            for i in range(5):
                a, b = (update(h, i, role) for h in (host(), two()))
                self.assertAlmostEqual(a["grad_norm"] / b["grad_norm"], 1, delta=1e-4)
                if i == 0 or i == 4:
                    da, db = host().save(role), two().save(role)
                if i == 0:  # (1 − beta1)·gradient
                    a, b = (load_file(f"{d}/optimizer.state") for d in (da, db))
                    for k in a:
                        self.assertLess(relative(b[k], a[k]), 1e-4, k)
            a, b = (load_file(f"{d}/model.safetensors") for d in (da, db))
            for k in a:
                self.assertLess(relative(b[k] - before[k], a[k] - before[k]), 1e-3, k)

    def test_checkpoints_of_one_and_two(self):
        update(two(), 1)
        dir = two().save()
        want = folder(dir)
        for h in (two(), host()):
            h.load(dir)
            self.assertEqual(folder(h.save()), want)
        a, b = (update(h, 2) for h in (host(), two()))
        self.assertEqual((a["step"], b["step"]), (2, 2))
        self.assertAlmostEqual(a["grad_norm"] / b["grad_norm"], 1, delta=1e-4)

    def test_resident_and_refusals(self):
        h = two()
        dir = h.save()
        h.call("saved", role="policy", digest="d")
        self.assertEqual(h.load(dir, digest="d")["reused"], ["weights", "optimizer"])
        for call, fields, kind in (
            ("load", dict(role="policy", dir="/nowhere", optimizer=True, digest=""), "bad_request"),
            ("save", dict(role="policy", dir=dir), "bad_request"),  # not empty
            (
                "step",
                dict(role="reference", lr=0, clip_norm=0, optimizer="adamw", settings=ZERO),
                "not_loaded",
            ),
        ):
            with self.assertRaises(Refused) as e:
                h.call(call, **fields)
            self.assertEqual(e.exception.kind, kind)
        kept, _ = h.forward(ROWS, keep=True)
        h.backward(ROWS, kept, logprobs=torch.full((N,), float("nan")))
        with self.assertRaises(Refused) as e:
            h.step()
        self.assertEqual(e.exception.kind, "non_finite")
        self.assertEqual(h.forward(ROWS)["logprobs"].numel(), N)

    def test_cancel(self):
        h = two()
        rows = random_rows(41, VOCAB, *[100] * 300)
        asked = {
            **flat(rows),
            "streams": torch.zeros(300, dtype=torch.uint64),
            "max_tokens": torch.full((300,), 150, dtype=torch.int32),
        }
        generate = dict(role="policy", temperature=1, top_k=0, top_p=0, min_p=0, stop=[], top=0, top_tokens=0)
        for call, arrays, fields in (
            ("generate", asked, generate),
            ("forward", flat(rows * 3), dict(role="policy", temperature=1, outputs=["logprob"], keep=False)),
        ):
            id = h.start(call, arrays, **fields)
            time.sleep(0.1)
            h.send({"type": "cancel", "id": id})
            begin = time.monotonic()
            with self.assertRaises(Refused) as e:
                h.finish(id)
            self.assertEqual(e.exception.kind, "cancelled")
            self.assertLess(time.monotonic() - begin, 5)
            self.assertEqual(h.forward(ROWS)["logprobs"].numel(), N)

    def test_one_ranks_memory_is_full(self):
        """It reports through rank 0, whatever collective rank 0 waits in. Then all end."""
        h = Host("--threads", "1", ranks=2)
        ranks = children(h.process.pid)
        h.load(model(KIND)[0])
        self.assertEqual(h.forward(ROWS)["logprobs"].numel(), N)
        (other,) = set(ranks) - {h.hello["pid"]}
        with open(f"/proc/{other}/statm") as f:
            used = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.prlimit(other, resource.RLIMIT_AS, (used + (128 << 20), resource.RLIM_INFINITY))
        with self.assertRaises(Refused) as e:
            h.forward(random_rows(42, VOCAB, *[250] * 1000), keep=True)
        self.assertEqual(e.exception.kind, "out_of_memory", e.exception.message)
        self.assertIn("rank 1", e.exception.message)
        h.until(lambda: h.process.poll() is not None)
        self.assertTrue(all(gone(p) for p in ranks))
        h.close()

    def test_zz_all_end(self):
        """One rank is killed, and all end. This test is the last because it uses up the shared engine."""
        h = Host("--threads", "1", ranks=2)
        ranks = children(h.process.pid)
        self.assertEqual(len(ranks), 2)
        h.load(model(KIND)[0])
        (other,) = set(ranks) - {h.hello["pid"]}
        os.kill(other, signal.SIGKILL)
        h.until(lambda: h.process.poll() is not None)
        self.assertNotEqual(h.process.returncode, 0)
        self.assertTrue(all(gone(p) for p in ranks))
        h.close()
        # The host closes, and all end with 0.
        h = two()
        ranks = children(h.process.pid)
        begin = time.monotonic()
        self.assertEqual(h.close(), 0)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertTrue(all(gone(p) for p in ranks))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


if __name__ == "__main__":
    unittest.main()
