"""Checkpoint folders: what is written, what is read, and what is refused by name."""

import json
import os
import shutil
import struct
import tempfile
import unittest

import torch
from driver import Refused, random_rows
from models import VOCAB
from safetensors.torch import load_file, save_file
from support import host, model, noise, scratch

W = "model.safetensors"


def copy(kind="qwen3 tied"):
    dir = tempfile.mkdtemp(dir=scratch())
    shutil.copytree(model(kind)[0], dir, dirs_exist_ok=True)
    return dir


def contents(dir):
    out = {}
    for name in sorted(os.listdir(dir)):
        with open(os.path.join(dir, name), "rb") as f:
            out[name] = f.read()
    return out


def edit_config(**changes):
    def edit(dir):
        path = os.path.join(dir, "config.json")
        with open(path) as f:
            c = json.load(f)
        c.update(changes)
        with open(path, "w") as f:
            json.dump(c, f)

    return edit


def edit_weights(change, name=W, metadata=None):
    def edit(dir):
        t = load_file(os.path.join(dir, name))
        change(t)
        save_file(t, os.path.join(dir, name), metadata or {"format": "pt"})

    return edit


def truncate(name, by):
    def edit(dir):
        path = os.path.join(dir, name)
        with open(path, "rb+") as f:
            f.truncate(max(0, os.path.getsize(path) - by))

    return edit


def write(name, content):
    def edit(dir):
        with open(os.path.join(dir, name), "wb") as f:
            f.write(content)

    return edit


def remove(name):
    return lambda dir: os.unlink(os.path.join(dir, name))


K = "model.layers.1.mlp.up_proj.weight"


def train(h, role="policy"):
    rows = random_rows(20, VOCAB, 9, 14)
    kept, _ = h.forward(rows, ("logprob",) if role == "policy" else ("value",), role, keep=True)
    h.backward(rows, kept, role, **{"logprobs" if role == "policy" else "values": noise(20, 23)})
    return h.step(role)


