"""Small random models of every architecture, saved by transformers."""

from __future__ import annotations

import os
from typing import Any

import torch

VOCAB, POSITIONS = 61, 256
_COMMON: dict[str, Any] = dict(
    vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=POSITIONS, initializer_range=0.15, pad_token_id=None,
    bos_token_id=None, eos_token_id=1, rms_norm_eps=1e-6,
)  # fmt: skip
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("Qwen2", {}),
    "qwen2 tied": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen2 window": ("Qwen2", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "qwen3 tied": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
    "llama": ("Llama", {}),
    "llama biased": ("Llama", {"attention_bias": True, "mlp_bias": True, "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}}),
    "mistral": ("Mistral", {"sliding_window": None, "num_key_value_heads": 1}),
    "mistral window": ("Mistral", {"sliding_window": 8}),
}  # fmt: skip


def make(kind: str, dir: str, seed: int = 1, **other: Any) -> Any:
    """Saves the model to dir and returns it. other holds further fields of its configuration."""
    import transformers

    name, extra = KINDS[kind]
    config = getattr(transformers, name + "Config")(**{"tie_word_embeddings": False, **_COMMON, **extra, **other})
    torch.manual_seed(seed)
    model = getattr(transformers, name + "ForCausalLM")(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:  # norms away from 1 and biases away from 0, so that each matters
                p.add_(torch.randn_like(p) * 0.1)
    model.save_pretrained(dir)
    with open(os.path.join(dir, "tokenizer.json"), "w") as f:
        f.write('{"version": "1.0", "not": "looked into"}')
    return model
