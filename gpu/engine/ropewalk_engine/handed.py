"""Folders for ranks on several hosts: only rank 0 reads the folder, and it sends the others the parts that they need.

Only rank 0's host has the folder. Rank 0 sends the configuration and the list of tensors to the other ranks. A tensor
is sent whole when it is read, and each rank keeps its share (weights.py). This is a broadcast, which all ranks reach in
the same order because they fill the same model. Only rank 0 keeps and writes the tokenizer's files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from . import lora, ranks, tensorfile
from .folder import Folder, Source, open_folder
from .progress import Progress
from .settings import Settings


@dataclass(frozen=True)
class FileName:
    """The file that holds a tensor, on rank 0's host."""

    name: str


@dataclass(frozen=True)
class HandedSource:
    """A tensor of rank 0. Reading it is a collective."""

    file: FileName
    entry: tensorfile.Entry
    own: Source | None  # on rank 0
    settings: Settings
    progress: Progress

    def read(self) -> torch.Tensor:
        """Returns the whole tensor in the file's type, on the device. Raises Cancelled on all ranks or on none."""
        ranks.check_cancelled(self.progress, self.settings)
        t = torch.empty(self.entry.shape, dtype=tensorfile.DTYPES[self.entry.dtype], device=self.settings.device)
        if self.own is not None:
            t.copy_(self.own.read())
        if t.numel():
            dist.broadcast(t.reshape(-1).view(torch.uint8), 0)  # as bytes, because gloo does not support every type
        return t


Moments = tuple[int, dict[str, HandedSource]]


@dataclass
class HandedFolder(Folder):
    """A Folder whose tensors come from rank 0."""

    moments: Moments | None = field(default=None)

    def optimizer(self) -> Any:
        return self.moments


def open_handed(path: str, optimizer: bool, s: Settings, progress: Progress) -> Folder:
    """Opens rank 0's folder for all ranks or for none. With `optimizer` its moments can be read too."""
    own: Folder | None = None
    moments: tuple[int, dict[str, Source]] | None = None
    with ranks.each_alone(progress, s):
        if s.rank == 0:
            own = open_folder(path)
            lora.check(own.adapter_config, s.lora, path)
            moments = own.optimizer() if optimizer else None
    told = json.loads(ranks.broadcast_bytes(_tell(own, moments) if own else None, s))

    def sources(listed: Iterable[Any], mine: dict[str, Source] | None) -> dict[str, HandedSource]:
        out = {}
        for file, name, dtype, shape in listed:
            entry = tensorfile.Entry(name, dtype, tuple(shape), 0, 0)
            out[name] = HandedSource(FileName(file), entry, mine[name] if mine is not None else None, s, progress)
        return out

    out = HandedFolder(
        path, told["config"], own.config_bytes if own else b"", own.files if own else {},
        sources(told["weights"], own and own.weights), sources(told["value_head"], own and own.value_head),
        own.weight_files if own else [],
    )  # fmt: skip
    if told["moments"] is not None:
        step, listed = told["moments"]
        out.moments = step, sources(listed, moments[1] if moments else None)
    return out


def _tell(own: Folder, moments: tuple[int, dict[str, Source]] | None) -> bytes:
    """The description of a folder that the other ranks receive."""

    def listed(of: dict[str, Source]) -> list[Any]:
        return [[s.file.name, n, s.entry.dtype, s.entry.shape] for n, s in of.items()]

    return json.dumps({
        "config": own.config, "weights": listed(own.weights), "value_head": listed(own.value_head),
        "moments": None if moments is None else [moments[0], listed(moments[1])],
    }).encode()  # fmt: skip
