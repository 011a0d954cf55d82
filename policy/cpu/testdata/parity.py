"""Reads JSON objects from standard input, a line each, and writes an answer to each to standard output.

{"create": DIR, "tied": bool, "type": NAME, "rope": {...}}: draw a small model of that model_type, with those
rope_parameters, and save it to DIR first.
{"dir": DIR, "sequences": [[id...]], "prompt": [id...], "new": n}: load DIR with AutoModelForCausalLM and give
{"logits": [sequence][token][vocabulary], "greedy": [id...]}.
With "cotangents": [sequence][token], also "values" of DIR's value head, moved on by one token, and "gradients", by
parameter, of the sum of cotangent times value.
"""
import json
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM


def answer_to(job):
    if "create" in job:
        torch.manual_seed(5)
        rope = {"rope_type": "default", "rope_theta": 100000.0, **(job.get("rope") or {})}
        config = AutoConfig.for_model(
            job.get("type", "qwen3"), vocab_size=37, hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, max_position_embeddings=512, rope_parameters=rope,
            rms_norm_eps=1e-5, tie_word_embeddings=job["tied"], initializer_range=0.3,
        )
        model = AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            for name, p in model.named_parameters():
                if p.dim() == 1:
                    p.add_(0.2 * torch.randn_like(p))
        model.save_pretrained(job["create"])
        job["dir"] = job["create"]
    model = AutoModelForCausalLM.from_pretrained(job["dir"], dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        logits = [model(torch.tensor([s])).logits[0].tolist() for s in job["sequences"]]
        prompt = torch.tensor([job["prompt"]])
        out = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=job["new"],
            min_new_tokens=job["new"], eos_token_id=None, pad_token_id=0,
        )
    answer = {"logits": logits, "greedy": out[0, prompt.shape[1]:].tolist()}
    if "cotangents" in job:
        head = {name: p.requires_grad_() for name, p in load_file(job["dir"] + "/value_head.state").items()}
        answer["values"], total = [], 0.0
        for sequence, cotangents in zip(job["sequences"], job["cotangents"]):
            states = model.model(torch.tensor([sequence])).last_hidden_state[0]
            values = torch.nn.functional.linear(states, head["value_head.weight"], head["value_head.bias"])[:, 0]
            values = torch.cat([torch.zeros(1), values[:-1]])
            answer["values"].append(values.tolist())
            total = total + (torch.tensor(cotangents) * values).sum()
        total.backward()
        parameters = {**dict(model.named_parameters()), **head}
        answer["gradients"] = {name: p.grad.flatten().tolist() for name, p in parameters.items() if p.grad is not None}
    return answer


torch.set_num_threads(1)
for line in sys.stdin:
    print(json.dumps(answer_to(json.loads(line))), flush=True)
