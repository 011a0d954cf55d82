"""Rank 0's side of the socket. One thread reads frames, one sends beats, and the main thread makes the calls."""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from . import PROTOCOL, build, lifeline, tensorfile
from .engine import Answer, Arrays, Engine
from .errors import EngineError, ProtocolError, internal
from .frames import Header, read_frame, write_frame
from .messages import Request, parse_call
from .progress import Progress
from .settings import Settings

BEAT_SECONDS = 1.0


class Server:
    def __init__(self, path: str, settings: Settings, progress: Progress, cancel_others: Callable[[int], None]) -> None:
        self._s, self._progress, self._cancel_others = settings, progress, cancel_others
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.connect(path)
        self._send_lock = threading.Lock()
        self._calls: queue.Queue[Request | None] = queue.Queue()
        self._last_id = 0

    def greet(self, hello: Header) -> bool:
        """Says hello and returns whether the host accepts this engine."""
        self._send({"type": "hello", "protocol": PROTOCOL, **hello})
        answer, _ = read_frame(self._sock)
        if answer == {"type": "welcome", "protocol": PROTOCOL}:
            return True
        if set(answer) == {"type", "reason"} and answer["type"] == "refused":
            print(f"the host refuses this engine: {answer['reason']}", file=sys.stderr)
            return False
        raise ProtocolError(f"the host answers the hello with {str(answer)[:200]}")

    def serve(self, engine: Engine, hand_round: Callable[[Request], None], closed: Callable[[int], None]) -> int:
        """Serves until the host shuts down or closes; returns the exit status. `closed` ends the process in a call."""
        threading.Thread(target=self._read, args=(closed,), name="reader", daemon=True).start()
        threading.Thread(target=self._beat, args=(closed,), name="beat", daemon=True).start()
        build.prepare(self._s.lora is not None)  # imports for the first load, while the host prepares it
        while (r := self._calls.get()) is not None:
            hand_round(r)
            began = time.perf_counter()
            self._progress.begin(r.id, r.call)
            if r.call == "shutdown":
                self._answer(r.id, ({}, {}), began)
                return 0
            try:
                answer = engine.run(r)
                self._answer(r.id, answer, began)
            except EngineError as e:
                self._refuse(r.id, e)
            except Exception as e:
                traceback.print_exc()
                self._refuse(r.id, lifeline.fault(self._s) or internal(e))
                if self._s.sharded:
                    return 1  # the other ranks wait in a collective
            finally:
                self._progress.end()
        return 0

    def _answer(self, id: int, answer: Answer, began: float) -> None:
        fields, arrays = answer
        torch_seconds = self._progress.torch_seconds
        body = _encode(arrays)
        self._send(
            {
                "type": "answer",
                "id": id,
                **fields,
                "seconds": time.perf_counter() - began,
                "torch_seconds": torch_seconds,
            },
            body,
        )

    def _refuse(self, id: int, e: EngineError) -> None:
        self._send({"type": "error", "id": id, "kind": e.kind, "message": e.message, "name": e.name})

    def _send(self, header: Header, body: list[bytes | memoryview] | None = None) -> None:
        with self._send_lock:
            write_frame(self._sock, header, body)

    def _read(self, closed: Callable[[int], None]) -> None:
        status = 0
        try:
            while True:
                self._take(*read_frame(self._sock))
        except EOFError:
            pass
        except ProtocolError as e:
            status = 1
            print(f"the host breaks the protocol: {e}", file=sys.stderr)
            try:
                self._refuse(e.id, EngineError("protocol", str(e)))
                self._sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        except OSError as e:
            print(f"the socket fails: {e}", file=sys.stderr)
        closed(status)

    def _take(self, h: Header, body: bytearray) -> None:
        kind = h.get("type")
        if kind == "call":
            r = parse_call(h, body)
            if r.id <= self._last_id:
                raise ProtocolError(f"call {r.id} after call {self._last_id}", r.id)
            self._last_id = r.id
            self._calls.put(r)
        elif kind == "cancel" and set(h) == {"type", "id"} and type(h["id"]) is int and not body:
            self._progress.cancel(h["id"])
            self._cancel_others(h["id"])
        else:
            raise ProtocolError(f"no message of the host is {str(h)[:200]}")

    def _beat(self, closed: Callable[[int], None]) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            p = self._progress
            fault = lifeline.fault(self._s)
            if fault and p.at:
                # This rank's main thread may wait for that rank for ever.
                self._refuse(p.at, fault)
                closed(1)
            try:
                self._send(
                    {
                        "type": "beat",
                        "at": p.at,
                        "phase": p.phase,
                        "ticks": p.ticks,
                        "done": p.done,
                        "total": p.total,
                        "memory": lifeline.largest_memory(self._s),
                    }
                )
            except OSError:
                return


def _encode(arrays: Arrays) -> list[bytes | memoryview]:
    """A safetensors file in parts, none of them copied. Wide types come first, so that all are aligned."""
    if not arrays:
        return []
    order = sorted(arrays.items(), key=lambda kv: -tensorfile.DTYPES[kv[1][0]].itemsize)
    data: list[bytes | memoryview] = [tensorfile.header((n, d, tuple(t.shape)) for n, (d, t) in order)]
    return data + [tensorfile.raw_bytes(t.contiguous()) for _, (_, t) in order if t.numel()]


def environment() -> tuple[str, str]:
    """The socket's path and the nonce, which the host sets."""
    path, nonce = os.environ.get("ROPEWALK_ENGINE_SOCKET", ""), os.environ.get("ROPEWALK_ENGINE_NONCE", "")
    if not path or not nonce:
        raise SystemExit(
            "ROPEWALK_ENGINE_SOCKET and ROPEWALK_ENGINE_NONCE are not set: the engine is started by its host"
        )
    return path, nonce


def versions(with_peft: bool) -> dict[str, Any]:
    """The versions of Python and of the packages; peft is needed only with LoRA."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    out = {"python": platform.python_version()}
    for name in ("torch", "transformers", "safetensors", "peft"):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            if name == "peft" and not with_peft:
                continue
            raise SystemExit(f"the engine needs {name}, which {sys.executable} does not have") from None
    return out
