"""Renders templates as transformers' apply_chat_template does.

stdin: a list of {"template", "messages", "tools", "values"}: messages is a list of them where the template is one of
conversations, else null. stdout: for each the text, or null if rendering raises an error.
"""
import json
import sys

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

out = []
for job in json.load(sys.stdin):
    try:
        if job["messages"] is None:
            text = chat_template_utils._compile_jinja_template(job["template"]).render(**job["values"])
        else:
            special = {k: v for k, v in job["values"].items() if k.endswith("_token")}
            more = {k: v for k, v in job["values"].items() if not k.endswith("_token")}
            tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **special)
            text = tokenizer.apply_chat_template(
                job["messages"], tools=job["tools"], chat_template=job["template"], tokenize=False, **more
            )
        out.append(text)
    except Exception as e:
        print(repr(job["template"])[:100], repr(e), file=sys.stderr)
        out.append(None)
json.dump(out, sys.stdout)
