"""What breaks the protocol ends the connection, what cannot be served does not, and a cancelled call leaves nothing."""

import json
import os
import random
import signal
import socket
import struct
import tempfile
import threading
import time
import unittest

import torch
from driver import Host, Refused, flat, random_rows
from models import VOCAB
from safetensors.torch import save as encode
from support import host, model, noise

from ropewalk_engine import frames, messages, tensorfile
from ropewalk_engine.errors import EngineError, ProtocolError


def frame(header, body=b""):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return b"RWEP" + struct.pack("<IQ", len(raw), len(body)) + raw + body


def taken(stream):
    """What the engine's side makes of a stream of bytes: its requests, then how it ended."""
    a, b = socket.socketpair()

    def feed():
        try:
            a.sendall(stream)
        except OSError:
            pass  # the reader has had enough
        a.close()

    feeder = threading.Thread(target=feed)
    feeder.start()
    out = []
    try:
        while True:
            h, body = frames.read_frame(b)
            if h.get("type") == "call":
                r = messages.parse_call(h, body)
                out.append((r.call, messages.check(r)))
            else:
                out.append((h.get("type"), None))
    except EOFError:
        return out, None
    except ProtocolError as e:
        return out, str(e)
    finally:
        b.close()
        feeder.join()


ROWS = encode(flat([[1, 2, 3], [4]]))
FORWARD = {"type": "call", "id": 1, "call": "forward", "role": "policy", "temperature": 1, "outputs": ["logprob"], "keep": False}
STEP = {"type": "call", "id": 2, "call": "step", "role": "policy", "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0, "clip_norm": 1}


class Frames(unittest.TestCase):
    def test_good(self):
        self.assertEqual(taken(frame(FORWARD, ROWS) + frame(STEP) + frame({"type": "cancel", "id": 3})), ([("forward", None), ("step", None), ("cancel", None)], None))

    def test_bad(self):
        for stream, why in (
            (b"HTTP" + bytes(12), "begins with"),
            (b"RWEP" + struct.pack("<IQ", 1, 0) + b"{", "header of 1 bytes"),
            (b"RWEP" + struct.pack("<IQ", (1 << 20) + 1, 0), "header of 1048577"),
            (b"RWEP" + struct.pack("<IQ", 2, 1 << 62) + b"{}", "body of"),
            (b"RWEP" + struct.pack("<IQ", 2, 7) + b"{}" + bytes(7), "body of 7"),
            (frame(FORWARD, ROWS)[:10], "ends after"),
            (frame(FORWARD, ROWS)[:-1], "ends after"),
            (frame(b"[]"), "no JSON object"),
            (frame(b'{"type":"call","type":"call"}'), "twice"),
            (frame(b'{"type":NaN}'), "NaN"),
            (frame(b"\xff\xfe"), "no JSON object"),
            (frame(b"[" * 100_000), "no JSON object"),
            (frame({**FORWARD, "id": 0}, ROWS), "id 0"),
            (frame({**FORWARD, "id": True}, ROWS), "id True"),
            (frame({**FORWARD, "call": "exec"}, ROWS), "'exec'"),
            (frame({**FORWARD, "more": 1}, ROWS), "no field 'more'"),
            (frame({k: v for k, v in FORWARD.items() if k != "keep"}, ROWS), "'keep' is missing"),
            (frame({**FORWARD, "keep": 1}, ROWS), "'keep' is of the wrong type"),
            (frame({**FORWARD, "temperature": True}, ROWS), "'temperature'"),
            (frame({**FORWARD, "outputs": "logprob"}, ROWS), "'outputs'"),
            (frame(FORWARD), "'tokens' is missing"),
            (frame(STEP, ROWS), "has no body"),
            (frame(FORWARD, ROWS[:-1]), "no safetensors file"),
            (frame(FORWARD, encode({"tokens": torch.zeros(3), "lengths": torch.ones(3, dtype=torch.int32)})), "'tokens' F32"),
            (frame(FORWARD, encode({**flat([[1]]), "more": torch.zeros(1)})), "'more'"),
            (frame(FORWARD, encode({"tokens": torch.zeros(1, 1, dtype=torch.int32), "lengths": torch.ones(1, dtype=torch.int32)})), "'tokens' I32 [1, 1]"),
        ):
            with self.subTest(why):
                out, end = taken(stream)
                self.assertEqual(out, [])
                self.assertIn(why, end)

    def test_values_that_cannot_be(self):
        for h, arrays, name in (
            ({**FORWARD, "role": "judge"}, {}, "role"),
            ({**FORWARD, "temperature": 0}, {}, "temperature"),
            ({**FORWARD, "temperature": -1}, {}, "temperature"),
            ({**FORWARD, "outputs": []}, {}, "outputs"),
            ({**FORWARD, "outputs": ["logprob", "logprob"]}, {}, "outputs"),
            ({**FORWARD, "outputs": ["hidden"]}, {}, "outputs"),
            (FORWARD, {"lengths": torch.tensor([5], dtype=torch.int32)}, "tokens"),
            (FORWARD, {"lengths": torch.tensor([5, -1], dtype=torch.int32)}, "lengths"),
            (FORWARD, {"lengths": torch.tensor([4, 0], dtype=torch.int32)}, "lengths"),
        ):
            (_, error), = taken(frame(h, encode({**flat([[1, 2, 3], [4]]), **arrays})))[0]
            self.assertIsInstance(error, EngineError)
            self.assertEqual((error.kind, error.name), ("bad_request", name))
        for k, v in (("lr", -1), ("beta1", 1), ("beta2", 1.5), ("epsilon", -1e-9), ("weight_decay", -1), ("clip_norm", -1)):
            (_, error), = taken(frame({**STEP, k: v}))[0]
            self.assertEqual((error.kind, error.name), ("bad_request", k))

    def test_mutations(self):
        """Whatever becomes of the bytes, the reader says what is wrong with them and nothing else happens."""
        rng = random.Random(1)
        good = frame(FORWARD, ROWS) + frame(STEP)
        for _ in range(3000):
            b = bytearray(good)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(b))
                what = rng.randrange(4)
                if what == 0:
                    b[at] ^= 1 << rng.randrange(8)
                elif what == 1:
                    b[at] = rng.randrange(256)
                elif what == 2:
                    del b[at : at + rng.randint(1, 9)]
                else:
                    b[at:at] = rng.randbytes(rng.randint(1, 9))
                if not b:
                    break
            # A length that grew would have the reader wait for bytes, which taken ends: memory is bound by frames.MAX_BODY,
            # and is asked for only as far as these tests' machine gives it.
            if len(b) >= 16 and struct.unpack_from("<Q", b, 8)[0] > 1 << 24:
                continue
            taken(bytes(b))

    def test_tensor_files_cut_everywhere(self):
        for n in range(len(ROWS)):
            with self.assertRaises(tensorfile.FormatError):
                tensorfile.parse(ROWS[:n], n)


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
        self.assertEqual((h["type"], h["protocol"], h["nonce"], h["engine"], h["ranks"], h["device"], h["dtype"], h["deterministic"]), ("hello", 1, self.host.nonce, "torch", 1, "cpu", "float32", True))
        self.assertEqual(set(h["versions"]), {"python", "torch", "transformers", "safetensors"})
        self.assertEqual(h["pid"], self.host.process.pid)

    def test_refusals(self):
        h, rows = self.host, [[1, 2, 3], [4]]
        forward = dict(role="policy", temperature=1, outputs=["logprob"], keep=False)
        self.assertEqual(self.refused("forward", flat(rows), **{**forward, "role": "reference"}), ("not_loaded", ""))
        self.assertEqual(self.refused("forward", flat(rows), **{**forward, "outputs": ["value"]}), ("bad_request", "outputs"))
        self.assertEqual(self.refused("forward", flat([[1, VOCAB]]), **forward), ("bad_request", "tokens"))
        self.assertEqual(self.refused("forward", flat([[1, -1]]), **forward), ("bad_request", "tokens"))
        self.assertEqual(self.refused("forward", flat([[1] * 257]), **forward), ("bad_request", "lengths"))
        generate = dict(role="policy", temperature=1, stop=[])
        asked = {**flat(rows), "streams": torch.zeros(2, dtype=torch.uint64), "max_tokens": torch.full((2,), 3, dtype=torch.int32)}
        self.assertEqual(self.refused("generate", asked, **{**generate, "stop": [VOCAB]}), ("bad_request", "stop"))
        self.assertEqual(self.refused("generate", {**asked, "max_tokens": torch.tensor([3, 0], dtype=torch.int32)}, **generate), ("bad_request", "max_tokens"))
        self.assertEqual(self.refused("generate", {**asked, "max_tokens": torch.tensor([3, 256], dtype=torch.int32)}, **generate), ("bad_request", "max_tokens"))
        self.assertEqual(self.refused("generate", {**asked, "streams": torch.zeros(1, dtype=torch.uint64)}, **generate), ("bad_request", "streams"))
        kept, _ = h.forward(rows, ("logprob",), keep=True)
        self.assertEqual(self.refused("backward", {"lengths": flat(rows)["lengths"]}, role="policy", kept=kept + 1), ("not_kept", ""))
        self.assertEqual(self.refused("backward", {"lengths": flat(rows)["lengths"], "values": torch.ones(4)}, role="policy", kept=kept), ("bad_request", "values"))
        self.assertEqual(self.refused("backward", {"lengths": flat(rows[:1])["lengths"], "logprobs": torch.ones(3)}, role="policy", kept=kept), ("bad_request", "lengths"))
        h.backward(rows, kept, logprobs=torch.ones(4))  # what is refused keeps what was kept
        self.assertEqual(self.refused("backward", {"lengths": flat(rows)["lengths"]}, role="policy", kept=kept), ("not_kept", ""))
        h.call("discard", role="policy")
        h.load(model("qwen3 tied")[0], "critic")
        self.assertEqual(self.refused("forward", flat(rows), **{**forward, "role": "critic"}), ("bad_request", "outputs"))
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
        asked = {**flat(rows), "streams": torch.zeros(200, dtype=torch.uint64), "max_tokens": torch.full((200,), 150, dtype=torch.int32)}
        forward = dict(role="policy", temperature=1, outputs=["logprob"], keep=True)
        kept_whole, _ = h.forward(rows, ("logprob",), keep=True)
        for call, arrays, fields in (
            ("generate", asked, dict(role="policy", temperature=1, stop=[])),
            ("forward", flat(rows), forward),
            ("backward", {"lengths": flat(rows)["lengths"], "logprobs": torch.ones(n)}, dict(role="policy", kept=kept_whole)),
        ):
            with self.subTest(call):
                # A gradient and a pass from before, to see what becomes of them.
                kept, _ = h.forward(small, keep=True)
                h.backward(small, kept, logprobs=torch.ones(9))
                id = h.start(call, arrays, **fields)
                time.sleep(0.03)
                h.send({"type": "cancel", "id": id})
                with self.assertRaises(Refused) as e:
                    h.finish(id)
                self.assertEqual((e.exception.kind, e.exception.id), ("cancelled", id))
                # A backward pass that had begun has used up its pass and takes all gradients with it.
                begun = call == "backward" and self.gone(h, rows, kept_whole)
                norm = h.step(lr=0.0)["grad_norm"]
                (self.assertEqual if begun else self.assertGreater)(norm, 0)
        h.send({"type": "cancel", "id": h.id})  # answered already: not affected
        self.assertEqual(h.forward(small)["logprobs"].numel(), 9)
        # A call that waits in the line is cancelled before it begins.
        first = h.start("forward", flat(rows), **{**forward, "keep": False})
        dir = tempfile.mkdtemp(dir=h.folder)
        second = h.start("save", role="policy", dir=dir)
        h.send({"type": "cancel", "id": second})
        h.finish(first)
        with self.assertRaises(Refused) as e:
            h.finish(second)
        self.assertEqual((e.exception.kind, os.listdir(dir)), ("cancelled", []))


