"""Calls of one engine: an impossible call is refused by name, equal inputs give equal bits, and a call that is
cancelled or runs out of memory leaves nothing behind."""

import os
import resource
import tempfile
import time
import unittest

import torch
from driver import Refused, flat, random_rows
from models import VOCAB
from support import host, model, noise


class Engine(unittest.TestCase):
    def setUp(self):
        self.host = host()
        self.host.load(model("qwen3 tied")[0])

    def refused(self, call, arrays=None, **fields):
        with self.assertRaises(Refused) as e:
            self.host.call(call, arrays, **fields)
        return e.exception.kind, e.exception.name

    def test_hello(self):
        h = self.host.hello
        self.assertEqual(
            (
                h["type"],
                h["protocol"],
                h["nonce"],
                h["engine"],
                h["ranks"],
                h["device"],
                h["dtype"],
                h["deterministic"],
            ),
            ("hello", 1, self.host.nonce, "torch", 1, "cpu", "float32", True),
        )
        self.assertEqual(set(h["versions"]) - {"peft"}, {"python", "torch", "transformers", "safetensors"})
        self.assertEqual(h["pid"], self.host.process.pid)

    def test_refusals(self):
        h, rows = self.host, [[1, 2, 3], [4]]
        forward = dict(role="policy", temperature=1, outputs=["logprob"], keep=False)
        self.assertEqual(self.refused("forward", flat(rows), **{**forward, "role": "reference"}), ("not_loaded", ""))
        self.assertEqual(
            self.refused("forward", flat(rows), **{**forward, "outputs": ["value"]}), ("bad_request", "outputs")
        )
        self.assertEqual(self.refused("forward", flat([[1, VOCAB]]), **forward), ("bad_request", "tokens"))
        self.assertEqual(self.refused("forward", flat([[1, -1]]), **forward), ("bad_request", "tokens"))
        self.assertEqual(self.refused("forward", flat([[1] * 257]), **forward), ("bad_request", "lengths"))
        generate = dict(role="policy", temperature=1, top_k=0, top_p=0, min_p=0, stop=[], top=0, top_tokens=0)
        asked = {
            **flat(rows),
            "streams": torch.zeros(2, dtype=torch.uint64),
            "max_tokens": torch.full((2,), 3, dtype=torch.int32),
        }
        self.assertEqual(self.refused("generate", asked, **{**generate, "stop": [VOCAB]}), ("bad_request", "stop"))
        for named in (dict(top=21, top_tokens=1), dict(top=-1, top_tokens=1), dict(top=3, top_tokens=0)):
            self.assertEqual(self.refused("generate", asked, **{**generate, **named}), ("bad_request", "top"))
        for limit, value in {"top_k": -1, "top_p": 1.5, "min_p": -0.1}.items():
            self.assertEqual(self.refused("generate", asked, **{**generate, limit: value}), ("bad_request", limit))
        self.assertEqual(
            self.refused("generate", {**asked, "max_tokens": torch.tensor([3, 0], dtype=torch.int32)}, **generate),
            ("bad_request", "max_tokens"),
        )
        self.assertEqual(
            self.refused("generate", {**asked, "max_tokens": torch.tensor([3, 256], dtype=torch.int32)}, **generate),
            ("bad_request", "max_tokens"),
        )
        self.assertEqual(
            self.refused("generate", {**asked, "streams": torch.zeros(1, dtype=torch.uint64)}, **generate),
            ("bad_request", "streams"),
        )
        kept, _ = h.forward(rows, ("logprob",), keep=True)
        self.assertEqual(
            self.refused("backward", {"lengths": flat(rows)["lengths"]}, role="policy", kept=kept + 1), ("not_kept", "")
        )
        self.assertEqual(
            self.refused(
                "backward", {"lengths": flat(rows)["lengths"], "values": torch.ones(4)}, role="policy", kept=kept
            ),
            ("bad_request", "values"),
        )
        self.assertEqual(
            self.refused(
                "backward", {"lengths": flat(rows[:1])["lengths"], "logprobs": torch.ones(3)}, role="policy", kept=kept
            ),
            ("bad_request", "lengths"),
        )
        h.backward(rows, kept, logprobs=torch.ones(4))  # a refused call keeps the pass
        self.assertEqual(
            self.refused("backward", {"lengths": flat(rows)["lengths"]}, role="policy", kept=kept), ("not_kept", "")
        )
        h.call("discard", role="policy")
        h.load(model("qwen3 tied")[0], "critic")
        self.assertEqual(
            self.refused("forward", flat(rows), **{**forward, "role": "critic"}), ("bad_request", "outputs")
        )
        self.assertEqual(self.refused("generate", asked, **{**generate, "role": "critic"}), ("bad_request", "role"))

    def test_a_gradient_that_is_not_finite(self):
        h, rows = self.host, random_rows(30, VOCAB, 8)
        for bad in (float("nan"), float("inf")):
            kept, _ = h.forward(rows, keep=True)
            h.backward(rows, kept, logprobs=torch.full((8,), bad))
            with self.assertRaises(Refused) as e:
                h.step()
            self.assertEqual(e.exception.kind, "non_finite")
            self.assertRegex(e.exception.name, r"\.weight$")
        state = h.call("state", role="policy")[0]
        self.assertEqual(state["step"], 0)
        self.assertEqual(h.step(weight_decay=0.0)["grad_norm"], 0)  # the refused gradient is gone

    def test_same_bits(self):
        h, rows = self.host, random_rows(31, VOCAB, 33, 5, 12, 61, 2)
        without, (kept, with_) = h.forward(rows), h.forward(rows, keep=True)
        for k in without:
            self.assertTrue(torch.equal(without[k], with_[k]))
        h.call("discard", role="policy")
        saved = []
        for _ in range(2):
            h.load(model("qwen3 tied")[0])
            for i in range(3):
                kept, _ = h.forward(rows, keep=True)
                h.backward(rows, kept, logprobs=noise(i, 113), entropies=noise(i + 9, 113))
                h.step()
            dir = h.save()
            saved.append({n: open(os.path.join(dir, n), "rb").read() for n in os.listdir(dir)})
        self.assertEqual(saved[0], saved[1])

    def test_packs_and_batch_mates_change_rounding_only(self):
        h, rows = self.host, random_rows(32, VOCAB, 9, 30, 3, 70, 17, 30)
        together, at = h.forward(rows), 0
        for r in rows:
            alone = h.forward([r])
            for k in alone:
                self.assertLess((alone[k] - together[k][at : at + len(r)]).abs().max(), 1e-5)
            at += len(r)


