"""Makes a tiny model of each architecture with transformers, in bfloat16 and in several files.

stdin: {"folder"}. stdout: the names of the folders below it.
"""
import json
import os
import sys

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

folder = json.load(sys.stdin)["folder"]
raw = Tokenizer(models.BPE())
raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
raw.decoder = decoders.ByteLevel()
raw.train_from_iterator(
    ["What is the answer of 12 plus 34? The answer is 46."] * 9,
    trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False),
)
raw.add_special_tokens([AddedToken(t, normalized=False) for t in ["<|im_start|>", "<|im_end|>"]])
template = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
for kind in ["llama", "qwen2", "qwen3", "mistral"]:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", chat_template=template)
    config = CONFIG_MAPPING[kind](
        vocab_size=len(tokenizer) + 6, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=16, max_position_embeddings=256,
        eos_token_id=tokenizer.eos_token_id, bos_token_id=None, pad_token_id=None,
    )
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    model.save_pretrained(os.path.join(folder, kind), max_shard_size="20KB")
    tokenizer.save_pretrained(os.path.join(folder, kind))
json.dump(["llama", "qwen2", "qwen3", "mistral"], sys.stdout)
