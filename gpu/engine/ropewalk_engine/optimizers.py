"""The optimisers, on float32 masters. RULES lists them.

The gradient is scaled by clip/(norm + 1e-6) where its norm is above clip, as PyTorch does. Weight decay is decoupled;
norms and biases do not decay. The arithmetic is one element at a time, so the result does not depend on how the
parameters are grouped or sharded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.optim.adamw import adamw

from .errors import EngineError, bad_request
from .progress import Progress
from .weights import Weight

Tensors = list[torch.Tensor]


@dataclass(frozen=True)
class Step:
    """One step. The gradients that a rule gets are scaled."""

    lr: float
    number: int  # from 1
    decay: float  # weight decay of these weights
    settings: dict[str, float]


@dataclass(frozen=True)
class Rule:
    settings: dict[str, float]  # each with the limit that it is below
    states: tuple[str, ...]  # what is kept of each weight; the tensors' names in files are STATE.WEIGHT
    update: Callable[[Step, Tensors, Tensors, list[Tensors]], None]  # masters, gradients, and the weights' states


def _adamw(s: Step, masters: Tensors, grads: Tensors, states: list[Tensors]) -> None:
    """Loshchilov & Hutter 2019, algorithm 2, with bias correction, in PyTorch's fused kernel:
    θ ← θ·(1 − lr·decay) − lr·m̂/(√v̂ + ε)."""
    # The kernel counts this step itself, so it gets the number of steps before it.
    steps = list(torch.full((len(masters),), float(s.number - 1), device=masters[0].device).unbind())
    adamw(
        masters, grads, states[0], states[1], [], steps,
        fused=True, amsgrad=False, beta1=s.settings["beta1"], beta2=s.settings["beta2"], lr=s.lr,
        weight_decay=s.decay, eps=s.settings["epsilon"], maximize=False,
    )  # fmt: skip


def _sgd(s: Step, masters: Tensors, grads: Tensors, states: list[Tensors]) -> None:
    """Sutskever et al. 2013, in PyTorch's form: v ← momentum·v + g; θ ← θ·(1 − lr·decay) − lr·v."""
    torch._foreach_mul_(states[0], s.settings["momentum"])
    torch._foreach_add_(states[0], grads)
    torch._foreach_mul_(masters, 1 - s.lr * s.decay)
    torch._foreach_add_(masters, states[0], alpha=-s.lr)


RULES = {
    "adamw": Rule(
        {"beta1": 1, "beta2": 1, "epsilon": math.inf, "weight_decay": math.inf}, ("exp_avg", "exp_avg_sq"), _adamw
    ),
    "sgd": Rule({"momentum": 1, "weight_decay": math.inf}, ("momentum_buffer",), _sgd),
}


@dataclass(frozen=True)
class Options:
    lr: float
    clip_norm: float
    optimizer: str
    settings: dict[str, float]

    @property
    def rule(self) -> Rule:
        return RULES[self.optimizer]


def check(name: str, settings: dict[str, float]) -> EngineError | None:
    """The error of an optimiser that is not there, or of a setting that it does not have or cannot use."""
    if name not in RULES:
        return bad_request("optimizer", f"no optimizer is named {name!r}")
    limits = RULES[name].settings
    for k in sorted(set(settings) ^ set(limits)):
        return bad_request(k, f"{name} {'needs' if k in limits else 'has no setting'} {k}")
    for k, v in settings.items():
        if not 0 <= v < limits[k]:
            return bad_request(k, f"{k} is {v}")
    return None


@dataclass
class State:
    """What an optimiser keeps between steps: this rank's share of each state, by state and weight. Empty before the
    first step."""

    step: int = 0
    of: dict[str, dict[str, torch.Tensor]] = field(default_factory=dict)


@torch.no_grad()
def apply(weights: list[Weight], state: State, o: Options, norm: float, offload: bool, progress: Progress) -> bool:
    """Takes one step, drops the gradients and returns whether the gradient was clipped."""
    clipped = o.clip_norm > 0 and norm > o.clip_norm
    factor = o.clip_norm / (norm + 1e-6) if clipped else 1.0
    state.step += 1
    for name in o.rule.states:
        state.of.setdefault(name, {})
    for decays in (True, False):
        group = [w for w in weights if not w.frozen and w.decays == decays]
        step = Step(o.lr, state.step, o.settings.get("weight_decay", 0.0) if decays else 0.0, o.settings)
        # States in the host's memory are fetched one at a time. Otherwise one kernel takes all weights.
        for part in ([w] for w in group) if offload else [group]:
            if part:
                _update(part, state, o.rule, step, factor, offload)
                progress.ticks += 1
    for w in weights:
        w.drop_grad()
        w.publish()
    return clipped


def _update(part: list[Weight], state: State, rule: Rule, step: Step, factor: float, offload: bool) -> None:
    grads = []
    for w in part:
        g = w.grad
        if g is None:
            g = torch.zeros_like(w.master)
        grads.append(g.mul_(factor) if factor != 1.0 else g)
        for name in rule.states:
            if w.name not in state.of[name]:
                state.of[name][w.name] = torch.zeros_like(w.master, device="cpu" if offload else w.master.device)
    device = part[0].master.device
    states = [[state.of[name][w.name].to(device) for w in part] for name in rule.states]
    rule.update(step, [w.master for w in part], grads, states)
    if offload and device.type != "cpu":
        for name, tensors in zip(rule.states, states, strict=True):
            for w, t in zip(part, tensors, strict=True):
                state.of[name][w.name].copy_(t)
