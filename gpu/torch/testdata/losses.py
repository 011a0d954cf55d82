"""Answers JSON jobs on standard input, a line each: the gradient of a loss by a model's parameters, as autograd finds it in
float64 through transformers' own model and the formulas of rl/loss/testdata/parity.py.

{"dir": checkpoint folder, "critic": bool, "temperature", "sequences": [row][token], "batch", "params", "out": file}: writes the gradients
as float32 to the safetensors file and answers {"loss", "missing": [parameters that the loss does not depend on]}.
"""

import json
import os
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "rl", "loss", "testdata"))
import parity  # noqa: E402


def per_token(model, head, job):
    """Log-probability and entropy of every token given those before it, or the values before it; entry 0 is 0."""
    tokens = torch.tensor(job["sequences"])
    first = torch.zeros(len(tokens), 1, dtype=torch.float64)
    if head:
        states = model.model(tokens).last_hidden_state
        values = torch.nn.functional.linear(states, head["value_head.weight"], head["value_head.bias"])[..., 0]
        return torch.cat([first, values[:, :-1]], 1), torch.cat([first] * tokens.shape[1], 1)
    logs = torch.log_softmax(model(tokens).logits[:, :-1] / job["temperature"], -1)
    logp = logs.gather(-1, tokens[:, 1:, None])[..., 0]
    return torch.cat([first, logp], 1), torch.cat([first, -(logs.exp() * logs).sum(-1)], 1)


def answer(job):
    model = AutoModelForCausalLM.from_pretrained(job["dir"], dtype=torch.float64, attn_implementation="eager").eval()
    head = {}
    if job["critic"]:
        head = {n: p.double().requires_grad_() for n, p in load_file(os.path.join(job["dir"], "value_head.state")).items()}
    b = {k: torch.tensor(v, dtype=torch.float64) for k, v in job["batch"].items()}
    b["count"] = b["count"].unsqueeze(-1)
    b["logp"], b["entropy"] = per_token(model, head, job)
    loss = parity.objective(b, job["params"])
    loss.backward()
    parameters = {**dict(model.named_parameters()), **head}
    save_file({n: p.grad.float().contiguous() for n, p in parameters.items() if p.grad is not None}, job["out"])
    return {"loss": loss.item(), "missing": [n for n, p in parameters.items() if p.grad is None]}


torch.set_num_threads(1)
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
