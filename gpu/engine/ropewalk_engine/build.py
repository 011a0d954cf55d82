"""Makes a model of transformers from a folder and fills it with the folder's tensors."""

from __future__ import annotations

import importlib
import math
from typing import Any

import torch
from torch import nn

from . import attention, lora, norms
from .errors import EngineError, corrupt, unsupported
from .folder import (
    ARCHITECTURES,
    CONFIG,
    INDEX,
    VALUE_HEAD,
    WEIGHTS,
    Folder,
    Source,
    match,
)
from .progress import Progress
from .ranks import shard
from .scorer import Scorer
from .settings import Settings
from .weights import Weight, local, sum_in_float32


def build(folder: Folder, role: str, s: Settings, progress: Progress) -> tuple[Scorer, list[Weight], int]:
    """Returns the model on its device with the folder's weights, the weights that a checkpoint holds itself, and the
    number of parameters of all other weights. With LoRA all weights but the adapter and the value head belong to the
    base. Raises EngineError for a folder that cannot be served."""
    critic, causal = role == "critic", _causal(folder.config)
    if s.lora and (folder.adapter or role != "reference"):
        lora.inject(causal, s.lora)
    scorer = Scorer(causal, critic, progress)
    wanted, tied = _names(scorer)
    sources = _match(folder, wanted, tied, critic)
    scorer.eval()
    _freeze(scorer, role, s)
    if s.sharded:
        shard(scorer, s)
        weights = [_sharded(n, p) for n, p in _named(scorer)]
    else:
        weights = _place(scorer, s)
    _fill(weights, sources, role, s, progress)
    base = 0
    if s.lora:
        base = sum(math.prod(w.shape) for w in weights if not _beside(w.name))
        weights = [w for w in weights if _beside(w.name)]
    order = {name: i for i, name in enumerate(dict.fromkeys([*folder.weights, *folder.adapter, *wanted]))}
    return (
        scorer,
        sorted(weights, key=lambda w: (w.name.startswith("value_head."), order.get(w.name, len(order)))),
        base,
    )


def _beside(name: str) -> bool:
    """Whether a tensor is stored separately from those of the base."""
    return lora.is_adapter(name) or name.startswith("value_head.")


def _freeze(scorer: Scorer, role: str, s: Settings) -> None:
    """Freezes a critic's separate output head. With LoRA it also freezes the base, and the whole reference."""
    for n, p in _named(scorer):
        p.requires_grad_(s.lora is None or (_beside(n) and role != "reference"))
    head = scorer.output_head.weight
    if role == "critic" and head is not scorer.causal.get_input_embeddings().weight:
        head.requires_grad_(False)
    if s.lora and s.sharded:
        for p in scorer.parameters():
            if not p.requires_grad:
                p.data = p.data.to(s.dtype)  # ranks then hold shares of the rounded copy, and no masters


def prepare(with_peft: bool) -> None:
    """Imports packages that take seconds and would otherwise be imported at their first use."""
    attention.install()
    if with_peft:
        import peft  # noqa: F401
    from transformers import AutoModelForCausalLM  # noqa: F401
    from transformers.initialization import no_init_weights  # noqa: F401

    for name in ARCHITECTURES:
        importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def _causal(config: dict[str, Any]) -> Any:
    """Returns the model with unset weights, on the CPU, where memory that is not written to costs nothing."""
    from transformers import AutoModelForCausalLM
    from transformers.initialization import no_init_weights
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    attention.install()
    try:
        c = CONFIG_MAPPING[config["model_type"]].from_dict(
            {k: v for k, v in config.items() if k not in ("dtype", "torch_dtype")}
        )
        c.attention_dropout = 0.0
        with no_init_weights():
            model = AutoModelForCausalLM.from_config(c, dtype=torch.float32, attn_implementation=attention.NAME)
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, ZeroDivisionError, ImportError) as e:
        raise unsupported(CONFIG, f"{CONFIG}: transformers cannot make this model: {e}") from None
    # Here padding is an ordinary token: batches are not padded, and every row of the embedding trains.
    model.get_input_embeddings().padding_idx = None
    norms.simplify(model)
    model.tie_weights()
    return model


def _named(scorer: Scorer) -> list[tuple[str, nn.Parameter]]:
    """Yields each parameter once, by its name in files."""
    return [(_file_name(n), p) for n, p in scorer.named_parameters()]


def _file_name(n: str) -> str:
    return lora.file_name(n.removeprefix("causal."))


