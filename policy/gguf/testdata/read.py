"""Reads a GGUF file with the package gguf, and runs it with llama.cpp next to transformers.

stdin: a list of {"file", "folder", "names", "prompts"}: the GGUF file, the same model as a folder of transformers, the folder's
names of the tensors, and texts. stdout: for each of them {"fields", "tensors", "same", "llama", "transformers"}: the file's entries; for
each tensor its format and sizes, from the slowest; the tensors whose numbers equal the folder's; and for each text,
by each program, the number of its tokens and the likeliest next ones with their log-probabilities.
"""
import json
import os
import sys

import gguf
import numpy as np
import torch
import transformers
import xllamacpp
from safetensors.torch import load_file

LIKELIEST = 5


def field(f):
    value = f.contents()
    return value.item() if isinstance(value, np.generic) else value


def described(path, folder, names):
    reader = gguf.GGUFReader(path)
    weights = load_file(os.path.join(folder, "model.safetensors"))
    tensors, same = {}, []
    for t in reader.tensors:
        shape = [int(n) for n in reversed(t.shape)]
        tensors[t.name] = [t.tensor_type.name, shape]
        got = gguf.dequantize(t.data, t.tensor_type).reshape(shape)
        want = weights[names[t.name]]
        if t.tensor_type.name == "F16":
            want = want.to(torch.float16)
        if t.tensor_type.name == "BF16":
            want = want.to(torch.bfloat16)
        if np.array_equal(got, want.to(torch.float32).numpy()):
            same.append(t.name)
    return {"fields": {k: field(f) for k, f in reader.fields.items()}, "tensors": tensors, "same": same}


def by_llama(path, prompts):
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel, params.warmup, params.n_gpu_layers = 128, 1, False, 0
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    server = xllamacpp.Server(params)
    out = []
    for prompt in prompts:
        answer = server.handle_completions({
            "prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": LIKELIEST, "cache_prompt": False,
        })
        first = answer["choices"][0]["logprobs"]["content"][0]
        likeliest = [[p["id"], p["logprob"]] for p in first["top_logprobs"]]
        out.append({"prompt": answer["usage"]["prompt_tokens"], "likeliest": likeliest})
    return out


def by_transformers(folder, prompts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    out = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        with torch.no_grad():
            top = torch.log_softmax(model(ids).logits[0, -1], -1).topk(LIKELIEST)
        likeliest = [[int(i), float(p)] for i, p in zip(top.indices, top.values)]
        out.append({"prompt": ids.shape[1], "likeliest": likeliest})
    return out


def answer(job):
    out = described(job["file"], job["folder"], job["names"])
    if job["prompts"]:
        out["llama"] = by_llama(job["file"], job["prompts"])
        out["transformers"] = by_transformers(job["folder"], job["prompts"])
    return out


json.dump([answer(job) for job in json.load(sys.stdin)], sys.stdout)
