"""Asks a server through OpenAI's client, and prints what it answered as JSON. The Go test compares it with the engine."""

import json
import sys

import openai

ask = json.load(sys.stdin)
client = openai.OpenAI(base_url=ask["url"] + "/v1", api_key=ask["key"], max_retries=0)
tools = openai.OpenAI(base_url=ask["tools"] + "/v1", api_key="none", max_retries=0)
out = {"models": [m.id for m in client.models.list()]}

# Completions: ids in, ids out, log-probabilities; whole and streamed.
common = dict(model="tiny", prompt=ask["prompt"], max_tokens=12, seed=ask["seed"], logprobs=2,
              extra_body={"return_token_ids": True, "return_entropies": True})
whole = client.completions.create(**common)
choice = whole.choices[0]
out["ids"] = choice.token_ids
out["logprobs"] = choice.logprobs.token_logprobs
out["text"] = choice.text
out["usage"] = [whole.usage.prompt_tokens, whole.usage.completion_tokens]
out["weights"] = whole.ropewalk["weights"]
streamed = list(client.completions.create(stream=True, stream_options={"include_usage": True}, **common))
out["streamed"] = "".join(c.choices[0].text for c in streamed if c.choices)
out["streamed_usage"] = streamed[-1].usage.completion_tokens

# Chats: whole and streamed, with log-probabilities.
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is the answer?"}]
common = dict(model="tiny", messages=messages, max_completion_tokens=12, seed=ask["seed"], logprobs=True,
              top_logprobs=3)
whole = client.chat.completions.create(extra_body={"return_token_ids": True}, **common)
out["chat_prompt"] = whole.prompt_token_ids
out["chat_ids"] = whole.choices[0].token_ids
out["chat"] = whole.choices[0].message.content
out["chat_logprobs"] = [t.logprob for t in whole.choices[0].logprobs.content]
out["chat_top"] = [len(t.top_logprobs) for t in whole.choices[0].logprobs.content]
out["chat_streamed"] = "".join(
    c.choices[0].delta.content or "" for c in client.chat.completions.create(stream=True, **common))

# Tools, from a model that always calls one.
declared = [{"type": "function", "function": {"name": "add", "description": "adds", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}}]
common = dict(model="caller", messages=messages, tools=declared, tool_choice="auto")
whole = tools.chat.completions.create(**common).choices[0]
out["finish"] = whole.finish_reason
out["said"] = whole.message.content
out["calls"] = [[c.function.name, json.loads(c.function.arguments)] for c in whole.message.tool_calls]
streamed = []
for chunk in tools.chat.completions.create(stream=True, **common):
    for c in chunk.choices[0].delta.tool_calls or []:
        streamed.append([c.index, c.function.name, json.loads(c.function.arguments)])
out["streamed_calls"] = streamed
turn = messages + [whole.message.model_dump(exclude_none=True),
                   {"role": "tool", "tool_call_id": whole.message.tool_calls[0].id, "content": "42"}]
tools.chat.completions.create(model="caller", messages=turn, tools=declared)

# Errors arrive as the client's own types, with the field.
try:
    client.completions.create(model="tiny", prompt="a", temperature=-1)
except openai.BadRequestError as e:
    out["error"] = e.param
try:
    client.completions.create(model="other", prompt="a")
except openai.NotFoundError as e:
    out["missing"] = e.code
try:
    openai.OpenAI(base_url=ask["url"] + "/v1", api_key="wrong", max_retries=0).models.list()
except openai.AuthenticationError as e:
    out["denied"] = e.code

json.dump(out, sys.stdout)