class Processes(unittest.TestCase):
    def test_stacks_beats_and_the_end(self):
        h = Host()
        try:
            h.load(model("qwen3 tied")[0])
            rows = random_rows(35, VOCAB, *[200] * 30)
            asked = {**flat(rows), "streams": torch.zeros(30, dtype=torch.uint64), "max_tokens": torch.full((30,), 50, dtype=torch.int32)}
            begin = time.monotonic()
            while not any(b["at"] for b in h.beats) and time.monotonic() < begin + 30:
                h.call("generate", asked, role="policy", temperature=1, stop=[])
            beat = next(b for b in h.beats if b["at"])
            self.assertEqual(set(beat), {"type", "at", "phase", "ticks", "done", "total", "memory"})
            self.assertEqual(beat["phase"], "generate" if beat["at"] > 1 else "load")
            self.assertGreater(beat["memory"]["peak"], 1 << 20)
            self.assertGreaterEqual(beat["memory"]["peak"], beat["memory"]["allocated"])
            os.kill(h.hello["pid"], signal.SIGUSR1)
            h.until(lambda: h.logged().count("most recent call first") >= 3)
            self.assertIn("in _read", h.logged())
            # Closed in the midst of a call: the engine ends at once, and quietly.
            h.start("generate", {**asked, "max_tokens": torch.full((30,), 56, dtype=torch.int32)}, role="policy", temperature=1, stop=[])
        finally:
            begin = time.monotonic()
            self.assertEqual(h.close(), 0)
            self.assertLess(time.monotonic() - begin, 2)

    def test_shutdown_and_garbage(self):
        h = Host()
        h.call("shutdown")
        self.assertEqual(h.process.wait(10), 0)
        h.close()
        h = Host()
        h.sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        answer, _ = h.receive()
        self.assertEqual((answer["type"], answer["kind"], answer["id"]), ("error", "protocol", 0))
        with self.assertRaises(EOFError):
            h.receive()
        self.assertEqual(h.process.wait(10), 1)
        h.close()


if __name__ == "__main__":
    unittest.main()
