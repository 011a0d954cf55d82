"""The calls. Each takes a request and returns the header fields and arrays of its answer."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from . import optimizers, passes, ranks, resident
from . import generate as generation
from .errors import Cancelled, EngineError, bad_request, is_full_memory, out_of_memory
from .messages import Request, check
from .progress import Progress
from .resident import Resident
from .sampling import Truncation
from .settings import Settings

Arrays = dict[str, tuple[str, torch.Tensor]]  # name: dtype in the file, CPU tensor
Answer = tuple[dict[str, Any], Arrays]


class Engine:
    """Holds the models of all roles. Every rank has one and makes the same calls; only rank 0 sends its answers."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self._s, self._progress = settings, progress
        self._roles: dict[str, Resident] = {}
        self._last_kept = 0
        self._calls: dict[str, Callable[[Request], Answer]] = {
            "load": self._load, "save": self._save, "saved": self._saved, "generate": self._generate,
            "forward": self._forward, "backward": self._backward, "discard": self._discard, "step": self._step,
            "state": self._state, "unload": self._unload,
        }  # fmt: skip

    def run(self, r: Request) -> Answer:
        """Raises EngineError. Any other exception is a fault of the engine itself."""
        error = check(r)
        if error:
            raise error
        self._progress.together = self._s.sharded
        ranks.check_cancelled(self._progress, self._s)
        try:
            return self._calls[r.call](r)
        except (RuntimeError, MemoryError) as e:
            if self._s.sharded or not is_full_memory(e):
                raise  # the other ranks wait for this one in a collective
            error = out_of_memory(e)
        # Only here are the exception, and the frames that hold tensors, gone.
        self._after_full_memory(r)
        raise error

    def _after_full_memory(self, r: Request) -> None:
        held = self._roles.get(r.fields.get("role", ""))
        if held and r.call in ("forward", "backward", "step"):
            held.drop_grads()
        gc.collect()
        if self._s.device.type == "cuda":
            torch.cuda.empty_cache()

    def _held(self, r: Request) -> Resident:
        if r.role not in self._roles:
            raise EngineError("not_loaded", f"no {r.role} is loaded")
        return self._roles[r.role]

    def _check_trains(self, role: str, what: str) -> None:
        if self._s.lora and role == "reference":
            raise bad_request("role", f"{what} of the reference, which is frozen where engine.lora is set")

    def _load(self, r: Request) -> Answer:
        f, held = r.fields, self._roles.get(r.role)
        # Each rank of one host reads the folder itself. Ranks on several hosts receive it together from rank 0.
        alone = ranks.each_alone(self._progress, self._s) if self._s.hosts == 1 else nullcontext()
        with alone, self._progress.in_torch():
            new, reused = resident.load(f["dir"], r.role, f["optimizer"], f["digest"], held, self._s, self._progress)
        self._roles[r.role] = new
        return {"digest": new.digest, "step": new.state.step, "params": new.params, "reused": reused}, {}

    def _save(self, r: Request) -> Answer:
        held = self._held(r)
        with self._progress.in_torch():
            resident.save(held, r.fields["dir"], self._s, self._progress)
        held.unsaved = False
        return {"step": held.state.step}, {}

    def _saved(self, r: Request) -> Answer:
        held = self._held(r)
        if held.unsaved:
            raise bad_request("digest", f"the {r.role} has changed since it was saved")
        held.digest = held.state_digest = r.fields["digest"]
        return {}, {}

    def _generate(self, r: Request) -> Answer:
        held, a = self._held(r), r.arrays
        q = generation.Request(
            a["tokens"],
            a["lengths"].tolist(),
            a["streams"],
            a["max_tokens"].tolist(),
            float(r.fields["temperature"]),
            Truncation(r.fields["top_k"], float(r.fields["top_p"]), float(r.fields["min_p"])),
            r.fields["stop"],
            r.fields["top"],
            r.fields["top_tokens"],
        )
        generation.check(held, q)
        passes.check_rows(held, a["tokens"], a["lengths"], a["max_tokens"])
        with self._progress.in_torch():
            g = generation.generate(held, q, self._s, self._progress)
        arrays = {
            "tokens": ("I32", g.tokens), "lengths": ("I32", g.lengths), "logprobs": ("F32", g.logprobs),
            "entropies": ("F32", g.entropies), "finish": ("U8", g.finish),
        }  # fmt: skip
        if g.top is not None:
            arrays["top"] = ("F32", g.top.flatten())
        return {}, arrays

    def _forward(self, r: Request) -> Answer:
        held, a, f = self._held(r), r.arrays, r.fields
        passes.check_outputs(held, r.role, f["outputs"])
        if f["keep"]:
            self._check_trains(r.role, "a kept pass")
        passes.check_rows(held, a["tokens"], a["lengths"])
        with self._progress.in_torch():
            flat, kept = passes.forward(
                held,
                a["tokens"],
                a["lengths"].tolist(),
                f["outputs"],
                float(f["temperature"]),
                f["keep"],
                self._s,
                self._progress,
            )
        id = 0
        if kept is not None:
            self._last_kept += 1
            id = self._last_kept
            held.kept[id] = kept
        return {"kept": id}, {passes.FIELD[o]: ("F32", t) for o, t in flat.items()}

    def _backward(self, r: Request) -> Answer:
        held, id = self._held(r), r.fields["kept"]
        if id not in held.kept:
            raise EngineError("not_kept", f"the {r.role} has no kept pass {id}")
        given = passes.check_cotangents(held.kept[id], r.arrays)
        kept = held.kept.pop(id)
        try:
            with self._progress.in_torch():
                passes.backward(kept, given, self._s, self._progress)
                self._s.synchronize()
        except BaseException as e:
            # A part of a gradient is useless, and it cannot be separated from the rest.
            held.discard()
            if isinstance(e, Cancelled):
                raise Cancelled from None
            raise
        return {}, {}

    def _discard(self, r: Request) -> Answer:
        self._held(r).discard()
        return {}, {}

    def _step(self, r: Request) -> Answer:
        held, f = self._held(r), r.fields
        self._check_trains(r.role, "a step")
        settings = {k: float(v) for k, v in f["settings"].items()}
        o = optimizers.Options(float(f["lr"]), float(f["clip_norm"]), f["optimizer"], settings)
        with self._progress.in_torch():
            norm, clipped = held.step(o, self._s, self._progress)
            self._s.synchronize()
        return {"grad_norm": norm, "clipped": clipped, "step": held.state.step}, {}

    def _state(self, r: Request) -> Answer:
        held = self._roles.get(r.role)
        if held is None:
            return {"loaded": False, "digest": "", "step": 0, "params": 0}, {}
        return {"loaded": True, "digest": held.digest, "step": held.state.step, "params": held.params}, {}

    def _unload(self, r: Request) -> Answer:
        if self._roles.pop(r.role, None):
            gc.collect()
            if self._s.device.type == "cuda":
                torch.cuda.empty_cache()
        return {}, {}
