"""PyTorch's figures for the same shapes: an eager training step with AdamW, and transformers' generate.

Standard input: {"threads", "shape", "train": [batch, length], "generate": [batch, prompt, new], "seconds"}.
Standard output: {"torch", "transformers", "train", "generate"} in tokens per second (medians).
"""
import json
import statistics
import sys
import time

import torch
import transformers
from transformers import Qwen3Config, Qwen3ForCausalLM

job = json.load(sys.stdin)
torch.set_num_threads(job["threads"])
torch.manual_seed(0)
s = job["shape"]
model = Qwen3ForCausalLM(Qwen3Config(
    vocab_size=s["Vocab"], hidden_size=s["Hidden"], intermediate_size=s["FFN"], num_hidden_layers=s["Layers"],
    num_attention_heads=s["Heads"], num_key_value_heads=s["KVHeads"], head_dim=s["HeadDim"],
    max_position_embeddings=s["Positions"], tie_word_embeddings=True, bos_token_id=None, eos_token_id=None, pad_token_id=None,
))


def median_rate(tokens, run):
    run()
    rates, began = [], time.perf_counter()
    while len(rates) < 3 or time.perf_counter() - began < job["seconds"]:
        t = time.perf_counter()
        run()
        rates.append(tokens / (time.perf_counter() - t))
    return statistics.median(rates)


batch, length = job["train"]
ids = torch.randint(0, s["Vocab"], (batch, length))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95))


def step():
    optimizer.zero_grad(set_to_none=True)
    model(ids, labels=ids, use_cache=False).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


model.train()
train = median_rate(batch * length, step)
model.eval()
batch, prompt, new = job["generate"]
prompts = torch.randint(0, s["Vocab"], (batch, prompt))
mask = torch.ones_like(prompts)


def generate():
    with torch.inference_mode():
        out = model.generate(prompts, attention_mask=mask, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
                             max_new_tokens=new, min_new_tokens=new, eos_token_id=None, pad_token_id=0)
    assert out.shape == (batch, prompt + new)


rate = median_rate(batch * new, generate)
json.dump({"torch": torch.__version__, "transformers": transformers.__version__, "train": train, "generate": rate}, sys.stdout)
