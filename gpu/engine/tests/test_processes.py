"""The engine as a process: stacks, beats, and how it ends."""

import os
import signal
import time
import unittest

import torch
from driver import Host, flat, random_rows
from models import VOCAB
from support import model


class Processes(unittest.TestCase):
    def test_stacks_beats_and_the_end(self):
        h = Host()
        try:
            h.load(model("qwen3 tied")[0])
            rows = random_rows(35, VOCAB, *[200] * 30)
            asked = {
                **flat(rows),
                "streams": torch.zeros(30, dtype=torch.uint64),
                "max_tokens": torch.full((30,), 50, dtype=torch.int32),
            }
            begin = time.monotonic()
            while not any(b["at"] for b in h.beats) and time.monotonic() < begin + 30:
                limits = dict(top_k=0, top_p=0, min_p=0, top=0, top_tokens=0)
                h.call("generate", asked, role="policy", temperature=1, stop=[], **limits)
            beat = next(b for b in h.beats if b["at"])
            self.assertEqual(set(beat), {"type", "at", "phase", "ticks", "done", "total", "memory"})
            self.assertEqual(beat["phase"], "generate" if beat["at"] > 1 else "load")
            self.assertGreater(beat["memory"]["peak"], 1 << 20)
            self.assertGreaterEqual(beat["memory"]["peak"], beat["memory"]["allocated"])
            os.kill(h.hello["pid"], signal.SIGUSR1)
            h.until(lambda: h.logged().count("most recent call first") >= 3)
            self.assertIn("in _read", h.logged())
            # Closed during a call, the engine ends at once and quietly.
            h.start(
                "generate",
                {**asked, "max_tokens": torch.full((30,), 56, dtype=torch.int32)},
                role="policy",
                temperature=1,
                top_k=0,
                top_p=0,
                min_p=0,
                stop=[],
                top=0,
                top_tokens=0,
            )
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
        # The engine leaves the end of it unread, for which the kernel may reset the connection.
        with self.assertRaises((EOFError, ConnectionResetError)):
            h.receive()
        self.assertEqual(h.process.wait(10), 1)
        h.close()


if __name__ == "__main__":
    unittest.main()
