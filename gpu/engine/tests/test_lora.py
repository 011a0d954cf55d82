"""LoRA: gradients against autograd through a hand-written W + (alpha/rank)·B·A, contents of folders, refusals."""

import importlib.util
import json
import os
import shutil
import tempfile
import unittest

import torch
from driver import ZERO, Refused, flat, random_rows
from models import KINDS, VOCAB, make
from safetensors.torch import load, load_file, save_file
from support import host, model, noise, plain_outputs, relative, scratch
from test_folders import contents, copy, truncate, write

RANK, ALPHA, TARGETS = 3, 6.0, ("q_proj", "v_proj", "o_proj", "gate_proj", "down_proj")
FLAGS = (
    "--lora-rank",
    str(RANK),
    "--lora-alpha",
    str(ALPHA),
    "--lora-targets",
    ",".join(TARGETS),
    "--lora-seed",
    "18446744073709551615",
)
ROWS = random_rows(3, VOCAB, 9, 30, 14)
N = sum(map(len, ROWS))
CONFIG, ADAPTER, W, MOMENTS = "adapter_config.json", "adapter_model.safetensors", "model.safetensors", "optimizer.state"


def lora(*more):
    return host(*FLAGS, *more)


def train(h, role="policy", steps=1, lr=1e-2):
    for i in range(steps):
        outputs, field = (("logprob", "entropy"), "logprobs") if role == "policy" else (("value",), "values")
        kept, _ = h.forward(ROWS, outputs, role, keep=True)
        h.backward(ROWS, kept, role, **{field: noise(i, N)})
        h.step(role, lr=lr)


def trained(h, dir, role="policy"):
    """A folder whose adapter is away from zero."""
    h.load(dir, role)
    train(h, role, 2)
    return h.save(role)


def by_hand(m, adapter):
    """The model's parameters with every adapted weight as W + (alpha/rank)·B·A, differentiable in A and B."""
    leaves = {k: v.clone().requires_grad_() for k, v in adapter.items()}
    params = dict(m.named_parameters())
    for name in [k for k in leaves if ".lora_A." in k]:
        weight = name.removeprefix("base_model.model.").replace(".lora_A.", ".")
        product = torch.einsum("or,ri->oi", leaves[name.replace("lora_A", "lora_B")], leaves[name])
        params[weight] = params[weight].detach() + ALPHA / RANK * product
    return leaves, params


class ByHand:
    """Calls a model of transformers with other parameters, in the form that plain_outputs takes."""

    def __init__(self, m, params):
        self.m, self.params = m, params

    def __call__(self, tokens):
        return torch.func.functional_call(self.m, self.params, (tokens,), tie_weights=False)


