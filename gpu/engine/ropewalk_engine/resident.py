"""The contents of one role: the model, the optimiser's state, and the kept passes that await their cotangents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import torch

from . import adamw, lora, ranks
from .base import Base
from .build import build
from .errors import bad_request
from .folder import (
    CONFIG,
    GENERATION,
    OPTIMIZER,
    VALUE_HEAD,
    WEIGHTS,
    Folder,
    Named,
    Writer,
    as_float32,
    match,
    open_folder,
    plain_generation,
)
from .handed import open_handed
from .kept import KeptPass
from .progress import Progress
from .scorer import Scorer
from .settings import Settings
from .weights import Weight, global_norm


@dataclass
class Resident:
    scorer: Scorer
    weights: list[Weight]  # in the order of the files, the value head last; with LoRA without the base's weights
    folder: Folder  # its configuration and opaque files, without the tensors
    moments: adamw.Moments
    digest: str  # of the weights; "" after a step, and of a fresh critic
    moments_digest: str  # of the moments; "" if they are not those of that folder
    kept: dict[int, KeptPass] = field(default_factory=dict)
    unsaved: bool = True  # something changed since the last save
    base: Base | None = None  # with LoRA
    base_params: int = 0

    @property
    def params(self) -> int:
        return self.base_params + self.trained

    @property
    def trained(self) -> int:
        """The number of parameters that have gradients and moments."""
        return sum(torch.Size(w.shape).numel() for w in self.weights)

    @property
    def vocab(self) -> int:
        return self.scorer.causal.get_input_embeddings().num_embeddings

    @property
    def positions(self) -> int:
        return self.scorer.causal.config.get_text_config().max_position_embeddings

    def discard(self) -> None:
        """Drops kept passes and gradients."""
        self.kept.clear()
        self.drop_grads()

    def drop_grads(self) -> None:
        for w in self.weights:
            w.drop_grad()

    def step(self, o: adamw.Options, s: Settings, progress: Progress) -> tuple[float, bool]:
        """The norm before clipping, and whether it was clipped. A refused step only drops the gradients."""
        try:
            norm = global_norm(self.weights, s.sharded)
        except Exception:
            self.drop_grads()
            raise
        self.digest = self.moments_digest = ""
        self.unsaved = True
        return norm, adamw.apply(self.weights, self.moments, o, norm, s.offload_optimizer, progress)


def load(
    path: str, role: str, optimizer: bool, digest: str, held: Resident | None, s: Settings, progress: Progress
) -> tuple[Resident, list[str]]:
    """Returns the model that is resident after the load, and which of its parts were reused. Changes `held` only once
    nothing can fail any more, or if it has the same digest."""
    folder = open_handed(path, optimizer, s, progress) if s.hosts > 1 else open_folder(path)
    if s.hosts == 1:  # otherwise rank 0 has checked it for all
        lora.check(folder.adapter_config, s.lora, path)
    critic = role == "critic"
    if folder.is_critic and not critic:
        raise bad_request(VALUE_HEAD, f"{path} holds a critic: there is a {VALUE_HEAD}")
    fresh = critic and not folder.is_critic
    if held and digest and held.digest == digest and not fresh:
        return _again(folder, optimizer, digest, held, s, progress)
    base = Base(path, folder.weight_files) if s.lora and s.rank == 0 else None
    scorer, weights, base_params = build(folder, role, s, progress)
    moments = adamw.Moments()
    if optimizer and not fresh:
        moments = _moments(folder, weights, s, progress)
    folder.weights, folder.value_head, folder.adapter = {}, {}, {}
    return Resident(
        scorer,
        weights,
        folder,
        moments,
        "" if fresh else digest,
        digest if optimizer and not fresh else "",
        base=base,
        base_params=base_params,
    ), []


def _again(
    folder: Folder, optimizer: bool, digest: str, held: Resident, s: Settings, progress: Progress
) -> tuple[Resident, list[str]]:
    """Reuses the resident weights. Keeps or reads the moments, or drops them if they are not wanted."""
    if optimizer and held.moments_digest == digest:
        held.discard()
        return held, ["weights", "optimizer"]
    moments = _moments(folder, held.weights, s, progress) if optimizer else adamw.Moments()
    held.discard()
    held.unsaved = True
    held.moments, held.moments_digest = moments, digest if optimizer else ""
    return held, ["weights"]


def _moments(folder: Folder, weights: list[Weight], s: Settings, progress: Progress) -> adamw.Moments:
    found = folder.optimizer()
    if found is None or (
        s.lora and folder.adapter_config is None
    ):  # a new adapter has no moments; those in the folder belong to the base
        return adamw.Moments()
    step, sources = found
    wanted = {f"{kind}.{w.name}": w.shape for w in weights for kind in ("exp_avg", "exp_avg_sq")}
    match(OPTIMIZER, sources, wanted)
    m = adamw.Moments(step=step)
    for w in weights:
        for kind, of in (("exp_avg", m.first), ("exp_avg_sq", m.second)):
            t = w.share(sources[f"{kind}.{w.name}"].read())
            of[w.name] = (t.to("cpu") if s.offload_optimizer else t).clone()
            progress.tick()
    return m


def save(r: Resident, path: str, s: Settings, progress: Progress) -> None:
    """Writes the folder. With several ranks each contributes its shares, and rank 0 writes."""
    with ranks.each_alone(progress, s):
        writer = Writer(path) if s.rank == 0 else None
    if writer is None:
        for _ in chain(_wholes(r, progress), _whole_moments(r, progress)):
            pass
        return
    with writer as w:
        w.bytes(CONFIG, r.folder.config_bytes if r.base else as_float32(r.folder.config_bytes, r.folder.config))
        for name, content in r.folder.files.items():
            w.bytes(name, content)
        if GENERATION not in r.folder.files:
            w.bytes(GENERATION, plain_generation(r.folder.config))
        body = [x for x in r.weights if not x.name.startswith("value_head.")]
        head = r.weights[len(body) :]
        data = _wholes(r, progress)
        own = WEIGHTS
        if r.base:
            r.base.copy(w.create, progress.tick)
            own = lora.ADAPTER
        if body:
            # transformers refuses a safetensors file whose metadata does not name a framework.
            w.tensors(own, [(x.name, x.shape) for x in body], (next(data) for _ in body), {"format": "pt"})
        if s.lora and body:
            w.bytes(lora.ADAPTER_CONFIG, lora.config(s.lora))
        if head:
            w.tensors(VALUE_HEAD, [(x.name, x.shape) for x in head], (next(data) for _ in head))
        if r.moments.first:
            layout: list[Named] = [
                (f"{kind}.{x.name}", x.shape) for x in r.weights for kind in ("exp_avg", "exp_avg_sq")
            ]
            w.tensors(OPTIMIZER, layout, _whole_moments(r, progress), {"step": str(r.moments.step)})


def _wholes(r: Resident, progress: Progress) -> Iterator[torch.Tensor]:
    for w in r.weights:
        yield w.whole(w.master)
        progress.tick()


def _whole_moments(r: Resident, progress: Progress) -> Iterator[torch.Tensor]:
    if not r.moments.first:
        return
    for w in r.weights:
        for of in (r.moments.first, r.moments.second):
            # A weight that never moved, such as a critic's output head, has moments of zero.
            yield w.whole(of.get(w.name, torch.zeros_like(w.master)))
            progress.tick()
