"""Requests: the fields and arrays of each call, which are checked before they are used."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from . import optimizers, tensorfile
from .errors import EngineError, ProtocolError, bad_request

ROLES = ("policy", "reference", "critic")
OUTPUTS = ("logprob", "entropy", "value")
MOST_TOP = 20  # likeliest tokens that a call can ask for


def _text(v: Any) -> bool:
    return isinstance(v, str)


def _flag(v: Any) -> bool:
    return isinstance(v, bool)


def _integer(v: Any) -> bool:
    return type(v) is int and -(1 << 63) <= v < 1 << 64


def _number(v: Any) -> bool:
    return type(v) in (int, float)


def _numbers(v: Any) -> bool:
    return isinstance(v, dict) and all(_number(x) for x in v.values())


def _texts(v: Any) -> bool:
    return isinstance(v, list) and all(isinstance(x, str) for x in v)


def _integers(v: Any) -> bool:
    return isinstance(v, list) and all(type(x) is int for x in v)


@dataclass(frozen=True)
class _Spec:
    fields: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)  # name: dtype
    optional: dict[str, str] = field(default_factory=dict)


_ROLE = {"role": _text}
_TOKENS = {"tokens": "I32", "lengths": "I32"}
CALLS: dict[str, _Spec] = {
    "load": _Spec({**_ROLE, "dir": _text, "optimizer": _flag, "digest": _text}),
    "save": _Spec({**_ROLE, "dir": _text}),
    "saved": _Spec({**_ROLE, "digest": _text}),
    "generate": _Spec(
        {
            **_ROLE, "temperature": _number, "top_k": _integer, "top_p": _number, "min_p": _number, "stop": _integers,
            "top": _integer, "top_tokens": _integer,
        },
        {**_TOKENS, "streams": "U64", "max_tokens": "I32"},
    ),
    "forward": _Spec({**_ROLE, "temperature": _number, "outputs": _texts, "keep": _flag}, _TOKENS),
    "backward": _Spec(
        {**_ROLE, "kept": _integer}, {"lengths": "I32"}, {"logprobs": "F32", "entropies": "F32", "values": "F32"}
    ),
    "discard": _Spec(_ROLE),
    "step": _Spec({**_ROLE, "lr": _number, "clip_norm": _number, "optimizer": _text, "settings": _numbers}),
    "state": _Spec(_ROLE),
    "unload": _Spec(_ROLE),
    "shutdown": _Spec(),
}


@dataclass
class Request:
    id: int
    call: str
    fields: dict[str, Any]
    arrays: dict[str, torch.Tensor]  # CPU; U64 as int64 of the same bits
    body: bytearray  # as it came, for other ranks

    @property
    def role(self) -> str:
        return self.fields["role"]


def parse_call(h: dict[str, Any], body: bytearray) -> Request:
    """Raises ProtocolError if the frame's rules are broken, and EngineError for an impossible call."""
    id = h.get("id")
    if type(id) is not int or not 0 < id < 1 << 63:
        raise ProtocolError(f"a call with id {id!r}")
    name = h.get("call")
    if not isinstance(name, str) or name not in CALLS:
        raise ProtocolError(f"no call is named {name!r}", id)
    spec = CALLS[name]
    extra = set(h) - set(spec.fields) - {"type", "id", "call"}
    if extra:
        raise ProtocolError(f"{name} has no field {min(extra)!r}", id)
    for k, ok in spec.fields.items():
        if k not in h or not ok(h[k]):
            raise ProtocolError(f"{name}: field {k!r} is {'missing' if k not in h else 'of the wrong type'}", id)
    return Request(id, name, {k: h[k] for k in spec.fields}, _arrays(name, spec, body, id), body)


def _arrays(name: str, spec: _Spec, body: bytearray, id: int) -> dict[str, torch.Tensor]:
    known = {**spec.arrays, **spec.optional}
    out: dict[str, torch.Tensor] = {}
    if body:
        if not known:
            raise ProtocolError(f"{name} has no body", id)
        try:
            layout = tensorfile.parse(body, len(body))
        except tensorfile.FormatError as why:
            raise ProtocolError(f"{name}: the body is no safetensors file: {why}", id) from None
        for e in layout.entries:
            if known.get(e.name) != e.dtype or len(e.shape) != 1:
                raise ProtocolError(f"{name}: array {e.name!r} {e.dtype} {list(e.shape)} is not wanted", id)
            out[e.name] = tensorfile.view(body, layout, e)
    for k in spec.arrays:
        if k not in out:
            raise ProtocolError(f"{name}: array {k!r} is missing", id)
    return out


def check(r: Request) -> EngineError | None:
    """The error of the first value that has the right type and is impossible, if any."""
    f = r.fields
    if "role" in f and f["role"] not in ROLES:
        return bad_request("role", f"role is {f['role']!r}")
    if "temperature" in f:
        t = f["temperature"]
        if not (math.isfinite(t) and t >= 0 and (t > 0 or r.call == "generate")):
            return bad_request("temperature", f"temperature is {t}")
    if "top_k" in f and not 0 <= f["top_k"] < 1 << 31:
        return bad_request("top_k", f"top_k is {f['top_k']}")
    if "top" in f and not (f["top"] == 0 or 0 < f["top"] <= MOST_TOP and 0 < f["top_tokens"] < 1 << 31):
        return bad_request("top", f"{f['top']} likeliest tokens at the first {f['top_tokens']}")
    for k in ("top_p", "min_p"):
        if k in f and not 0 <= f[k] <= 1:
            return bad_request(k, f"{k} is {f[k]}")
    if "outputs" in f and (
        not f["outputs"] or len(set(f["outputs"])) != len(f["outputs"]) or not set(f["outputs"]) <= set(OUTPUTS)
    ):
        return bad_request("outputs", f"outputs are {f['outputs']}")
    for k in ("lr", "clip_norm"):
        if k in f and not 0 <= f[k] < math.inf:
            return bad_request(k, f"{k} is {f[k]}")
    wrong = optimizers.check(f["optimizer"], f["settings"]) if r.call == "step" else None
    return wrong or _check_lengths(r)


def _check_lengths(r: Request) -> EngineError | None:
    if "lengths" not in r.arrays:
        return None
    lengths = r.arrays["lengths"].long()
    if (lengths < 1).any():
        row = int((lengths < 1).nonzero()[0])
        return bad_request("lengths", f"row {row} has {int(lengths[row])} tokens")
    for k in ("tokens", "logprobs", "entropies", "values"):
        if k in r.arrays and r.arrays[k].numel() != int(lengths.sum()):
            return bad_request(k, f"{r.arrays[k].numel()} {k} for lengths that add up to {int(lengths.sum())}")
    for k in ("streams", "max_tokens"):
        if k in r.arrays and r.arrays[k].numel() != lengths.numel():
            return bad_request(k, f"{r.arrays[k].numel()} {k} for {lengths.numel()} rows")
    return None
