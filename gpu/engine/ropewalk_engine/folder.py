"""A checkpoint folder: its configuration, the tokenizer's files as bytes, and the place of each tensor.

Opening a folder reads only headers. A folder that cannot be served is refused before any tensor is read.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from . import tensorfile
from .errors import bad_request, corrupt, unsupported
from .lora import ADAPTER, ADAPTER_CONFIG, missing

CONFIG, GENERATION, WEIGHTS = "config.json", "generation_config.json", "model.safetensors"
INDEX, OPTIMIZER, VALUE_HEAD = "model.safetensors.index.json", "optimizer.state", "value_head.state"
# The tokenizer's files in any of the usual forms. They are kept as bytes and written back unchanged.
TOKENIZER = (
    "added_tokens.json", "chat_template.jinja", "merges.txt", "special_tokens_map.json",
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json",
)  # fmt: skip
# Architectures whose tests compare this engine with transformers' own forward and backward pass.
ARCHITECTURES = {
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
}


class TensorFile:
    """One safetensors file, mapped."""

    def __init__(self, folder: str, name: str) -> None:
        self.name = name
        try:
            with open(os.path.join(folder, name), "rb") as f:
                size = os.fstat(f.fileno()).st_size
                self._map: Any = mmap.mmap(f.fileno(), size, access=mmap.ACCESS_COPY) if size else b""
        except OSError as why:
            raise bad_request(name, f"open {name}: {why.strerror}") from None
        try:
            self.layout = tensorfile.parse(self._map, size)
        except tensorfile.FormatError as why:
            raise corrupt(name, f"{name}: {why}") from None
        for e in self.layout.entries:
            if e.dtype not in tensorfile.FLOATS:
                raise unsupported(name, f"{name}: tensor {e.name!r} has dtype {e.dtype}; F32, F16 and BF16 are read")

    def read(self, e: tensorfile.Entry) -> torch.Tensor:
        """The tensor as the file stores it."""
        return tensorfile.view(self._map, self.layout, e)


@dataclass(frozen=True)
class Source:
    file: TensorFile
    entry: tensorfile.Entry

    def read(self) -> torch.Tensor:
        return self.file.read(self.entry)


@dataclass
class Folder:
    path: str
    config: dict[str, Any]
    config_bytes: bytes
    files: dict[str, bytes]  # generation_config.json and the tokenizer's files, if the folder has them
    weights: dict[str, Source]  # in the order of the files
    value_head: dict[str, Source]  # empty for a policy
    weight_files: list[str]  # the index among them, where there are several
    adapter_config: dict[str, Any] | None = None
    adapter: dict[str, Source] = field(default_factory=dict)  # empty where there is none

    @property
    def is_critic(self) -> bool:
        return bool(self.value_head)

    def optimizer(self) -> tuple[int, dict[str, Source]] | None:
        """The number of steps and the moments, if the folder has them."""
        if not os.path.exists(os.path.join(self.path, OPTIMIZER)):
            return None
        f = TensorFile(self.path, OPTIMIZER)
        text = f.layout.metadata.get("step", "")
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise corrupt(OPTIMIZER, f"{OPTIMIZER}: metadata step is {text!r}")
        return int(text), {e.name: Source(f, e) for e in f.layout.entries}


def open_folder(path: str) -> Folder:
    if not os.path.isdir(path):
        raise bad_request("dir", f"{path} is no folder")
    raw = _read(path, CONFIG, required=True)
    config = _config(raw)
    files = {}
    for name in (GENERATION, *TOKENIZER):
        b = _read(path, name)
        if b is not None:
            files[name] = b
    head = _sources(path, [VALUE_HEAD]) if os.path.exists(os.path.join(path, VALUE_HEAD)) else {}
    names = _weight_files(path)
    every = names if names == [WEIGHTS] else [*names, INDEX]
    return Folder(path, config, raw, files, _sources(path, names), head, every, *_adapter(path))


def _adapter(path: str) -> tuple[dict[str, Any] | None, dict[str, Source]]:
    """A LoRA adapter's configuration and tensors, if the folder has an adapter."""
    raw, there = _read(path, ADAPTER_CONFIG), os.path.exists(os.path.join(path, ADAPTER))
    if raw is None:
        if there:
            raise missing(ADAPTER_CONFIG, ADAPTER)
        return None, {}
    if not there:
        raise missing(ADAPTER, ADAPTER_CONFIG)
    return _json(ADAPTER_CONFIG, raw), _sources(path, [ADAPTER])


def _read(path: str, name: str, required: bool = False) -> Any:
    try:
        with open(os.path.join(path, name), "rb") as f:
            return f.read()
    except FileNotFoundError:
        if required:
            raise bad_request(name, f"{path} has no {name}") from None
        return None
    except OSError as e:
        raise bad_request(name, f"read {name}: {e.strerror}") from None


