"""Frames and requests: good ones, bad ones, mutated ones."""

import json
import random
import socket
import struct
import threading
import unittest

import support  # noqa: F401  (the engine's modules)
import torch
from driver import flat
from safetensors.torch import save as encode

from ropewalk_engine import frames, messages, tensorfile
from ropewalk_engine.errors import EngineError, ProtocolError


def frame(header, body=b""):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return b"RWEP" + struct.pack("<IQ", len(raw), len(body)) + raw + body


def taken(stream):
    """Returns the requests that the engine reads from a stream of bytes, then how the stream ended."""
    a, b = socket.socketpair()

    def feed():
        try:
            a.sendall(stream)
        except OSError:
            pass  # the reader has closed
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
FORWARD = {
    "type": "call",
    "id": 1,
    "call": "forward",
    "role": "policy",
    "temperature": 1,
    "outputs": ["logprob"],
    "keep": False,
}
STEP = {
    "type": "call",
    "id": 2,
    "call": "step",
    "role": "policy",
    "lr": 0.1,
    "clip_norm": 1,
    "optimizer": "adamw",
    "settings": {"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0},
}


class Frames(unittest.TestCase):
    def test_good(self):
        self.assertEqual(
            taken(frame(FORWARD, ROWS) + frame(STEP) + frame({"type": "cancel", "id": 3})),
            ([("forward", None), ("step", None), ("cancel", None)], None),
        )

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
            (
                frame(FORWARD, encode({"tokens": torch.zeros(3), "lengths": torch.ones(3, dtype=torch.int32)})),
                "'tokens' F32",
            ),
            (frame(FORWARD, encode({**flat([[1]]), "more": torch.zeros(1)})), "'more'"),
            (
                frame(
                    FORWARD,
                    encode(
                        {"tokens": torch.zeros(1, 1, dtype=torch.int32), "lengths": torch.ones(1, dtype=torch.int32)}
                    ),
                ),
                "'tokens' I32 [1, 1]",
            ),
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
            ((_, error),) = taken(frame(h, encode({**flat([[1, 2, 3], [4]]), **arrays})))[0]
            self.assertIsInstance(error, EngineError)
            self.assertEqual((error.kind, error.name), ("bad_request", name))
        for k, v in (("lr", -1), ("clip_norm", -1), ("optimizer", "lion")):
            ((_, error),) = taken(frame({**STEP, k: v}))[0]
            self.assertEqual((error.kind, error.name), ("bad_request", k))
        for k, v in (("beta1", 1), ("beta2", 1.5), ("epsilon", -1e-9), ("weight_decay", -1), ("rho", 1)):
            ((_, error),) = taken(frame({**STEP, "settings": {**STEP["settings"], k: v}}))[0]
            self.assertEqual((error.kind, error.name), ("bad_request", k))
        ((_, error),) = taken(frame({**STEP, "settings": {}}))[0]
        self.assertEqual((error.kind, error.name), ("bad_request", "beta1"))

    def test_mutations(self):
        """Whatever the bytes are, the reader says what is wrong with them and nothing else happens."""
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
            # A longer length would make the reader wait for more bytes, and the end of the stream ends the wait. Memory
            # is bounded by frames.MAX_BODY, but this machine may not have that much, so large lengths are skipped.
            if len(b) >= 16 and struct.unpack_from("<Q", b, 8)[0] > 1 << 24:
                continue
            taken(bytes(b))

    def test_tensor_files_cut_everywhere(self):
        for n in range(len(ROWS)):
            with self.assertRaises(tensorfile.FormatError):
                tensorfile.parse(ROWS[:n], n)


if __name__ == "__main__":
    unittest.main()
