"""One rank on each of two hosts, the second without a folder: the results equal one process's; all end together."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from driver import AGENT, MAIN, Host, Refused
from models import VOCAB
from support import host, model, relative
from safetensors.torch import load_file
from test_ranks import KIND, ROWS, children, folder, gone, update

FLAGS = ("--threads", "1")


class TwoHosts(Host):
    """Its folder belongs to rank 0. The other host's process runs elsewhere, so relative paths lead nowhere there."""

    def __init__(self) -> None:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        meet = [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-backend=bound", "--rdzv-id=test", "--nnodes=2"]
        self.there = tempfile.mkdtemp(prefix="engine")
        command = [sys.executable, "-I", AGENT, *meet, "--rdzv-conf=place=1,timeout=100", "--nproc-per-node=1",
                   "--no-python", sys.executable, "-I", MAIN, *FLAGS]  # fmt: skip
        env = {k: os.environ[k] for k in ("PATH", "LD_LIBRARY_PATH") if k in os.environ} | {
            "HOME": self.there,
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        }
        self.other = subprocess.Popen(
            command,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self.there,
        )
        super().__init__(*FLAGS, meet=[*meet, "--rdzv-conf=place=0,timeout=100"])

    def copy(self, dir: str, name: str) -> str:
        """Puts a model where only rank 0 finds it by this name."""
        shutil.copytree(dir, os.path.join(self.folder, name))
        return name

    def close(self) -> int:
        status = super().close()
        self.until(lambda: self.other.poll() is not None)
        shutil.rmtree(self.there)
        return status


class Hosts(unittest.TestCase):
    def test_two_hosts(self):
        h = TwoHosts()
        self.assertEqual(h.hello["ranks"], 2)
        self.assertEqual(h.listening(), {"127.0.0.1"})
        one = host()
        one.load(model(KIND)[0])
        h.load(h.copy(model(KIND)[0], "model"))
        a, b = one.forward(ROWS), h.forward(ROWS)
        for k in a:
            self.assertLess((a[k] - b[k]).abs().max(), 1e-5)
        before = load_file(one.save() + "/model.safetensors")
        for i in range(2):
            a, b = update(one, i), update(h, i)
            self.assertAlmostEqual(a["grad_norm"] / b["grad_norm"], 1, delta=1e-4)
        saved = h.save()
        a, b = (load_file(f"{d}/model.safetensors") for d in (one.save(), saved))
        for k in a:
            self.assertLess(relative(b[k] - before[k], a[k] - before[k]), 1e-3, k)
        # The saved folder, with the optimiser's moments, loads again. Resident parts are not read.
        name = h.copy(saved, "saved")
        self.assertEqual(h.load(name, digest="d")["reused"], [])
        self.assertEqual(folder(h.save()), folder(saved))
        self.assertEqual(h.load(name, digest="d")["reused"], ["weights", "optimizer"])
        for dir, kind in (("nowhere", "bad_request"), (h.copy(saved, "broken"), "corrupt")):
            if kind == "corrupt":
                with open(os.path.join(h.folder, dir, "optimizer.state"), "r+b") as f:
                    f.truncate(100)
            with self.assertRaises(Refused) as e:
                h.load(dir)
            self.assertEqual(e.exception.kind, kind)
        # A critic from the policy's folder, and from its own.
        h.load(name, role="critic")
        update(h, 3, "critic")
        critic = h.save("critic")
        h.load(h.copy(critic, "critic"), role="critic")
        self.assertEqual(folder(h.save("critic")), folder(critic))
        self.assertEqual(h.forward([[1, VOCAB - 1]])["logprobs"].numel(), 2)
        # The host closes, and the ranks of both hosts end.
        ranks = children(h.process.pid) + children(h.other.pid)
        self.assertEqual(h.close(), 0)
        self.assertEqual(h.other.returncode, 0)
        self.assertTrue(all(gone(p) for p in ranks))

    def test_the_first_host_is_lost(self):
        h = TwoHosts()
        (other,) = children(h.other.pid)
        begin = time.monotonic()
        for pid in (h.process.pid, *children(h.process.pid)):
            os.kill(pid, signal.SIGKILL)
        h.until(lambda: gone(other))
        self.assertLess(time.monotonic() - begin, 10)
        h.close()


if __name__ == "__main__":
    unittest.main()
