"""Forward passes, and backward passes of kept forward passes."""

from __future__ import annotations

from typing import Any

import torch

from . import packs, ranks
from .errors import bad_request, non_finite
from .kept import KeptPack, KeptPass
from .progress import Progress
from .resident import Resident
from .settings import Settings

FIELD = {"logprob": "logprobs", "entropy": "entropies", "value": "values"}
NAME = {"logprob": "log-probability", "entropy": "entropy", "value": "value"}


def check_rows(r: Resident, tokens: torch.Tensor, lengths: torch.Tensor, room: torch.Tensor | None = None) -> None:
    """Refuses ids outside the vocabulary and rows longer than the model's positions. A row may grow by room tokens."""
    bad = (tokens < 0) | (tokens >= r.vocab)
    if bad.any():
        at = int(bad.nonzero()[0])
        row = int(torch.searchsorted(lengths.long().cumsum(0), at, right=True))
        first = int(lengths[:row].sum())
        raise bad_request("tokens", f"row {row}: token {at - first} is {int(tokens[at])}, the vocabulary has {r.vocab}")
    total = lengths.long() if room is None else lengths.long() + room.long()
    if (total > r.positions).any():
        row = int((total > r.positions).nonzero()[0])
        grown = "" if room is None else f" and a budget of {int(room[row])}"
        raise bad_request(
            "lengths" if room is None else "max_tokens",
            f"row {row}: {int(lengths[row])} tokens{grown}, the model has {r.positions} positions",
        )


def check_outputs(r: Resident, role: str, outputs: list[str]) -> None:
    critic = r.scorer.value_head is not None
    if critic and outputs != ["value"]:
        raise bad_request("outputs", "a critic gives values, not log-probabilities or entropies")
    if not critic and "value" in outputs:
        raise bad_request("outputs", f"values asked of the {role}, which has no value head")


def forward(
    r: Resident,
    tokens: torch.Tensor,
    lengths: list[int],
    outputs: list[str],
    temperature: float,
    keep: bool,
    s: Settings,
    progress: Progress,
) -> tuple[dict[str, torch.Tensor], KeptPass | None]:
    """Returns the requested outputs, flat like tokens, on the CPU, and the pass for backward if it is kept."""
    plan = _plan(lengths, s)
    progress.total = len(plan)
    flat = {o: torch.zeros(len(tokens)) for o in outputs}
    kept = KeptPass(lengths, tuple(outputs), [])
    r.scorer.checkpointing = keep and _checkpoint(r, sum(lengths), s)
    for rows in plan:
        pack = packs.gather(tokens, lengths, rows, s.device) if rows else packs.dummy(s.device)
        with torch.set_grad_enabled(keep):
            got = r.scorer(pack.inputs, pack.targets, pack.positions, pack.layout, temperature, "entropy" in outputs)
        of = dict(zip(("value",) if r.scorer.value_head is not None else ("logprob", "entropy"), got))
        if pack.at is not None:
            for o in outputs:
                flat[o][pack.at] = of[o].detach().cpu()
        if keep:
            kept.packs.append(KeptPack(pack.at, {o: of[o] for o in outputs}))
        progress.done += 1
        ranks.check_cancelled(progress, s)
    flat = {o: ranks.sum_over(t, s) for o, t in flat.items()}
    for o, t in flat.items():
        if not torch.isfinite(t).all():
            raise non_finite(NAME[o])
    return flat, kept if keep else None


def _plan(lengths: list[int], s: Settings) -> list[list[int]]:
    """This rank's packs. Every rank has the same number; missing ones are empty."""
    mine = packs.cut(packs.deal(lengths, s.ranks)[s.rank], lengths, s.pack_tokens)
    return mine + [[]] * (ranks.most(len(mine), s) - len(mine))


def _checkpoint(r: Resident, tokens: int, s: Settings) -> bool:
    if s.checkpointing != "auto" or s.device.type != "cuda":
        return s.checkpointing == "on"
    # auto: on if the layers' activations would not fit next to the gradients and moments, which are not allocated yet.
    per_token = kept_per_token(r.scorer.causal.config.get_text_config()) * s.dtype.itemsize
    coming = r.trained // s.ranks * (4 + (8 if not r.state.of and not s.offload_optimizer else 0))
    free = (
        torch.cuda.mem_get_info(s.device)[0]
        + torch.cuda.memory_reserved(s.device)
        - torch.cuda.memory_allocated(s.device)
    )
    return bool(ranks.most(int(1.2 * per_token * tokens / s.ranks > free - coming), s))


def kept_per_token(c: Any) -> int:
    """How many numbers, in the model's type, the layers of such a model keep of each token for their backward passes.
    gpu/plan estimates by the same rule."""
    heads = (c.num_attention_heads + c.num_key_value_heads) * (
        getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    )
    # For each layer: residuals and norms; queries, keys, values and attention's outputs, before and after rotation; the
    # four of the feed-forward part.
    return c.num_hidden_layers * (5 * c.hidden_size + 4 * heads + 4 * c.intermediate_size)


def check_cotangents(kept: KeptPass, arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The cotangents by output."""
    given = {o: arrays[f] for o, f in FIELD.items() if f in arrays}
    for o in given:
        if o not in kept.outputs:
            raise bad_request(FIELD[o], f"{NAME[o]} cotangents for a pass that kept no such output")
    if arrays["lengths"].tolist() != kept.lengths:
        raise bad_request(
            "lengths",
            f"cotangents of {arrays['lengths'].numel()} rows are not shaped like "
            f"the {len(kept.lengths)} rows of the pass",
        )
    return given


def backward(kept: KeptPass, given: dict[str, torch.Tensor], s: Settings, progress: Progress) -> None:
    """Adds the gradients of Σ cotangent · output. Frees each graph after its use."""
    progress.total = len(kept.packs)
    while kept.packs:
        pack = kept.packs.pop(0)
        of = [t for t in pack.outputs.values() if t.requires_grad]
        cotangents = [_cotangent(pack, given.get(o), t, s) for o, t in pack.outputs.items() if t.requires_grad]
        if of and (given or s.sharded):
            torch.autograd.backward(of, cotangents)
        progress.done += 1
        ranks.check_cancelled(progress, s)


def _cotangent(pack: KeptPack, given: torch.Tensor | None, like: torch.Tensor, s: Settings) -> torch.Tensor:
    if given is None or pack.at is None:
        return torch.zeros_like(like)
    return given[pack.at].to(s.device)