class Cancel(unittest.TestCase):
    def gone(self, h, rows, kept):
        try:
            h.backward(rows, kept)
        except Refused as e:
            self.assertEqual(e.kind, "not_kept")
            return True
        return False

    def test_cancel(self):
        h, (dir, _) = host(), model("qwen3 tied")
        h.load(dir)
        rows = random_rows(33, VOCAB, *[100] * 200)
        n = 20_000
        small = random_rows(34, VOCAB, 9)
        asked = {
            **flat(rows),
            "streams": torch.zeros(200, dtype=torch.uint64),
            "max_tokens": torch.full((200,), 150, dtype=torch.int32),
        }
        forward = dict(role="policy", temperature=1, outputs=["logprob"], keep=True)
        kept_whole, _ = h.forward(rows, ("logprob",), keep=True)
        generate = dict(role="policy", temperature=1, top_k=0, top_p=0, min_p=0, stop=[], top=0, top_tokens=0)
        for call, arrays, fields in (
            ("generate", asked, generate),
            ("forward", flat(rows), forward),
            (
                "backward",
                {"lengths": flat(rows)["lengths"], "logprobs": torch.ones(n)},
                dict(role="policy", kept=kept_whole),
            ),
        ):
            with self.subTest(call):
                # A gradient and a pass from before the cancelled call.
                kept, _ = h.forward(small, keep=True)
                h.backward(small, kept, logprobs=torch.ones(9))
                id = h.start(call, arrays, **fields)
                time.sleep(0.03)
                h.send({"type": "cancel", "id": id})
                with self.assertRaises(Refused) as e:
                    h.finish(id)
                self.assertEqual((e.exception.kind, e.exception.id), ("cancelled", id))
                # A cancelled backward pass has used up its kept pass, and drops all gradients.
                begun = call == "backward" and self.gone(h, rows, kept_whole)
                norm = h.step(lr=0.0)["grad_norm"]
                (self.assertEqual if begun else self.assertGreater)(norm, 0)
        h.send({"type": "cancel", "id": h.id})  # already answered, so not affected
        self.assertEqual(h.forward(small)["logprobs"].numel(), 9)
        # A call that waits in the queue is cancelled before it begins.
        first = h.start("forward", flat(rows), **{**forward, "keep": False})
        dir = tempfile.mkdtemp(dir=h.folder)
        second = h.start("save", role="policy", dir=dir)
        h.send({"type": "cancel", "id": second})
        h.finish(first)
        with self.assertRaises(Refused) as e:
            h.finish(second)
        self.assertEqual((e.exception.kind, os.listdir(dir)), ("cancelled", []))


class FullMemory(unittest.TestCase):
    def test_serves_on(self):
        """A forward pass that runs out of memory: nothing of it is kept, and the next call is served."""
        h = host()
        h.load(model("llama")[0])
        small, large = random_rows(36, VOCAB, 20), random_rows(37, VOCAB, *[250] * 1000)
        want = h.forward(small)
        kept, _ = h.forward(small, keep=True)
        h.backward(small, kept, logprobs=torch.ones(20))
        pid = h.hello["pid"]
        with open(f"/proc/{pid}/statm") as f:
            used = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        before = resource.prlimit(pid, resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
        try:
            with self.assertRaises(Refused) as e:
                h.forward(large, keep=True)
        finally:
            resource.prlimit(pid, resource.RLIMIT_AS, before)
        self.assertEqual(e.exception.kind, "out_of_memory", e.exception.message)
        got = h.forward(small)
        self.assertTrue(torch.equal(got["logprobs"], want["logprobs"]))
        self.assertEqual(h.step(weight_decay=0.0)["grad_norm"], 0)  # the role's gradients are dropped


if __name__ == "__main__":
    unittest.main()
