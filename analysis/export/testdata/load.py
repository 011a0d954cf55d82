"""Loads exported checkpoints with transformers, and merges an adapter with peft.

stdin: {"plain", "apart", "merged", "texts"}: folders with a model, with an adapter and its base, and with the adapter
merged; and texts. stdout: {"ids", "plain", "merged", "difference"}: each text's ids and the log-probabilities of its
ids from the second one on, by the two models; and the greatest difference between a weight of the merged model and the
one that peft merges, as a share of the greatest change that the adapter makes.
"""
import json
import os
import shutil
import sys
import tempfile

import peft
import torch
import transformers


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def log_probs(model, ids):
    with torch.no_grad():
        rows = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1], -1)
    return [float(rows[i, token]) for i, token in enumerate(ids[1:])]


def difference(apart, merged):
    with tempfile.TemporaryDirectory() as base:
        for name in os.listdir(apart):
            if not name.startswith("adapter_"):
                shutil.copy(os.path.join(apart, name), base)
        before = {k: v.clone() for k, v in load(base).state_dict().items()}
        want = peft.PeftModel.from_pretrained(load(base), apart).merge_and_unload().state_dict()
    got = load(merged).state_dict()
    assert set(got) == set(want), set(got) ^ set(want)
    changed = max(float((want[k] - before[k]).abs().max()) for k in want)
    return max(float((got[k] - want[k]).abs().max()) for k in want) / changed


job = json.load(sys.stdin)
tokenizer = transformers.AutoTokenizer.from_pretrained(job["plain"])
ids = [tokenizer(text).input_ids for text in job["texts"]]
out = {"ids": ids, "difference": difference(job["apart"], job["merged"])}
for name in ("plain", "merged"):
    model = load(job[name])
    out[name] = [log_probs(model, row) for row in ids]
json.dump(out, sys.stdout)
