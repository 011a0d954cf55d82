"""Trains Unigram tokenizers and encodes documents with them.

stdin: {"folder", "train", "documents"}. stdout: for each kind of tokenizer its file and the ids of every document.
"""
import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

job = json.load(sys.stdin)
usual = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
kinds = {
    "always": (usual, pre_tokenizers.Metaspace(prepend_scheme="always"), False),
    "first": (normalizers.NFC(), pre_tokenizers.Metaspace(prepend_scheme="first"), True),
    "never": (None, pre_tokenizers.Metaspace(prepend_scheme="never", split=False), False),
    "whites": (
        normalizers.Replace("``", '"'),
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
        False,
    ),
}
out = []
for name, (normalizer, splitter, fallback) in kinds.items():
    t = Tokenizer(models.Unigram())
    if normalizer is not None:
        t.normalizer = normalizer
    t.pre_tokenizer = splitter
    special = ["<unk>", "<|im_start|>", "<|im_end|>"]
    t.train_from_iterator(
        job["train"],
        trainers.UnigramTrainer(vocab_size=600, special_tokens=special, unk_token="<unk>", show_progress=False),
    )
    if fallback:
        file = json.loads(t.to_str())
        file["model"]["byte_fallback"] = True
        file["model"]["vocab"] += [[f"<0x{b:02X}>", -50.0] for b in range(256)]
        t = Tokenizer.from_str(json.dumps(file))
    t.add_special_tokens([AddedToken("<|extra|>", normalized=False)])
    path = os.path.join(job["folder"], name + ".json")
    t.save(path)
    ids = [t.encode(d, add_special_tokens=False).ids for d in job["documents"]]
    out.append({"name": name, "file": path, "ids": ids})
json.dump(out, sys.stdout)
