// What the record says of a trajectory as a whole.
import {el, number} from "./dom.js";
import {fate} from "./badges.js";

const fact = (name, value, note) =>
  el("div", {}, el("dt", {}, name), el("dd", {}, value, note && el("small", {}, " " + note)));

// runName is the run of this page, whose address begins with it.
const runName = () => location.pathname.split("/")[1];

export const facts = (c) => {
  const r = c.row;
  const held = r.part === "evaluation";
  return el(
    "dl",
    {class: "facts"},
    held
      ? fact("held out", fate(r.fate), r.greedy ? "greedy" : "sampled")
      : [
          fact(
            "reward",
            el("b", {class: r.reward === null ? "" : r.reward > 0 ? "plus" : "minus"}, number(r.reward)),
            r.verdict?.replaceAll("_", " "),
          ),
          fact("selection", fate(r.fate), r.kept ? `weight ${number(r.weight)}, counted ${r.count}×` : null),
        ],
    fact("answer", el("span", {class: r.success ? "right" : ""}, r.answer ?? "none"), `gold ${r.gold ?? "–"}`),
    c.advantage !== null && fact("advantage", number(c.advantage), "mean, before the weight"),
    fact("level", number(r.level)),
    r.problem_id &&
      fact(
        "problem",
        el("a", {href: "/problems?" + new URLSearchParams({run: runName(), problem: r.problem_id})}, "all attempts"),
      ),
    fact("tokens", number(r.tokens), `${number(r.response_tokens)} written`),
    fact("calls", number(r.tool_calls), r.tool_errors ? `${r.tool_errors} failed` : null),
    fact("end", r.finish?.replaceAll("_", " ") ?? "–"),
    !held && fact("group", `mean ${number(r.group_mean)}`, `variance ${number(r.group_variance)}`),
    c.notes?.map((n) => fact(n.name, n.text)),
  );
};
