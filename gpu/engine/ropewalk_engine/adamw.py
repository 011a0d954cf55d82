"""AdamW (Loshchilov & Hutter 2019, algorithm 2) on float32 masters, with bias correction and decoupled decay.

θ ← θ·(1 − lr·decay) − lr·m̂/(√v̂ + ε); norms and biases do not decay. The gradient is scaled by clip/(norm + 1e-6)
where its norm is above clip, as PyTorch does. The arithmetic is PyTorch's fused kernel, one element at a time, so the
result does not depend on how the parameters are grouped or sharded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.optim.adamw import adamw

from .progress import Progress
from .weights import Weight


@dataclass(frozen=True)
class Options:
    lr: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    clip_norm: float


@dataclass
class Moments:
    """First and second moments of each weight by name, this rank's share; empty before the first step."""

    step: int = 0
    first: dict[str, torch.Tensor] = field(default_factory=dict)
    second: dict[str, torch.Tensor] = field(default_factory=dict)


@torch.no_grad()
def apply(weights: list[Weight], m: Moments, o: Options, norm: float, offload: bool, progress: Progress) -> bool:
    """Takes one step, drops the gradients and returns whether the gradient was clipped."""
    clipped = o.clip_norm > 0 and norm > o.clip_norm
    factor = o.clip_norm / (norm + 1e-6) if clipped else 1.0
    m.step += 1
    for decays in (True, False):
        group = [w for w in weights if not w.frozen and w.decays == decays]
        # Moments in the host's memory are fetched one at a time. Otherwise one kernel takes all weights.
        for part in ([w] for w in group) if offload else [group]:
            if part:
                _update(part, m, o, factor, o.weight_decay if decays else 0.0, offload)
                progress.ticks += 1
    for w in weights:
        w.drop_grad()
        w.publish()
    return clipped


def _update(part: list[Weight], m: Moments, o: Options, factor: float, decay: float, offload: bool) -> None:
    grads = []
    for w in part:
        g = w.grad
        if g is None:
            g = torch.zeros_like(w.master)
        grads.append(g.mul_(factor) if factor != 1.0 else g)
        for of in (m.first, m.second):
            if w.name not in of:
                of[w.name] = torch.zeros_like(w.master, device="cpu" if offload else w.master.device)
    device = part[0].master.device
    first = [m.first[w.name].to(device) for w in part]
    second = [m.second[w.name].to(device) for w in part]
    # The kernel counts this step itself, so it gets the number of steps before it.
    steps = list(torch.full((len(part),), float(m.step - 1), device=device).unbind())
    adamw(
        [w.master for w in part], grads, first, second, [], steps,
        fused=True, amsgrad=False, beta1=o.beta1, beta2=o.beta2, lr=o.lr, weight_decay=decay, eps=o.epsilon,
        maximize=False,
    )  # fmt: skip
    if offload and device.type != "cpu":
        for w, f, s in zip(part, first, second):
            m.first[w.name].copy_(f)
            m.second[w.name].copy_(s)
