"""Encodes and decodes each text of a request with transformers' AutoTokenizer.

argv: the tokenizer's folder. stdin: a JSON list of texts. stdout: a JSON list of
{"ids", "text"}, where text is what decoding the ids gives back.
"""
import json
import sys

from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
answers = []
for text in json.load(sys.stdin):
    ids = tokenizer.encode(text, add_special_tokens=False)
    answers.append({"ids": ids, "text": tokenizer.decode(ids)})
json.dump({"size": len(tokenizer), "eos": tokenizer.eos_token_id, "answers": answers}, sys.stdout)
