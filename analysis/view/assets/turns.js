// A turn: what the policy wrote, and what its calls and the environment answered.
import {el} from "./dom.js";
import {status} from "./badges.js";
import {tokens} from "./tokens.js";

const part = ({name, text}) => el("div", {class: "part"}, el("span", {}, name), long(text));

// long folds a text that would push everything else off the page.
const long = (text) => {
  const lines = text.split("\n");
  if (lines.length <= 24 && text.length <= 3000) return el("pre", {}, text);
  const head = lines.slice(0, 12).join("\n").slice(0, 1500);
  return el(
    "details",
    {class: "long"},
    el(
      "summary",
      {},
      el("pre", {}, head),
      el("small", {}, `… all ${text.length.toLocaleString("en-US")} characters`),
    ),
    el("pre", {}, text),
  );
};

const call = (c) =>
  el(
    "div",
    {class: "call" + (c.status === "ok" ? "" : " failed")},
    el(
      "span",
      {class: "turn-name"},
      status(c.status),
      ` ${c.name}: ${c.status.replaceAll("_", " ")}`,
      c.exit ? `, exit code ${c.exit}` : "",
    ),
    c.parts.map(part),
  );

export const turn = (t) =>
  el(
    "div",
    {class: "turn", data: {number: t.number}},
    el(
      "span",
      {class: "turn-name"},
      `turn ${t.number}`,
      t.summary && " · summary",
      t.finish === "length" && " · cut at the token limit",
    ),
    t.broken && el("p", {class: "complaint"}, t.broken),
    tokens(t.pieces),
    t.calls.map(call),
    t.environment?.length > 0 && el("div", {class: "call"}, t.environment.map(part)),
  );
