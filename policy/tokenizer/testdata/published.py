"""Encodes documents with Hugging Face's tokenizers.

stdin: {"file", "gguf", "documents", "ids"}. file is a tokenizer.json, or "" where gguf is a GGUF file of SmolLM2, whose
published tokenizer.json splits digits, then as GPT-2 does. documents is a file: for each document its length in bytes
as a little-endian uint32, then its bytes. ids is the file to write: for each document the count of ids, then the ids,
each as a little-endian int32. stdout: {"seconds"}, the time of encoding alone.
"""
import json
import struct
import sys
import time

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def smollm2(path):
    import gguf

    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    out = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    out.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    out.decoder = decoders.ByteLevel()
    out.add_special_tokens([AddedToken(t, normalized=False) for t, k in zip(tokens, types) if k == 3])
    return out


job = json.load(sys.stdin)
tokenizer = Tokenizer.from_file(job["file"]) if job["file"] else smollm2(job["gguf"])
documents = []
with open(job["documents"], "rb") as f:
    while head := f.read(4):
        documents.append(f.read(struct.unpack("<I", head)[0]).decode("utf-8"))
start = time.perf_counter()
encoded = [tokenizer.encode(d, add_special_tokens=False).ids for d in documents]
seconds = time.perf_counter() - start
with open(job["ids"], "wb") as f:
    for ids in encoded:
        f.write(struct.pack(f"<I{len(ids)}i", len(ids), *ids))
json.dump({"seconds": seconds}, sys.stdout)
