"""Every loss of package loss as PyTorch writes it, for autograd, from the formulas alone.

As a program it answers one JSON job on standard input: for each method and batch, the loss and the gradients that autograd
finds in float64. As a module it gives the benchmark the same formulas. A loss's parameters have their names in recipes.
"""

import json
import sys

import torch

CLAMP = 20.0


def ratio(b):
    return torch.exp((b["logp"] - b["old"]).clamp(-CLAMP, CLAMP))


def clipped(b, low, high, dual=0.0):
    r, a = ratio(b), b["adv"]
    loss = torch.maximum(-a * r, -a * r.clamp(1 - low, 1 + high))
    if dual:
        loss = torch.where(a < 0, torch.minimum(loss, -a * dual), loss)
    return loss


def ppo_clip(b, p):
    return clipped(b, p["clip_low"], p["clip_high"], p.get("dual_clip", 0.0))


def cispo(b, p):
    r, a = ratio(b).detach(), b["adv"]
    w = r.clamp(1 - p["clip_low"], 1 + p["clip_high"])
    if p.get("mask"):
        w = w * ~(((a > 0) & (r > 1 + p["clip_high"])) | ((a < 0) & (r < 1 - p["clip_low"])))
    return -w * a * b["logp"]


def sapo(b, p):
    a = b["adv"]
    tau = torch.where(a > 0, a.new_tensor(p["tau_positive"]), a.new_tensor(p["tau_negative"]))
    return -(4 / tau) * torch.sigmoid(tau * (ratio(b) - 1)) * b["adv"]


def row_mean(x, mask):
    return (x * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)


def sequence(b, p, adv):
    s = torch.exp(row_mean(b["logp"] - b["old"], b["mask"]).detach().clamp(max=10.0))
    s = s * torch.exp(b["logp"] - b["logp"].detach())
    return torch.maximum(-adv * s, -adv * s.clamp(1 - p["clip_low"], 1 + p["clip_high"]))


def gspo(b, p):
    return sequence(b, p, row_mean(b["adv"], b["mask"]))


def gspo_token(b, p):
    return sequence(b, p, b["adv"])


def ce_gppo(b, p):
    r, a = ratio(b), b["adv"]
    one = r / r.detach()
    below = (a < 0) & (r < 1 - p["clip_low"])
    above = (a > 0) & (r > 1 + p["clip_high"])
    v = torch.where(below, p.get("beta1", 1.0) * (1 - p["clip_low"]) * one, r)
    return -a * torch.where(above, p.get("beta2", 1.0) * (1 + p["clip_high"]) * one, v)


def aepo_clip(b, p):
    r, a = ratio(b), b["adv"]
    upper = (1 + p["clip_high"]) * r / r.detach()
    w = torch.where(r > 1 + p["clip_high"], upper, r.clamp(min=1 - p["clip_low"]))
    loss = torch.maximum(-a * r, -a * w)
    if p.get("dual_clip"):
        loss = torch.where(a < 0, torch.minimum(loss, -a * p["dual_clip"]), loss)
    return loss


def clip_cov(b, p):
    return clipped(b, p["clip_low"], p["clip_high"]) * (1 - b["marks"])


def kl_cov(b, p):
    l = (b["logp"] - b["old"]).clamp(-CLAMP, CLAMP)
    return -b["adv"] * torch.exp(l) + b["marks"] * p["cov_coefficient"] * l.abs()


def self_imitation(b, p):
    return p["gamma"] * clipped(b, p["clip_low"], p["clip_high"])


def behaviour_cloning(b, p):
    return -b["logp"]


def value_clip(b, p):
    c = b["old"] + (b["logp"] - b["old"]).clamp(-p["clip"], p["clip"])
    return 0.5 * torch.maximum((b["logp"] - b["adv"]) ** 2, (c - b["adv"]) ** 2)


def kl(b, p):
    name, d = p["estimator"], b["logp"] - b["ref"]
    k2 = 0.5 * d * d
    if name.startswith("k1"):
        v = d
    elif name.startswith("abs"):
        v = d.abs()
    elif name.startswith("k2"):
        v = k2
    else:
        x = (-d).clamp(-CLAMP, CLAMP)
        v = (torch.exp(x) - x - 1).clamp(-10, 10)
    return k2 + (v - k2).detach() if name.endswith("+") else v


def gpg(b, p):
    return -b["adv"] * b["logp"]


POLICY = {f.__name__: f for f in (ppo_clip, cispo, sapo, gspo, gspo_token, gpg, aepo_clip, ce_gppo, clip_cov, kl_cov, self_imitation,
                                  behaviour_cloning, value_clip)} | {"gppo": ce_gppo}


def weights(mask, mode, horizon, count):
    """What a token's loss is multiplied by."""
    tokens = mask.sum(-1, keepdim=True)
    rows = ((tokens > 0) * count).sum()
    if rows == 0:
        return mask * 0
    return mask * {
        "token-mean": lambda: 1 / (tokens * count).sum(),
        "seq-mean-token-mean": lambda: 1 / (rows * tokens.clamp(min=1)),
        "seq-mean-token-sum": lambda: 1 / rows,
        "seq-mean-token-sum-norm": lambda: 1 / (rows * horizon),
        "norm_legacy": lambda: mask.new_tensor(1 / horizon),
        "token-sum": lambda: mask.new_tensor(1.0),
    }[mode]()


def objective(b, p):
    """The total loss of a batch."""
    mask, count = b["mask"], b["count"]
    rest = weights(mask, p["mode"], p["horizon"], count)
    total = mask.new_zeros(())
    if "policy" in p:
        kept = mask
        loss = POLICY[p["policy"]](b, p)
        if p.get("delta") is not None:
            keep = (row_mean(b["adv"], mask) >= 0) | (row_mean(b["old"] - b["logp"], mask) <= p["delta"])
            loss = torch.where(keep, loss, 0.0)
            kept = mask * keep if p.get("shrink") else mask
        if p.get("cap"):
            loss = loss * torch.exp((b["old"] - b["rollout"]).clamp(-CLAMP, CLAMP)).clamp(max=p["cap"]).detach()
        copies = count if p["policy"] in ("behaviour_cloning", "value_clip") else 1
        total = total + (loss * weights(kept, p["mode"], p["horizon"], count) * copies).sum()
    if "estimator" in p:
        total = total + p["c_kl"] * (kl(b, p) * rest * count).sum()
    if p.get("c_h"):
        total = total - p["c_h"] * (b["entropy"] * rest * count).sum()
    return total


def answer(job):
    b = {k: torch.tensor(v, dtype=torch.float64) for k, v in job["batch"].items()}
    b["count"] = b["count"].unsqueeze(-1)
    leaves = [b["logp"].requires_grad_(), b["entropy"].requires_grad_()]
    loss = objective(b, job["params"])
    grads = torch.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else [None, None]
    logp, entropy = [torch.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)]
    return {"loss": loss.item(), "logp": logp.tolist(), "entropy": entropy.tolist()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