def _names(scorer: Scorer) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Returns the names and shapes of the model's own parameters, and the names that are tied to another of them."""
    named = _named(scorer)
    by_id = {id(p): n for n, p in named}
    tied = {}
    for n, p in scorer.causal.named_parameters(remove_duplicate=False):
        if by_id[id(p)] != _file_name(n):
            tied[_file_name(n)] = by_id[id(p)]
    surplus = {_file_name(n) for n in scorer.causal.state_dict()} - {n for n, _ in named} - set(tied)
    if surplus:
        raise unsupported(CONFIG, f"{CONFIG}: the model has state that is no parameter: {min(surplus)}")
    return {n: tuple(p.shape) for n, p in named}, tied


def _match(folder: Folder, wanted: dict[str, tuple[int, ...]], tied: dict[str, str], critic: bool) -> dict[str, Source]:
    what = WEIGHTS if all(s.file.name == WEIGHTS for s in folder.weights.values()) else INDEX
    for name, own in tied.items():
        # Some programs write both names of a tied tensor. Two different tensors do not fit config.json.
        if name in folder.weights:
            _refuse_other(what, name, own, folder.weights)
            del folder.weights[name]
    for name in [n for n in folder.weights if n.endswith(".rotary_emb.inv_freq")]:
        del folder.weights[name]  # a constant that older versions of transformers wrote
    match(what, folder.weights, {n: d for n, d in wanted.items() if not _beside(n)})
    if folder.adapter:
        match(lora.ADAPTER, folder.adapter, {n: d for n, d in wanted.items() if lora.is_adapter(n)})
    if folder.is_critic:
        match(VALUE_HEAD, folder.value_head, {n: wanted[n] for n in ("value_head.weight", "value_head.bias")})
    return {**folder.weights, **folder.adapter, **(folder.value_head if critic else {})}


def _refuse_other(what: str, name: str, own: str, sources: dict[str, Source]) -> None:
    if own not in sources or not torch.equal(sources[name].read(), sources[own].read()):
        raise corrupt(what, f"{what}: tensor {name!r} is not {own!r}, to which {CONFIG} ties it")


def _place(scorer: Scorer, s: Settings) -> list[Weight]:
    """Moves the model, whose weights are not set yet, to the device and to the type that it computes in."""
    for module in scorer.modules():
        for n, b in list(module.named_buffers(recurse=False)):
            module.register_buffer(n, b.to(s.device), persistent=False)
    new: dict[int, nn.Parameter] = {}
    for module in scorer.modules():
        for n, p in list(module.named_parameters(recurse=False)):
            if id(p) not in new:
                dtype = torch.float32 if _is_value_head(module, scorer) else s.dtype
                new[id(p)] = nn.Parameter(
                    torch.empty(p.shape, dtype=dtype, device=s.device), requires_grad=p.requires_grad
                )
                new[id(new[id(p)])] = new[id(p)]  # for its other name, which comes later
            setattr(module, n, new[id(p)])
    return [_single(n, p, s) for n, p in _named(scorer)]


def _is_value_head(module: nn.Module, scorer: Scorer) -> bool:
    """The value head is small, so it is always computed in float32."""
    return module is scorer.value_head


def _single(name: str, p: nn.Parameter, s: Settings) -> Weight:
    # With LoRA a weight that never changes needs no master.
    copy = p.dtype != torch.float32 and (p.requires_grad or s.lora is None)
    master = torch.empty(p.shape, dtype=torch.float32, device=p.device) if copy else p.data
    w = Weight(name, p, master, tuple(p.shape), frozen=not p.requires_grad)
    if copy and p.requires_grad:
        sum_in_float32(w)
    return w


def _sharded(name: str, p: nn.Parameter) -> Weight:
    return Weight(name, p, local(p.data), tuple(p.shape), frozen=not p.requires_grad)


def _fill(weights: list[Weight], sources: dict[str, Source], role: str, s: Settings, progress: Progress) -> None:
    with torch.no_grad():
        for w in weights:
            if w.name in sources:
                w.master.copy_(w.share(sources[w.name].read()))
            elif w.name.startswith("value_head."):
                w.master.zero_()  # a fresh critic
            elif s.lora and lora.is_adapter(w.name):
                w.master.copy_(w.share(lora.first(w.name, w.shape, role, s.lora.seed)))
            else:
                raise EngineError("internal", f"no source of {w.name}")
            w.publish()
            progress.tick()
