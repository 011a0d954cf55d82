"""The contents of one role: the model, the optimiser's state, and the kept passes that await their cotangents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import torch

from . import lora, optimizers, ranks
from .base import Base
from .build import build
from .errors import bad_request, corrupt
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
    state: optimizers.State  # the optimiser's
    digest: str  # of the weights; "" after a step, and of a fresh critic
    state_digest: str  # of the state; "" if it is not that of that folder
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

    def step(self, o: optimizers.Options, s: Settings, progress: Progress) -> tuple[float, bool]:
        """The norm before clipping, and whether it was clipped. A refused step only drops the gradients."""
        kept = tuple(self.state.of)
        if kept and kept != o.rule.states:
            raise bad_request(
                "optimizer", f"{o.optimizer} keeps {o.rule.states}, and the model was trained with {kept}"
            )
        try:
            norm = global_norm(self.weights, s.sharded)
        except Exception:
            self.drop_grads()
            raise
        self.digest = self.state_digest = ""
        self.unsaved = True
        return norm, optimizers.apply(self.weights, self.state, o, norm, s.offload_optimizer, progress)


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
    state = optimizers.State()
    if optimizer and not fresh:
        state = _state(folder, weights, s, progress)
    folder.weights, folder.value_head, folder.adapter = {}, {}, {}
    return Resident(
        scorer,
        weights,
        folder,
        state,
        "" if fresh else digest,
        digest if optimizer and not fresh else "",
        base=base,
        base_params=base_params,
    ), []


def _again(
    folder: Folder, optimizer: bool, digest: str, held: Resident, s: Settings, progress: Progress
) -> tuple[Resident, list[str]]:
    """Reuses the resident weights. Keeps or reads the optimiser's state, or drops it if it is not wanted."""
    if optimizer and held.state_digest == digest:
        held.discard()
        return held, ["weights", "optimizer"]
    state = _state(folder, held.weights, s, progress) if optimizer else optimizers.State()
    held.discard()
    held.unsaved = True
    held.state, held.state_digest = state, digest if optimizer else ""
    return held, ["weights"]


def _state(folder: Folder, weights: list[Weight], s: Settings, progress: Progress) -> optimizers.State:
    found = folder.optimizer()
    if found is None or (
        s.lora and folder.adapter_config is None
    ):  # a new adapter has no state; that in the folder belongs to the base
        return optimizers.State()
    step, sources = found
    if not sources:
        raise corrupt(OPTIMIZER, f"{OPTIMIZER} holds no state")
    kinds = list(dict.fromkeys(name.partition(".")[0] for name in sources))  # in the order of the file
    match(OPTIMIZER, sources, {f"{kind}.{w.name}": w.shape for w in weights for kind in kinds})
    state = optimizers.State(step, {kind: {} for kind in kinds})
    for w in weights:
        for kind in kinds:
            t = w.share(sources[f"{kind}.{w.name}"].read())
            state.of[kind][w.name] = (t.to("cpu") if s.offload_optimizer else t).clone()
            progress.tick()
    return state


def save(r: Resident, path: str, s: Settings, progress: Progress) -> None:
    """Writes the folder. With several ranks each contributes its shares, and rank 0 writes."""
    with ranks.each_alone(progress, s):
        writer = Writer(path) if s.rank == 0 else None
    if writer is None:
        for _ in chain(_wholes(r, progress), _whole_states(r, progress)):
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
        if r.state.of:
            layout: list[Named] = [(f"{kind}.{x.name}", x.shape) for x in r.weights for kind in r.state.of]
            w.tensors(OPTIMIZER, layout, _whole_states(r, progress), {"step": str(r.state.step)})


def _wholes(r: Resident, progress: Progress) -> Iterator[torch.Tensor]:
    for w in r.weights:
        yield w.whole(w.master)
        progress.tick()


def _whole_states(r: Resident, progress: Progress) -> Iterator[torch.Tensor]:
    for w in r.weights:
        for of in r.state.of.values():
            # A weight that never moved, such as a critic's output head, has states of zero.
            yield w.whole(of.get(w.name, torch.zeros_like(w.master)))
            progress.tick()
