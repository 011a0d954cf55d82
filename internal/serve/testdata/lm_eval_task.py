"""Runs two tasks of lm-eval against a server, and prints each question with lm-eval's own reading of the answer."""

import json
import logging
import os
import sys

os.environ["HF_DATASETS_OFFLINE"] = "1"
ask = json.load(sys.stdin)
os.environ["OPENAI_API_KEY"] = ask["key"]

import lm_eval
from lm_eval.tasks import TaskManager

logging.disable(logging.ERROR)
stdout, sys.stdout = sys.stdout, sys.stderr  # lm-eval prints, too
data = os.path.join(ask["folder"], "questions.json")
with open(data, "w") as f:
    for q, choices, gold in [("the answer to the question is", ["a number", "not a word", "tokens"], 0),
                             ("a number of", ["tokens", "the answer"], 0), ("the", ["word", "is", "of"], 2)]:
        f.write(json.dumps({"q": q, "choices": choices, "gold": gold}) + "\n")
common = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": data}}, "test_split": "test",
          "doc_to_text": "{{q}}"}
choice = dict(common, task="tiny_choice", output_type="multiple_choice", doc_to_choice="{{choices}}",
              doc_to_target="{{gold}}", metric_list=[{"metric": "acc"}, {"metric": "acc_norm"}])
text = dict(common, task="tiny_text", output_type="generate_until", doc_to_target="{{choices[0]}}",
            generation_kwargs={"until": ["e"], "max_gen_toks": 9, "temperature": 0, "do_sample": False},
            metric_list=[{"metric": "exact_match"}])
results = lm_eval.simple_evaluate(
    model="local-completions",
    model_args={"model": "tiny", "base_url": ask["url"] + "/v1/completions", "tokenizer": ask["model"],
                "num_concurrent": 3, "max_length": 512},
    tasks=[choice, text], task_manager=TaskManager(include_defaults=False), log_samples=True, bootstrap_iters=0)
out = {"acc": results["results"]["tiny_choice"]["acc,none"], "choices": [], "texts": []}
for s in results["samples"]["tiny_choice"]:
    for (context, continuation), reply in zip(s["arguments"], s["resps"]):
        out["choices"].append({"context": context, "continuation": continuation, "logprob": float(reply[0][0]),
                               "greedy": str(reply[0][1]) == "True", "gold": int(s["target"])})
for s in results["samples"]["tiny_text"]:
    out["texts"].append({"context": s["arguments"][0][0], "text": s["resps"][0][0]})
json.dump(out, stdout)
