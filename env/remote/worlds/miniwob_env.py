"""A page of MiniWoB++ in Chromium, read as its accessibility tree. Wants browsergym-miniwob and miniwob."""

import functools
import os
import pathlib

import miniwob

PAGES = pathlib.Path(miniwob.__file__).parent / "html" / "miniwob"
os.environ.setdefault("MINIWOB_URL", PAGES.as_uri() + "/")

import browsergym.core  # noqa: E402
import browsergym.miniwob  # noqa: E402  registers the pages, and reads MINIWOB_URL
import gymnasium  # noqa: E402
from browsergym.core.action.highlevel import HighLevelActionSet  # noqa: E402
from browsergym.utils.obs import flatten_axtree_to_str  # noqa: E402


class Page:
    def __init__(self, name="click-test", chromium="/usr/bin/chromium", turns=10, train=1000, held_out=100):
        self.numbers, self.turns = {"train": train, "held_out": held_out}, turns
        # The package opens one browser for the page and one for a chat: both are to be this one, not Playwright's.
        kind = browsergym.core._get_global_playwright().chromium
        kind.launch = functools.partial(type(kind).launch, kind, executable_path=chromium)
        actions = HighLevelActionSet(subsets=["bid"], multiaction=False, strict=True)
        self.page = gymnasium.make(
            f"browsergym/miniwob.{name}",
            headless=True,
            action_mapping=actions.to_python_code,
        )

    def tasks(self):
        return self.numbers

    def reset(self, seed=None, options=None):
        shown, _ = self.page.reset(seed=2 * seed + (options["split"] == "held_out"))
        self.taken = 0
        return f"{shown['goal']}\n\n{self.seen(shown)}", {"score": 0.0}

    def step(self, action):
        """Runs an action such as click('12') or fill('7', 'text'). Anything else is an error on the page."""
        shown, reward, done, _, _ = self.page.step(action)
        self.taken += 1
        info = {"success": reward > 0, "score": min(1.0, max(0.0, float(reward)))}
        return self.seen(shown), float(reward), done, self.taken >= self.turns, info

    def seen(self, shown):
        error = shown["last_action_error"]
        text = flatten_axtree_to_str(shown["axtree_object"])
        return f"The action failed: {error}\n\n{text}" if error else text

    def close(self):
        self.page.close()