def _json(name: str, raw: bytes) -> dict[str, Any]:
    try:
        out = json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise corrupt(name, f"parse {name}: {e}") from None
    if not isinstance(out, dict):
        raise corrupt(name, f"{name} is no JSON object")
    return out


def _config(raw: bytes) -> dict[str, Any]:
    c = _json(CONFIG, raw)
    for key, why in (("auto_map", "code of its own"), ("quantization_config", "quantised weights")):
        if c.get(key):
            raise unsupported(CONFIG, f"{CONFIG}: {key} asks for {why}, which is not served")
    kind = c.get("model_type")
    if kind not in ARCHITECTURES:
        raise unsupported(CONFIG, f"{CONFIG}: model_type is {kind!r}; {', '.join(ARCHITECTURES)} are served")
    named = c.get("architectures")
    if named and named != [ARCHITECTURES[kind]]:
        raise unsupported(CONFIG, f"{CONFIG}: architectures are {named}, want {ARCHITECTURES[kind]!r}")
    return c


def _weight_files(path: str) -> list[str]:
    if os.path.exists(os.path.join(path, WEIGHTS)):
        return [WEIGHTS]
    raw = _read(path, INDEX)
    if raw is None:
        raise bad_request(WEIGHTS, f"{path} has neither {WEIGHTS} nor {INDEX}")
    names = _json(INDEX, raw).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(v, str) for v in names.values()):
        raise corrupt(INDEX, f"{INDEX}: weight_map does not map tensors to files")
    files = sorted(set(names.values()))
    for f in files:
        if os.path.basename(f) != f or not f.endswith(".safetensors"):
            raise corrupt(INDEX, f"{INDEX}: {f!r} is no file of the folder")
    return files


def _sources(path: str, files: list[str]) -> dict[str, Source]:
    out: dict[str, Source] = {}
    for name in files:
        f = TensorFile(path, name)
        for e in f.layout.entries:
            if e.name in out:
                raise corrupt(name, f"{name}: tensor {e.name!r} is in {out[e.name].file.name} too")
            out[e.name] = Source(f, e)
    return out


def match(what: str, sources: dict[str, Source], wanted: dict[str, tuple[int, ...]]) -> None:
    """Refuses missing, misshapen and surplus tensors, by name."""
    for name, shape in wanted.items():
        if name not in sources:
            raise corrupt(what, f"{what}: tensor {name!r} is missing")
        if sources[name].entry.shape != shape:
            raise corrupt(
                what, f"{what}: tensor {name!r} is {list(sources[name].entry.shape)}, {CONFIG} wants {list(shape)}"
            )
    for name in sources:
        if name not in wanted:
            raise corrupt(what, f"{what}: tensor {name!r} is none of the model's")


def as_float32(raw: bytes, config: dict[str, Any]) -> bytes:
    """config.json with the type float32, in which weights are written. A config with float32 keeps its bytes."""
    changed: dict[str, Any] = {k: "float32" for k in ("dtype", "torch_dtype") if k in config and config[k] != "float32"}
    return _sorted_json({**config, **changed}) if changed else raw


def plain_generation(config: dict[str, Any]) -> bytes:
    """A generation_config.json that samples the plain distribution, for folders that have none."""
    out: dict[str, Any] = {"do_sample": True, "temperature": 1, "top_k": 0, "top_p": 1}
    eos, pad = config.get("eos_token_id"), config.get("pad_token_id")
    if eos is not None and eos != []:
        out["eos_token_id"] = eos if isinstance(eos, list) else [eos]
    if pad is not None and pad >= 0:
        out["pad_token_id"] = pad
    return _sorted_json(out)


def _sorted_json(m: dict[str, Any]) -> bytes:
    return (json.dumps(m, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


Named = tuple[str, tuple[int, ...]]


class Writer:
    """Writes the files of one checkpoint. If it fails, it removes the files that it has written."""

    def __init__(self, path: str) -> None:
        try:
            os.makedirs(path, exist_ok=True)
            held = os.listdir(path)
        except OSError as e:
            raise bad_request("dir", f"write {path}: {e.strerror}") from None
        if held:
            raise bad_request("dir", f"{path} is not empty: it holds {min(held)}")
        self._path, self._written = path, []  # type: tuple[str, list[str]]

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            for name in self._written:
                os.unlink(name)

    def create(self, name: str) -> Any:
        full = os.path.join(self._path, name)
        f = open(full, "xb", buffering=0)
        self._written.append(full)
        return f

    def bytes(self, name: str, content: bytes) -> None:
        with self.create(name) as f:
            f.write(content)

    def tensors(
        self, name: str, layout: list[Named], data: Iterable[torch.Tensor], metadata: dict[str, str] | None = None
    ) -> None:
        """One safetensors file of float32; data yields a contiguous CPU tensor for each of layout."""
        with self.create(name) as f:
            f.write(tensorfile.header(((n, "F32", s) for n, s in layout), metadata))
            for t in data:
                part = tensorfile.raw_bytes(t)
                while part:
                    part = part[f.write(part) :]
