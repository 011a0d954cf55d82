"""Plays the host: starts an engine and speaks the protocol with it. The codec is the safetensors package's."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any

import torch
from safetensors.torch import load as decode
from safetensors.torch import save as encode

HERE = os.path.dirname(os.path.abspath(__file__))
MAIN = os.path.join(os.path.dirname(HERE), "main.py")
AGENT = os.path.join(os.path.dirname(HERE), "agent.py")
LIMIT = 120.0  # seconds to wait for anything
ZERO = {"beta1": 0, "beta2": 0, "epsilon": 0, "weight_decay": 0}  # settings of AdamW


class Refused(Exception):
    """An error answer."""

    def __init__(self, h: dict[str, Any]) -> None:
        super().__init__(f"{h['kind']}: {h['message']}")
        self.kind, self.message, self.name, self.id = h["kind"], h["message"], h["name"], h["id"]


class Host:
    def __init__(self, *flags: str, ranks: int = 1, meet: list[str] | None = None) -> None:
        """`meet` holds torchrun's flags for one rank on each of several hosts."""
        self.folder = tempfile.mkdtemp(prefix="engine")
        path = os.path.join(self.folder, "socket")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(LIMIT)
        self.nonce = secrets.token_hex(16)
        self.log = open(os.path.join(self.folder, "log"), "wb+")
        command = [sys.executable, "-I", MAIN, *flags]
        if meet:
            command = [sys.executable, "-I", AGENT, *meet, "--nproc-per-node=1", "--no-python", *command]
        elif ranks > 1:
            command = [sys.executable, "-I", AGENT, "--nnodes=1", f"--nproc-per-node={ranks}", "--rdzv-backend=bound",
                       "--rdzv-endpoint=127.0.0.1:0", "--rdzv-conf=place=0,timeout=100", "--no-python",
                       *command]  # fmt: skip
        env = {k: os.environ[k] for k in ("PATH", "LD_LIBRARY_PATH") if k in os.environ} | {
            "HOME": self.folder,
            "ROPEWALK_ENGINE_SOCKET": path,
            "ROPEWALK_ENGINE_NONCE": self.nonce,
            "OMP_NUM_THREADS": "1",
        }
        if meet:
            env["GLOO_SOCKET_IFNAME"] = "lo"
        self.process = subprocess.Popen(
            command, env=env, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True, cwd=self.folder
        )
        try:
            self.sock, _ = listener.accept()
        except TimeoutError:
            raise AssertionError("the engine does not connect:\n" + self.logged()) from None
        finally:
            listener.close()
        self.sock.settimeout(LIMIT)
        self.id, self.beats = 0, []  # type: tuple[int, list[dict[str, Any]]]
        self.hello, _ = self.receive()
        self.send({"type": "welcome", "protocol": 1})

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        raw = json.dumps(header).encode()
        self.sock.sendall(b"RWEP" + struct.pack("<IQ", len(raw), len(body)) + raw + body)

    def _exactly(self, n: int) -> bytes:
        out = bytearray()
        while len(out) < n:
            part = self.sock.recv(min(n - len(out), 1 << 20))
            if not part:
                raise EOFError
            out += part
        return bytes(out)

    def receive(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Returns the next frame that is not a beat."""
        while True:
            magic, h, b = struct.unpack("<4sIQ", self._exactly(16))
            assert magic == b"RWEP"
            header, body = json.loads(self._exactly(h)), self._exactly(b)
            if header["type"] != "beat":
                return header, decode(body) if b else {}
            self.beats.append(header)

    def listening(self) -> set[str]:
        """Returns the IPv4 and IPv6 addresses at which the started process listens."""
        fds, sockets, out = f"/proc/{self.process.pid}/fd", set(), set()
        for fd in os.listdir(fds):
            try:
                sockets.add(os.readlink(os.path.join(fds, fd)))
            except FileNotFoundError:
                pass  # it was closed
        for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
            with open(f"/proc/{self.process.pid}/net/{table}") as f:
                for _, address, _, state, *_, inode in (line.split()[:10] for line in f.readlines()[1:]):
                    if state == "0A" and f"socket:[{inode}]" in sockets:
                        words = bytes.fromhex(address.rpartition(":")[0])  # of 4 bytes, each in this host's order
                        raw = b"".join(words[i : i + 4][::-1] for i in range(0, len(words), 4))
                        out.add(socket.inet_ntop(family, raw))
        return out

    def start(self, call: str, arrays: dict[str, torch.Tensor] | None = None, **fields: Any) -> int:
        """Sends a call and does not wait."""
        self.id += 1
        self.send({"type": "call", "id": self.id, "call": call, **fields}, encode(arrays) if arrays else b"")
        return self.id

    def finish(self, id: int) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        h, arrays = self.receive()
        if h["type"] == "error":
            raise Refused(h)
        assert h["type"] == "answer" and h["id"] == id, h
        return h, arrays

    def call(
        self, call: str, arrays: dict[str, torch.Tensor] | None = None, **fields: Any
    ) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        return self.finish(self.start(call, arrays, **fields))

    # The calls, with the tests' defaults.

    def load(self, dir: str, role: str = "policy", optimizer: bool = True, digest: str = "") -> dict[str, Any]:
        return self.call("load", role=role, dir=dir, optimizer=optimizer, digest=digest)[0]

    def save(self, role: str = "policy") -> str:
        dir = tempfile.mkdtemp(dir=self.folder)
        self.call("save", role=role, dir=dir)
        return dir

    def forward(
        self,
        rows: list[list[int]],
        outputs: tuple[str, ...] = ("logprob", "entropy"),
        role: str = "policy",
        temperature: float = 1.0,
        keep: bool = False,
    ):
        h, a = self.call("forward", flat(rows), role=role, temperature=temperature, outputs=list(outputs), keep=keep)
        return (h["kept"], a) if keep else a

    def backward(self, rows: list[list[int]], kept: int, role: str = "policy", **cotangents: torch.Tensor) -> None:
        self.call("backward", {"lengths": flat(rows)["lengths"], **cotangents}, role=role, kept=kept)

    def step(
        self,
        role: str = "policy",
        lr: float = 1e-2,
        weight_decay: float = 0.1,
        clip_norm: float = 1.0,
        epsilon: float = 1e-8,
    ) -> dict[str, Any]:
        return self.call(
            "step",
            role=role,
            lr=lr,
            clip_norm=clip_norm,
            optimizer="adamw",
            settings=dict(beta1=0.9, beta2=0.95, epsilon=epsilon, weight_decay=weight_decay),
        )[0]

    def generate(
        self,
        rows: list[list[int]],
        streams: list[int],
        budget: int | list[int],
        temperature: float = 1.0,
        stop: tuple[int, ...] = (),
        top_k: int = 0,
        top_p: float = 0.0,
        min_p: float = 0.0,
        top: int = 0,
        top_tokens: int = 0,
    ) -> list[dict[str, Any]]:
        budgets = [budget] * len(rows) if isinstance(budget, int) else budget
        a = flat(rows) | {
            "streams": torch.tensor(streams, dtype=torch.uint64),
            "max_tokens": torch.tensor(budgets, dtype=torch.int32),
        }
        limits = dict(top_k=top_k, top_p=top_p, min_p=min_p, top=top, top_tokens=top_tokens)
        _, g = self.call("generate", a, role="policy", temperature=temperature, **limits, stop=list(stop))
        out, at = [], 0
        for i, n in enumerate(g["lengths"].tolist()):
            part = slice(at, at + n)
            out.append(
                {
                    "tokens": g["tokens"][part].tolist(),
                    "logprobs": g["logprobs"][part],
                    "entropies": g["entropies"][part],
                    "finish": int(g["finish"][i]),
                }
            )
            if top:
                out[-1]["top"] = g["top"].reshape(len(rows), top_tokens, top)[i, :n]
            at += n
        assert at == len(g["tokens"])
        return out

    def logged(self) -> str:
        self.log.flush()
        with open(self.log.name, "rb") as f:
            return f.read().decode(errors="replace")[-8000:]

    def close(self) -> int:
        """Closes the socket and returns the engine's exit status."""
        self.sock.close()
        try:
            return self.process.wait(LIMIT)
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.log.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def until(self, true: Any, limit: float = LIMIT) -> None:
        end = time.monotonic() + limit
        while not true():
            if time.monotonic() > end:
                raise AssertionError("it does not happen:\n" + self.logged())
            time.sleep(0.02)


def flat(rows: list[list[int]]) -> dict[str, torch.Tensor]:
    return {
        "tokens": torch.tensor([t for r in rows for t in r], dtype=torch.int32),
        "lengths": torch.tensor([len(r) for r in rows], dtype=torch.int32),
    }


def random_rows(seed: int, vocab: int, *lengths: int) -> list[list[int]]:
    g = torch.Generator().manual_seed(seed)
    return [torch.randint(0, vocab, (n,), generator=g).tolist() for n in lengths]
