"""TRL's side: GRPOTrainer on prompts that are given as tokens.

Argument: {"model": folder, "threads", "prompts": [[tokens, gold]], "settings": fields of GRPOConfig}. It asks for the
rewards of each step's responses with a line {"responses", "golds"}, whose answer is a line with a list of numbers. Its
last line is {"steps": [{"seconds", "sampling", "reward", "update", "tokens"}]} without the first step.
"""
import collections
import json
import sys
import tempfile
import time

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from trl.extras.profiling import ProfilingContext

answers, sys.stdout = sys.stdout, sys.stderr  # the libraries print, too
job = json.loads(sys.argv[1])
torch.set_num_threads(job["threads"])
tokenizer = AutoTokenizer.from_pretrained(job["model"])
tokens, golds = zip(*job["prompts"])
prompts = tokenizer.batch_decode(tokens)
if tokenizer(prompts)["input_ids"] != list(tokens):
    sys.exit("the tokenizer of transformers reads other tokens in the text of the prompts")
spent = collections.Counter()  # seconds of the step by the names of TRL's own profiler, and tokens


def note(context, seconds):
    spent[context.name.removeprefix("GRPOTrainer.")] += seconds


ProfilingContext._log_metrics = note


def say(line):
    print(json.dumps(line), file=answers, flush=True)


def reward(completion_ids, gold, **_):
    spent["tokens"] += sum(map(len, completion_ids))
    say({"responses": tokenizer.batch_decode(completion_ids), "golds": gold})
    return json.loads(sys.stdin.readline())


class Clock(TrainerCallback):
    """Times each step from the end of the one before. All that is not preparing the inputs is the update."""

    ended, steps = None, []

    def on_step_end(self, *_, **__):
        now = time.perf_counter()
        if self.ended:
            self.steps.append({
                "seconds": now - self.ended, "sampling": spent["transformers.generate"],
                "reward": spent["_calculate_rewards"], "tokens": spent["tokens"],
                "update": now - self.ended - spent["_prepare_inputs"],
            })
        self.ended = now
        spent.clear()


with tempfile.TemporaryDirectory() as folder:
    GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32),
        processing_class=tokenizer,
        reward_funcs=reward,
        train_dataset=Dataset.from_dict({"prompt": prompts, "gold": golds}),
        callbacks=[Clock],
        args=GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=False, gradient_checkpointing=False, shuffle_dataset=False,
            loss_type="dapo", beta=0.0, lr_scheduler_type="constant", report_to="none", save_strategy="no",
            disable_tqdm=True, dataloader_pin_memory=False, **job["settings"],
        ),
    ).train()
say({"steps": Clock.steps})
