"""The peer: a plain loop over transformers and torch, with the settings of the engine's measurement.

Each line of standard input is a job, each line of standard output its answer, both JSON:
  {"job": "train", "shape", "row", "microbatches", "checkpointing", "loop": "autocast" | "masters" | "float32",
   "steps", "seconds"}
  → {"first": seconds of the first step, "steps": [seconds of each further step], "peak": bytes}
  {"job": "generate", "shape", "batch", "prompt", "new", "repeats"} → {"seconds": [of each]}
An answer {"error": "out_of_memory" | text} reports a job that failed; the peer continues.
"""
import gc
import json
import os
import sys
import time

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # output of libraries is not an answer

import torch
import transformers
from torch.nn.functional import cross_entropy
from transformers import Qwen3Config, Qwen3ForCausalLM

DEVICE = torch.device(sys.argv[1])
ADAMW = dict(lr=1e-5, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)


def build(s, dtype):
    """A model with random weights, as transformers draws them."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=s["Vocab"], hidden_size=s["Hidden"], intermediate_size=s["FFN"], num_hidden_layers=s["Layers"],
        num_attention_heads=s["Heads"], num_key_value_heads=s["KVHeads"], head_dim=s["HeadDim"],
        max_position_embeddings=s["Positions"], rope_theta=s["RopeTheta"], rms_norm_eps=s["NormEps"],
        tie_word_embeddings=True, bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )
    config._attn_implementation = "sdpa"
    with DEVICE:
        return Qwen3ForCausalLM(config).to(dtype)


def synchronize():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


class Masters:
    """A model in bfloat16 with float32 masters, to which its gradients are added after each micro-batch."""

    def __init__(self, model):
        self.copies = list(model.parameters())
        self.masters = [torch.nn.Parameter(p.detach().float()) for p in self.copies]

    def collect(self):
        with torch.no_grad():
            for m, p in zip(self.masters, self.copies):
                m.grad = p.grad.float() if m.grad is None else m.grad.add_(p.grad)
                p.grad = None

    def publish(self):
        with torch.no_grad():
            torch._foreach_copy_(self.copies, self.masters)


def train(j):
    loop = j["loop"]
    model = build(j["shape"], torch.bfloat16 if loop == "masters" else torch.float32)
    model.train()
    if j["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    masters = Masters(model) if loop == "masters" else None
    parameters = masters.masters if masters else list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, fused=True, **ADAMW)
    n = j["microbatches"] * (j["row"] - 1)
    batch = [torch.randint(0, j["shape"]["Vocab"], (1, j["row"]), device=DEVICE) for _ in range(j["microbatches"])]

    def step():
        began = time.perf_counter()
        for ids in batch:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=loop == "autocast"):
                logits = model(input_ids=ids, use_cache=False).logits
            logprobs = -cross_entropy(logits[0, :-1].float(), ids[0, 1:], reduction="none")
            (-logprobs.sum() / n).backward()
            del logits, logprobs
            if masters:
                masters.collect()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if masters:
            masters.publish()
        synchronize()
        return time.perf_counter() - began

    first, steps, began = step(), [], time.perf_counter()
    while len(steps) < j["steps"] or time.perf_counter() - began < j["seconds"]:
        steps.append(step())
    return {"first": first, "steps": steps, "peak": torch.cuda.max_memory_allocated() if DEVICE.type == "cuda" else 0}


def generate(j):
    model = build(j["shape"], torch.bfloat16 if DEVICE.type == "cuda" else torch.float32)
    model.eval()
    prompts = torch.randint(0, j["shape"]["Vocab"], (j["batch"], j["prompt"]), device=DEVICE)

    def once():
        began = time.perf_counter()
        with torch.inference_mode():
            out = model.generate(
                prompts, attention_mask=torch.ones_like(prompts), do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
                max_new_tokens=j["new"], min_new_tokens=j["new"], eos_token_id=None, pad_token_id=0,
            )
        synchronize()
        assert out.shape == (j["batch"], j["prompt"] + j["new"])
        return time.perf_counter() - began

    once()
    return {"seconds": [once() for _ in range(j["repeats"])]}


def answer(j):
    try:
        return {"train": train, "generate": generate}[j["job"]](j)
    except torch.OutOfMemoryError:
        return {"error": "out_of_memory"}
    except Exception as e:
        return {"error": f"{type(e).__name__}: {e}"}


def main():
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__}), file=answers, flush=True)
    for line in sys.stdin:
        out = answer(json.loads(line))
        gc.collect()
        if DEVICE.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        print(json.dumps(out), file=answers, flush=True)


main()
