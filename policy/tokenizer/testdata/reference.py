"""Encodes and decodes texts with transformers' AutoTokenizer.

stdin: a JSON list of {"folder", "texts"}, each with a tokenizer's folder. stdout: for each of them
{"size", "eos", "answers"}, with {"ids", "text"} for each text, where text is what decoding the ids gives back.
"""
import json
import sys

from transformers import AutoTokenizer


def reference(folder, texts):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    answers = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False)
        answers.append({"ids": ids, "text": tokenizer.decode(ids)})
    return {"size": len(tokenizer), "eos": tokenizer.eos_token_id, "answers": answers}


json.dump([reference(**job) for job in json.load(sys.stdin)], sys.stdout)