class Folders(unittest.TestCase):
    def test_refused(self):
        h = host()
        dir = copy()
        h.load(dir, digest="before")
        train_state = h.call("state", role="policy")[0]
        for what, edit, kind, name, message in (
            ("no config", remove("config.json"), "bad_request", "config.json", "has no config.json"),
            ("no weights", remove(W), "bad_request", W, "neither"),
            ("config is no JSON", write("config.json", b"{"), "corrupt", "config.json", "parse config.json"),
            ("config is a list", write("config.json", b"[]"), "corrupt", "config.json", "no JSON object"),
            ("architecture", edit_config(model_type="gpt_neo"), "unsupported", "config.json", "'gpt_neo'"),
            (
                "another head",
                edit_config(architectures=["Qwen3ForSequenceClassification"]),
                "unsupported",
                "config.json",
                "architectures",
            ),
            (
                "own code",
                edit_config(auto_map={"AutoModelForCausalLM": "x.Y"}),
                "unsupported",
                "config.json",
                "auto_map",
            ),
            (
                "quantised",
                edit_config(quantization_config={"bits": 4}),
                "unsupported",
                "config.json",
                "quantization_config",
            ),
            (
                "heads that do not fit",
                edit_config(num_attention_heads=0),
                "unsupported",
                "config.json",
                "cannot make this model",
            ),
            ("missing tensor", edit_weights(lambda t: t.pop(K)), "corrupt", W, f"{K!r} is missing"),
            (
                "surplus tensor",
                edit_weights(lambda t: t.update({"model.more": torch.zeros(2)})),
                "corrupt",
                W,
                "'model.more' is none of the model's",
            ),
            (
                "misshapen tensor",
                edit_weights(lambda t: t.update({K: torch.zeros(48, 31)})),
                "corrupt",
                W,
                f"{K!r} is [48, 31], config.json wants [48, 32]",
            ),
            (
                "integers",
                edit_weights(lambda t: t.update({K: torch.zeros(48, 32, dtype=torch.int32)})),
                "unsupported",
                W,
                "dtype I32",
            ),
            (
                "doubles",
                edit_weights(lambda t: t.update({K: torch.zeros(48, 32, dtype=torch.float64)})),
                "corrupt",
                W,
                "dtype 'F64'",
            ),
            (
                "another tied head",
                edit_weights(lambda t: t.update({"lm_head.weight": torch.zeros(VOCAB, 32)})),
                "corrupt",
                W,
                "to which config.json ties it",
            ),
            ("cut", truncate(W, 1), "corrupt", W, "data"),
            ("cut to nothing", truncate(W, 1 << 30), "corrupt", W, "too short"),
            ("no header", write(W, struct.pack("<Q", 1 << 40) + b"{}"), "corrupt", W, "header of"),
            (
                "value head under another role",
                write("value_head.state", b""),
                "corrupt",
                "value_head.state",
                "too short",
            ),
            (
                "index to elsewhere",
                lambda d: (remove(W)(d), write(W + ".index.json", b'{"weight_map": {"a": "../x.safetensors"}}')(d)),
                "corrupt",
                W + ".index.json",
                "no file of the folder",
            ),
            (
                "shard that is not there",
                lambda d: (remove(W)(d), write(W + ".index.json", b'{"weight_map": {"a": "x.safetensors"}}')(d)),
                "bad_request",
                "x.safetensors",
                "No such file",
            ),
            ("no folder", shutil.rmtree, "bad_request", "dir", "is no folder"),
        ):
            with self.subTest(what):
                bad = copy()
                edit(bad)
                with self.assertRaises(Refused) as e:
                    h.load(bad)
                self.assertEqual((e.exception.kind, e.exception.name), (kind, name), e.exception.message)
                self.assertIn(message, e.exception.message)
        after = h.call("state", role="policy")[0]
        self.assertEqual(
            [after[k] for k in ("loaded", "digest", "step", "params")],
            [train_state[k] for k in ("loaded", "digest", "step", "params")],
        )
        self.assertEqual(h.load(dir, digest="before")["reused"], ["weights", "optimizer"])

    def test_bad_moments(self):
        h = host()
        h.load(copy())
        train(h)
        good = h.save()
        for what, edit, message in (
            ("cut", truncate("optimizer.state", 4), "data"),
            (
                "missing",
                edit_weights(lambda t: t.pop("exp_avg." + K), "optimizer.state", {"step": "1"}),
                f"exp_avg.{K}",
            ),
            ("no step", edit_weights(lambda t: None, "optimizer.state"), "metadata step is ''"),
        ):
            with self.subTest(what):
                bad = tempfile.mkdtemp(dir=scratch())
                shutil.copytree(good, bad, dirs_exist_ok=True)
                edit(bad)
                with self.assertRaises(Refused) as e:
                    h.load(bad)
                self.assertEqual((e.exception.kind, e.exception.name), ("corrupt", "optimizer.state"))
                self.assertIn(message, e.exception.message)
                h.load(bad, optimizer=False)

    def test_saving_what_was_loaded(self):
        h = host()
        for kind in ("qwen3 tied", "llama biased", "mistral"):
            with self.subTest(kind):
                dir = copy(kind)
                h.load(dir)
                once = h.save()
                self.assertEqual(contents(once)["config.json"], contents(dir)["config.json"])
                self.assertEqual(contents(once)["tokenizer.json"], contents(dir)["tokenizer.json"])
                h.load(once)
                self.assertEqual(contents(h.save()), contents(once))
                a, b = load_file(f"{dir}/{W}"), load_file(f"{once}/{W}")
                self.assertEqual(set(a), set(b))
                for k in a:
                    self.assertTrue(torch.equal(a[k], b[k]))

    def test_halves_and_shards(self):
        h, rows = host(), random_rows(21, VOCAB, 20)
        for dtype in (torch.bfloat16, torch.float16):
            dir = copy("llama")
            edit_weights(lambda t: t.update({k: v.to(dtype) for k, v in t.items()}))(dir)
            edit_config(dtype=str(dtype).removeprefix("torch."), torch_dtype="float16")(dir)
            h.load(dir)
            whole = h.forward(rows)
            t = load_file(f"{dir}/{W}")
            names = sorted(t)
            files = {}
            for i in range(2):
                name = f"model-0000{i + 1}-of-00002.safetensors"
                save_file({k: t[k] for k in names[i::2]}, f"{dir}/{name}")
                files |= dict.fromkeys(names[i::2], name)
            os.unlink(f"{dir}/{W}")
            write(W + ".index.json", json.dumps({"metadata": {}, "weight_map": files}).encode())(dir)
            h.load(dir)
            self.assertTrue(torch.equal(h.forward(rows)["logprobs"], whole["logprobs"]))
            saved = h.save()
            with open(f"{saved}/config.json") as f:
                c = json.load(f)
            self.assertEqual((c["dtype"], c["torch_dtype"]), ("float32", "float32"))
            for k, v in load_file(f"{saved}/{W}").items():
                self.assertTrue(torch.equal(v, t[k].float()))

    def test_both_names_of_a_tied_tensor(self):
        h, dir = host(), copy()
        edit_weights(lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].clone()}))(dir)
        h.load(dir)
        self.assertNotIn("lm_head.weight", load_file(f"{h.save()}/{W}"))

    def test_save_refuses_a_folder_that_holds_something(self):
        h, dir = host(), copy()
        h.load(dir)
        before = contents(dir)
        with self.assertRaises(Refused) as e:
            h.call("save", role="policy", dir=dir)
        self.assertEqual((e.exception.kind, e.exception.name), ("bad_request", "dir"))
        self.assertEqual(contents(dir), before)

    def test_resume_equals_uninterrupted(self):
        h = host()
        for role in ("policy", "critic"):
            h.load(copy(), role)
            train(h, role)
            middle = h.save(role)
            train(h, role)
            want = contents(h.save(role))
            h.load(middle, role)
            self.assertEqual(h.call("state", role=role)[0]["step"], 1)
            train(h, role)
            self.assertEqual(contents(h.save(role)), want)
        with self.assertRaises(Refused) as e:
            h.load(middle, "policy")
        self.assertEqual((e.exception.kind, e.exception.name), ("bad_request", "value_head.state"))

    def test_resident(self):
        h, dir = host(), copy()
        self.assertEqual(h.load(dir, digest="d1")["reused"], [])
        a = h.load(dir, digest="d1")
        self.assertEqual((a["reused"], a["digest"]), (["weights", "optimizer"], "d1"))
        train(h)
        self.assertEqual(h.call("state", role="policy")[0]["digest"], "")
        with self.assertRaises(Refused):
            h.call("saved", role="policy", digest="d2")  # nothing was saved since the step
        saved = h.save()
        h.call("saved", role="policy", digest="d2")
        self.assertEqual(h.load(saved, digest="d2")["reused"], ["weights", "optimizer"])
        want = contents(h.save())
        # Without the optimiser's state steps count from 0. The state is read when a later load asks for it.
        a = h.load(saved, optimizer=False, digest="d2")
        self.assertEqual((a["reused"], a["step"]), (["weights"], 0))
        a = h.load(saved, digest="d2")
        self.assertEqual((a["reused"], a["step"]), (["weights"], 1))
        self.assertEqual(contents(h.save()), want)
        # The first folder's digest now belongs to another version.
        self.assertEqual(h.load(dir, digest="d1")["reused"], [])
        self.assertEqual(h.load(dir, digest="")["reused"], [])  # the host does not know the digest
        # A fresh critic is not a checkpoint.
        self.assertEqual(h.load(dir, "critic", digest="d1")["digest"], "")
        self.assertEqual(h.load(dir, "critic", digest="d1")["reused"], [])

    def test_a_load_drops_gradients_and_passes(self):
        h, dir, rows = host(), copy(), random_rows(22, VOCAB, 8)
        for digest in ("", "same"):
            h.load(dir, digest=digest)
            kept, _ = h.forward(rows, keep=True)
            h.backward(rows, kept, logprobs=torch.ones(8))
            kept, _ = h.forward(rows, keep=True)
            h.load(dir, digest=digest)
            with self.assertRaises(Refused) as e:
                h.backward(rows, kept, logprobs=torch.ones(8))
            self.assertEqual(e.exception.kind, "not_kept")
            self.assertEqual(h.step(weight_decay=0.0)["grad_norm"], 0)


if __name__ == "__main__":
    unittest.main()