@unittest.skipIf(
    importlib.util.find_spec("peft") is None and not os.environ.get("ROPEWALK_REQUIRE_TORCH"), "there is no peft"
)
class Lora(unittest.TestCase):
    def test_gradients_beside_autograd(self):
        for kind in KINDS:
            with self.subTest(kind):
                h, (dir, m) = lora(), model(kind)
                folder = trained(h, dir)
                leaves, params = by_hand(m, load_file(f"{folder}/{ADAPTER}"))
                self.assertEqual(len(leaves), 2 * len(TARGETS) * m.config.num_hidden_layers)
                want, entropies = plain_outputs(ByHand(m, params), ROWS, 0.7)
                h.load(folder, optimizer=False)
                kept, got = h.forward(ROWS, temperature=0.7, keep=True)
                self.assertLess(float((got["logprobs"] - want.detach()).abs().max()), 1e-5)
                a, b = noise(1, N), noise(2, N)
                ((a * want).sum() + (b * entropies).sum()).backward()
                h.backward(ROWS, kept, logprobs=a, entropies=b)
                h.step(lr=0, clip_norm=0)
                moments = load_file(f"{h.save()}/{MOMENTS}")
                self.assertEqual(len(moments), 2 * len(leaves))
                for name, leaf in leaves.items():
                    self.assertLess(relative(moments[f"exp_avg.{name}"] / 0.1, leaf.grad), 1e-4, name)

    def test_critic_beside_autograd(self):
        """A critic's body has an adapter, and its value head trains whole."""
        h, (dir, m) = lora(), model("qwen3")
        folder = trained(h, dir, "critic")
        leaves, params = by_hand(m, load_file(f"{folder}/{ADAPTER}"))
        head = {k: v.requires_grad_() for k, v in load_file(f"{folder}/value_head.state").items()}
        values = []
        for r in ROWS:
            inner = {k.removeprefix("model."): v for k, v in params.items() if k.startswith("model.")}
            hidden = torch.func.functional_call(m.model, inner, (torch.tensor([r[:-1]]),)).last_hidden_state[0]
            values += [torch.zeros(1), (hidden @ head["value_head.weight"].T + head["value_head.bias"])[:, 0]]
        want, c = torch.cat(values), noise(4, N)
        (c * want).sum().backward()
        h.load(folder, "critic", optimizer=False)
        kept, got = h.forward(ROWS, ("value",), "critic", keep=True)
        self.assertLess(float((got["values"] - want.detach()).abs().max()), 1e-5)
        h.backward(ROWS, kept, "critic", values=c)
        h.step("critic", lr=0, clip_norm=0)
        moments = load_file(f"{h.save('critic')}/{MOMENTS}")
        self.assertEqual(len(moments), 2 * (len(leaves) + 2))
        for name, leaf in {**leaves, **head}.items():
            self.assertLess(relative(moments[f"exp_avg.{name}"] / 0.1, leaf.grad), 1e-4, name)

    def test_a_new_adapter_changes_nothing(self):
        h, plain, (dir, _) = lora(), host(), model("llama biased")
        self.assertEqual(h.hello["lora"], {"rank": RANK, "alpha": ALPHA, "targets": list(TARGETS)})
        self.assertNotIn("lora", plain.hello)
        for e in (h, plain):
            e.load(dir)
        a, b = h.forward(ROWS), plain.forward(ROWS)
        for k in a:
            self.assertTrue(torch.equal(a[k], b[k]), k)
        asked = (ROWS, [5, 6, 7], 12)
        for x, y in zip(h.generate(*asked), plain.generate(*asked)):
            self.assertEqual(x["tokens"], y["tokens"])
            self.assertTrue(torch.equal(x["logprobs"], y["logprobs"]))

    def test_its_numbers_follow_from_seed_and_role(self):
        h, dir = lora(), copy()
        got = []
        for role in ("policy", "policy", "critic"):
            h.load(dir, role)
            got.append(load_file(f"{h.save(role)}/{ADAPTER}"))
        for name, t in got[0].items():
            self.assertEqual(t.dtype, torch.float32)
            self.assertTrue(torch.equal(t, got[1][name]))
            if ".lora_B." in name:
                self.assertEqual(float(t.abs().max()), 0, name)
                continue
            bound = t.shape[1] ** -0.5
            self.assertLessEqual(float(t.abs().max()), bound)
            self.assertGreater(float(t.abs().max()), 0.9 * bound)
            self.assertAlmostEqual(float(t.mean()) / bound, 0, delta=0.25)
            self.assertFalse(torch.equal(t, got[2][name]), "a critic's is another")
        first = [t for n, t in got[0].items() if ".lora_A." in n and t.shape == (RANK, 32)]
        self.assertEqual(len({t.numpy().tobytes() for t in first}), len(first), "each tensor has numbers of its own")

    def test_the_folder(self):
        """Other programs load the folder. The base keeps its bytes, also in several files and in bfloat16."""
        from transformers import AutoModelForCausalLM

        h, dir = lora(), tempfile.mkdtemp(dir=scratch())
        m = make("mistral", dir).bfloat16()
        os.remove(f"{dir}/{W}")
        m.save_pretrained(dir, max_shard_size="20KB")
        base = {k: v for k, v in contents(dir).items() if k.startswith("model")}
        self.assertGreater(len(base), 3)
        h.load(dir, digest="d")
        self.assertEqual(h.load(dir, digest="d")["reused"], ["weights", "optimizer"])
        shutil.rmtree(dir)  # as a host does after the load
        train(h, steps=2)
        saved = h.save()
        got = contents(saved)
        self.assertEqual({k: v for k, v in got.items() if k.startswith("model")}, base)
        theirs = AutoModelForCausalLM.from_pretrained(saved, dtype=torch.float32)
        self.assertIn("lora_A", " ".join(n for n, _ in theirs.named_parameters()))
        self.assertLess(float((plain_outputs(theirs, ROWS)[0] - h.forward(ROWS)["logprobs"]).abs().max()), 1e-5)
        h.load(saved)
        self.assertEqual(contents(h.save()), got)

    def test_moments_of_the_base_are_left_behind(self):
        """The folder of a model that was trained whole can be a base."""
        plain, h = host(), lora()
        plain.load(copy())
        train(plain)
        dir = plain.save()
        self.assertIn(MOMENTS, os.listdir(dir))
        self.assertEqual(h.load(dir)["step"], 0)
        self.assertNotIn(MOMENTS, os.listdir(h.save()))

    def test_generation_agrees_with_forward(self):
        for more, bound in (((), 1e-5), (("--dtype", "bfloat16", "--checkpointing", "on"), 2e-2)):
            h = lora(*more)
            h.load(trained(lora(), copy("qwen2 window")))
            g = h.generate(ROWS, [1, 2, 3], 20)
            again = h.forward([r + x["tokens"] for r, x in zip(ROWS, g)])["logprobs"]
            at, gaps = 0, []
            for r, x in zip(ROWS, g):
                at += len(r) + 20
                gaps.append((again[at - 20 : at] - x["logprobs"]).abs())
            gap = torch.cat(gaps)
            self.assertLess(float(gap.mean() if more else gap.max()), bound)

    def test_bfloat16_with_float32_masters(self):
        """The adapter's masters move in float32, far below bfloat16's resolution, also with recomputed layers."""
        h, exact = lora("--dtype", "bfloat16", "--checkpointing", "on"), lora()
        dir = trained(exact, copy())
        for e in (h, exact):
            e.load(dir, optimizer=False)
        self.assertEqual(contents(h.save())[ADAPTER], contents(dir)[ADAPTER])
        for e in (h, exact):
            train(e, steps=2, lr=1e-5)
        before, got, want = (load_file(f"{d}/{ADAPTER}") for d in (dir, h.save(), exact.save()))
        for k in before:
            self.assertGreater(float((got[k] - before[k]).abs().max()), 0)
            self.assertLess(float((got[k] - want[k]).abs().max()), 4.1e-5)

    def test_two_ranks_in_bfloat16(self):
        """Ranks hold shares of the rounded base, and of the adapter's float32 masters."""
        flags = ("--dtype", "bfloat16", "--checkpointing", "on")
        one, two = lora(*flags), host(*FLAGS, *flags, ranks=2)
        dir = trained(lora(), copy())
        saved = []
        for h in (one, two):
            h.load(dir)
            self.assertEqual(contents(h.save()), contents(dir))
        a, b = one.forward(ROWS)["logprobs"], two.forward(ROWS)["logprobs"]
        self.assertLess(float((a - b).abs().mean()), 2e-2)
        g = two.generate(ROWS, [1, 2, 3], 8)
        self.assertEqual([len(x["tokens"]) for x in g], [8] * 3)
        for h in (one, two):
            train(h)
            saved.append(contents(h.save()))
        before, one_moved, two_moved = (load(c[ADAPTER]) for c in (contents(dir), *saved))
        self.assertEqual(saved[0][W], saved[1][W])
        whole = torch.cat([(one_moved[k] - before[k]).flatten() for k in before])
        self.assertGreater(float(whole.norm()), 0)
        self.assertLess(relative(torch.cat([(two_moved[k] - before[k]).flatten() for k in before]), whole), 0.2)

    def test_refused(self):
        h, plain = lora(), host()
        sound = trained(h, copy())
        before = h.forward(ROWS)["logprobs"]

        def config(**changes):
            def edit(dir):
                with open(f"{dir}/{CONFIG}") as f:
                    c = {**json.load(f), **changes}
                with open(f"{dir}/{CONFIG}", "w") as f:
                    json.dump(c, f)

            return edit

        def tensors(change):
            def edit(dir):
                t = load_file(f"{dir}/{ADAPTER}")
                change(t)
                save_file(t, f"{dir}/{ADAPTER}", {"format": "pt"})

            return edit

        name = "base_model.model.model.layers.1.mlp.down_proj.lora_B.weight"
        for what, edit, kind, file, message in (
            ("rank", config(r=4), "bad_request", CONFIG, "r is 4, engine.lora.rank is 3"),
            ("alpha", config(lora_alpha=7), "bad_request", CONFIG, "lora_alpha is 7, engine.lora.alpha is 6.0"),
            (
                "targets",
                config(target_modules=["q_proj"]),
                "bad_request",
                CONFIG,
                "engine.lora.targets is ['down_proj'",
            ),
            (
                "all targets",
                config(target_modules="all-linear"),
                "unsupported",
                CONFIG,
                "target_modules are 'all-linear'",
            ),
            ("another kind", config(peft_type="IA3"), "unsupported", CONFIG, "peft_type is 'IA3'"),
            ("DoRA", config(use_dora=True), "unsupported", CONFIG, "use_dora is True"),
            ("dropout", config(lora_dropout=0.1), "unsupported", CONFIG, "lora_dropout is 0.1"),
            ("biases", config(bias="all"), "unsupported", CONFIG, "bias is 'all'"),
            ("no JSON", write(CONFIG, b"{"), "corrupt", CONFIG, "parse adapter_config.json"),
            (
                "no tensors",
                lambda d: os.remove(f"{d}/{ADAPTER}"),
                "corrupt",
                ADAPTER,
                "an adapter_config.json without adapter_model.safetensors",
            ),
            (
                "no configuration",
                lambda d: os.remove(f"{d}/{CONFIG}"),
                "corrupt",
                CONFIG,
                "an adapter_model.safetensors without adapter_config.json",
            ),
            ("missing tensor", tensors(lambda t: t.pop(name)), "corrupt", ADAPTER, f"tensor '{name}' is missing"),
            (
                "surplus tensor",
                tensors(lambda t: t.update({"x": torch.ones(1)})),
                "corrupt",
                ADAPTER,
                "tensor 'x' is none of the model's",
            ),
            (
                "misshapen tensor",
                tensors(lambda t: t.update({name: t[name][:, :2].contiguous()})),
                "corrupt",
                ADAPTER,
                "is [32, 2]",
            ),
            ("cut file", truncate(ADAPTER, 9), "corrupt", ADAPTER, ADAPTER),
            (
                "moments",
                lambda d: save_file({"exp_avg.x": torch.ones(1)}, f"{d}/{MOMENTS}", {"step": "2"}),
                "corrupt",
                MOMENTS,
                "is missing",
            ),
        ):
            with self.subTest(what):
                dir = tempfile.mkdtemp(dir=scratch())
                shutil.copytree(sound, dir, dirs_exist_ok=True)
                edit(dir)
                with self.assertRaises(Refused) as e:
                    h.load(dir)
                self.assertEqual((e.exception.kind, e.exception.name), (kind, file), e.exception.message)
                self.assertIn(message, e.exception.message)
                self.assertTrue(torch.equal(h.forward(ROWS)["logprobs"], before))
        for role in ("policy", "reference", "critic"):
            with self.assertRaises(Refused) as e:
                plain.load(sound, role)
            self.assertEqual((e.exception.kind, e.exception.name), ("bad_request", CONFIG))
            self.assertIn("engine.lora is not set", e.exception.message)
        h.load(sound, "reference")
        for call, arrays, fields in (
            ("forward", flat(ROWS), dict(temperature=1, outputs=["logprob"], keep=True)),
            ("step", None, dict(lr=0, clip_norm=0, optimizer="adamw", settings=ZERO)),
        ):
            with self.assertRaises(Refused) as e:
                h.call(call, arrays, role="reference", **fields)
            self.assertEqual((e.exception.kind, e.exception.name), ("bad_request", "role"))

    def test_a_base_that_was_written_to(self):
        h, dir = lora(), copy()
        h.load(dir)
        with open(f"{dir}/{W}", "rb+") as f:
            f.seek(-4, os.SEEK_END)
            f.write(b"\0\0\0\0")
        os.utime(f"{dir}/{W}", (1, 1))
        to = tempfile.mkdtemp(dir=scratch())
        with self.assertRaises(Refused) as e:
            h.call("save", role="policy", dir=to)
        self.assertEqual((e.exception.kind, e.exception.name), ("corrupt", W))
        self.assertEqual(os.listdir(to), [], "nothing half written")


class Flags(unittest.TestCase):
    def test_refused(self):
        from ropewalk_engine.lora import parse

        self.assertIsNone(parse(0, 0, "", 0))
        self.assertEqual(parse(2, 1, "down_proj,q_proj", 3).targets, ("q_proj", "down_proj"))
        for args, message in (
            ((0, 1, "", 0), "need --lora-rank"),
            ((-1, 1, "q_proj", 0), "--lora-rank is -1"),
            ((1, 0, "q_proj", 0), "--lora-alpha is 0"),
            ((1, float("nan"), "q_proj", 0), "--lora-alpha is nan"),
            ((1, 1, "", 0), "--lora-targets are ''"),
            ((1, 1, "q_proj,q_proj", 0), "each once"),
            ((1, 1, "lm_head", 0), "--lora-targets are 'lm_head'"),
            ((1, 1, "q_proj", 1 << 64), "--lora-seed"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                parse(*args)


if __name__ == "__main__":
    unittest.main()
