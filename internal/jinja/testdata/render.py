"""Renders templates as transformers' apply_chat_template does, on a fixed day.

stdin: a list of {"template", "messages", "tools", "values"}: messages is a list of them where the template is one of
conversations, else null. stdout: for each the text, or null if rendering raises an error.
"""
import datetime
import json
import sys

from transformers.utils import chat_template_utils


class Day(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 7, 4, 13, 5, 9)


chat_template_utils.datetime = Day
out = []
for job in json.load(sys.stdin):
    try:
        if job["messages"] is None:
            text = chat_template_utils._compile_jinja_template(job["template"]).render(**job["values"])
        else:
            text = chat_template_utils.render_jinja_template(
                conversations=[job["messages"]], tools=job["tools"], chat_template=job["template"], **job["values"]
            )[0][0]
        out.append(text)
    except Exception as e:
        print(repr(job["template"])[:100], repr(e), file=sys.stderr)
        out.append(None)
json.dump(out, sys.stdout)
