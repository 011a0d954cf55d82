"""Holds the batch and measures one loss's forward, backward and statistics for each line of standard input."""

import json
import os
import sys
import time

import numpy
import torch

folder, formulas, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.path.insert(0, formulas)
import parity  # noqa: E402

torch.set_num_threads(1)


def array(name):
    return torch.from_numpy(numpy.fromfile(os.path.join(folder, name), dtype="<f4").reshape(rows, -1))


NAMES = ("logp", "old", "adv", "ref", "entropy", "mask", "value", "value_old", "returns")
FIELDS = {name: array(name) for name in NAMES}
MARKS = {}


@torch.no_grad()
def statistics(b, p):
    """The statistics of package loss: shares out of bounds by sign and side, drift and extremes."""
    if p.get("policy") in (None, "behaviour_cloning", "value_clip"):
        return {}
    mask, a = b["mask"], b["adv"]
    n, l = mask.sum(), b["logp"] - b["old"]
    out = {"kl": -(l * mask).sum() / n}
    off = mask == 0
    out["ratio_max"] = l.masked_fill(off, -torch.inf).max().exp()
    out["ratio_min"] = l.masked_fill(off, torch.inf).min().exp()
    out["drift"] = (l.abs() * mask).max()
    if "clip_high" in p and not p["policy"].startswith("gspo"):
        r = l.clamp(-20, 20).exp()
        sides = {"above": r > 1 + p["clip_high"], "below": r < 1 - p["clip_low"]}
        if p.get("dual_clip"):
            sides["dual"] = r > p["dual_clip"]
        for sign, of in (("positive", a > 0), ("negative", a < 0)):
            for side, beyond in sides.items():
                if (sign, side) != ("positive", "dual"):
                    out[sign + side] = ((of & beyond) * mask).sum() / n
    elif "clip_high" in p:
        s = parity.row_mean(l, mask).exp()
        sign = parity.row_mean(a, mask)
        out["above"] = ((sign > 0) & (s > 1 + p["clip_high"])).float().mean()
        out["below"] = ((sign < 0) & (s < 1 - p["clip_low"])).float().mean()
    return {k: v.item() for k, v in out.items()}


def once(b, p):
    """Token-mean of one loss, its gradients and its statistics."""
    n = b["mask"].sum()
    if "policy" in p:
        leaf, value = b["logp"], parity.POLICY[p["policy"]](b, p)
    elif "estimator" in p:
        leaf, value = b["logp"], p["c_kl"] * parity.kl(b, p)
    else:
        leaf, value = b["entropy"], -p["c_h"] * b["entropy"]
    loss = (value * b["mask"]).sum() / n
    leaf.grad = None
    loss.backward()
    return loss.item(), statistics({k: v.detach() for k, v in b.items()}, p)


for line in sys.stdin:
    job = json.loads(line)
    name = job["name"]
    if "marks" in job:
        MARKS[name] = array(job["marks"])
    b = dict(FIELDS)
    if name == "value_clip":
        b |= {"logp": b["value"], "old": b["value_old"], "adv": b["returns"]}
    b["logp"], b["entropy"] = b["logp"].detach().requires_grad_(), b["entropy"].detach().requires_grad_()
    if name in MARKS:
        b["marks"] = MARKS[name]
    once(b, job["params"])
    began = time.perf_counter()
    once(b, job["params"])
    once(b, job["params"])
    print(json.dumps((time.perf_counter() - began) / 2), flush=True)
