"""Continues a conversation greedily with transformers and with llama.cpp's server.

stdin: {"folder", "file", "system", "questions", "tokens"}: a model as a folder and as a GGUF file, a system message,
the user's messages, and the number of new tokens. stdout: {"prompts", "transformers", "llama"}: the ids of each prompt,
and the text of each answer by both programs, without the token that ends it.
"""
import json
import sys

import torch
import transformers
import xllamacpp

job = json.load(sys.stdin)


def conversation(question):
    return [{"role": "system", "content": job["system"]}, {"role": "user", "content": question}]


def by_transformers():
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"])
    model = transformers.AutoModelForCausalLM.from_pretrained(job["folder"], dtype=torch.float32)
    prompts, texts = [], []
    for question in job["questions"]:
        ids = tokenizer.apply_chat_template(conversation(question), add_generation_prompt=True, return_dict=True,
                                            return_tensors="pt")["input_ids"]
        with torch.no_grad():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                                 max_new_tokens=job["tokens"])
        prompts.append(ids[0].tolist())
        texts.append(tokenizer.decode(out[0, ids.shape[1]:], skip_special_tokens=True))
    return prompts, texts


def by_llama():
    params = xllamacpp.CommonParams()
    params.model.path = job["file"]
    params.n_ctx, params.n_parallel, params.warmup, params.n_gpu_layers = 512, 1, False, 0
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    params.use_jinja = True
    server = xllamacpp.Server(params)
    texts = []
    for question in job["questions"]:
        answer = server.handle_chat_completions({
            "messages": conversation(question), "max_tokens": job["tokens"], "temperature": 0, "cache_prompt": False,
        })
        texts.append(answer["choices"][0]["message"]["content"])
    return texts


prompts, texts = by_transformers()
json.dump({"prompts": prompts, "transformers": texts, "llama": by_llama()}, sys.stdout)
