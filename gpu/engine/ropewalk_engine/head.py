"""Log-probabilities and entropies from hidden states, with the logits of only one chunk of tokens at a time.

With z = h·Wᵀ/T, log p = z − log Σ e^z and H = −Σ p·log p, the gradients of Σ a·log p(y) + b·H are
∂/∂z_j = a·(1[j = y] − p_j) − b·p_j·(log p_j + H). The forward pass keeps only log Σ e^z and H of each token; the
backward pass computes the logits again, chunk by chunk, and only for tokens that have a cotangent.
"""

from __future__ import annotations

from typing import Any

import torch

CHUNK_BYTES = {"cpu": 1 << 23, "cuda": 1 << 29}  # of float32 logits


def chunk_tokens(vocab: int, device: torch.device) -> int:
    return max(1, CHUNK_BYTES.get(device.type, 1 << 23) // (4 * vocab))


def float_mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a·b in float32. Half-precision products are not rounded back to half if the device can avoid it."""
    if a.dtype == torch.float32:
        return a @ b
    if a.is_cuda:
        return torch.mm(a, b, out_dtype=torch.float32)
    return (a @ b).float()


def logits(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, temperature: float) -> torch.Tensor:
    """Logits [n, V] in float32, divided by the temperature."""
    z = float_mm(hidden, weight.t())
    if bias is not None:
        z += bias
    if temperature != 1.0:
        z *= 1.0 / temperature
    return z


def entropy_of(z: torch.Tensor, log_sum: torch.Tensor) -> torch.Tensor:
    """The entropy of each row of z in nats, given log Σ e^z. Overwrites z with log p."""
    z -= log_sum[:, None]
    return -(z.exp() * z).sum(1)


def _normalise(z: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """log Σ e^z and the log-probability of the target, for each row of z."""
    chosen = z.gather(1, targets[:, None])[:, 0]
    if z.is_cuda:
        # One kernel that reads z twice; logsumexp is several kernels, which move twice as many bytes.
        logprob = torch.log_softmax(z, 1).gather(1, targets[:, None])[:, 0]
        return chosen - logprob, logprob
    log_sum = torch.logsumexp(z, 1)
    return log_sum, chosen - log_sum


class _TokenLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        targets: torch.Tensor,
        temperature: float,
        with_entropy: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        n, step = hidden.shape[0], chunk_tokens(weight.shape[0], hidden.device)
        logprob, log_sum, entropy = (torch.zeros(n, device=hidden.device) for _ in range(3))
        for lo in range(0, n, step):
            s = slice(lo, lo + step)
            z = logits(hidden[s], weight, bias, temperature)
            log_sum[s], logprob[s] = _normalise(z, targets[s])
            if with_entropy:
                entropy[s] = entropy_of(z, log_sum[s])
        ctx.save_for_backward(hidden, weight, bias, targets, log_sum, entropy)
        ctx.temperature = temperature
        return logprob, entropy

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, to_logprob: torch.Tensor, to_entropy: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        hidden, weight, bias, targets, log_sum, entropy = ctx.saved_tensors
        keep = ((to_logprob != 0) | (to_entropy != 0)).nonzero()[:, 0]
        whole = keep.numel() == hidden.shape[0]
        if not whole:
            hidden_kept, targets, log_sum, entropy, to_logprob, to_entropy = (
                x[keep] for x in (hidden, targets, log_sum, entropy, to_logprob, to_entropy)
            )
        else:
            hidden_kept = hidden
        grad_hidden = torch.empty_like(hidden_kept)
        need_weight = ctx.needs_input_grad[1]
        grad_weight = torch.zeros(weight.shape, device=weight.device) if need_weight else None
        grad_bias = (
            torch.zeros(bias.shape, device=weight.device) if bias is not None and ctx.needs_input_grad[2] else None
        )
        step = chunk_tokens(weight.shape[0], hidden.device)
        brief = weight.is_cuda and weight.dtype != torch.float32 and grad_bias is None and not (to_entropy != 0).any()
        for lo in range(0, hidden_kept.shape[0], step):
            s = slice(lo, lo + step)
            z = logits(hidden_kept[s], weight, bias, ctx.temperature)
            if brief:
                g = _rounded_back(z, targets[s], to_logprob[s] / ctx.temperature, weight.dtype)
            else:
                g = _logits_back(z, targets[s], log_sum[s], entropy[s], to_logprob[s], to_entropy[s])
                if ctx.temperature != 1.0:
                    g *= 1.0 / ctx.temperature
                if grad_bias is not None:
                    grad_bias += g.sum(0)
                g = g.to(weight.dtype)
            grad_hidden[s] = g @ weight
            if grad_weight is not None:
                _add_mm(grad_weight, g.t(), hidden_kept[s])
        if not whole:
            grad_hidden = torch.zeros_like(hidden).index_copy_(0, keep, grad_hidden)
        return (
            grad_hidden,
            None if grad_weight is None else grad_weight.to(weight.dtype),
            None if grad_bias is None else grad_bias.to(bias.dtype),
            None, None, None,
        )  # fmt: skip


def _add_mm(total: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    if a.dtype == torch.float32:
        total.addmm_(a, b)
    elif a.is_cuda:
        torch.addmm(total, a, b, out_dtype=torch.float32, out=total)
    else:
        total += float_mm(a, b)


def _rounded_back(z: torch.Tensor, targets: torch.Tensor, a: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The logits' gradient in dtype, where only log-probabilities have a cotangent. It is rounded once."""
    p = torch.softmax(z, 1)
    p[torch.arange(len(p), device=p.device), targets] -= 1
    return torch.mul(p, -a[:, None], out=torch.empty_like(p, dtype=dtype))


def _logits_back(
    z: torch.Tensor,
    targets: torch.Tensor,
    log_sum: torch.Tensor,
    entropy: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
) -> torch.Tensor:
    """The gradient of the tempered logits z. Overwrites z."""
    logp = z.sub_(log_sum[:, None])
    p = logp.exp()
    if (b != 0).any():
        p *= logp.add_(entropy[:, None]).mul_(-b[:, None]).sub_(a[:, None])
    else:
        p *= -a[:, None]
    rows = torch.arange(len(p), device=p.device)
    p[rows, targets] += a  # each entry once, so deterministic, unlike scatter_add on a GPU
    return p


def token_logprobs(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    targets: torch.Tensor,
    temperature: float,
    with_entropy: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(log p(target), entropy) of n tokens in float32; hidden [n, H], weight [V, H]. Entropies are optional."""
    return _TokenLogProbs.apply(hidden, weight, bias, targets, temperature, with_entropy)
