"""PyTorch's side for the same shapes: an eager training step with AdamW, and transformers' generate.

Argument: {"threads", "shape", "train": [batch, length], "generate": [batch, prompt, new]}. Commands come on standard
input, one line of JSON each, "train" or "generate". Each is answered with the seconds that it took.
"""
import json
import sys
import time

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

job = json.loads(sys.argv[1])
torch.set_num_threads(job["threads"])
torch.manual_seed(0)
s = job["shape"]
model = Qwen3ForCausalLM(Qwen3Config(
    vocab_size=s["Vocab"], hidden_size=s["Hidden"], intermediate_size=s["FFN"], num_hidden_layers=s["Layers"],
    num_attention_heads=s["Heads"], num_key_value_heads=s["KVHeads"], head_dim=s["HeadDim"],
    max_position_embeddings=s["Positions"], tie_word_embeddings=True, bos_token_id=None, eos_token_id=None,
    pad_token_id=None,
))
batch, length = job["train"]
ids = torch.randint(0, s["Vocab"], (batch, length))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95))
rows, prompt, new = job["generate"]
prompts = torch.randint(0, s["Vocab"], (rows, prompt))
mask = torch.ones_like(prompts)


def train():
    model.train()
    optimizer.zero_grad(set_to_none=True)
    model(ids, labels=ids, use_cache=False).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def generate():
    model.eval()
    with torch.inference_mode():
        out = model.generate(prompts, attention_mask=mask, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
                             max_new_tokens=new, min_new_tokens=new, eos_token_id=None, pad_token_id=0)
    assert out.shape == (rows, prompt + new)


commands = {"train": train, "generate": generate}
for line in sys.stdin:
    began = time.perf_counter()
    commands[json.loads(line)]()
    print(time.perf_counter() - began, flush=True)
