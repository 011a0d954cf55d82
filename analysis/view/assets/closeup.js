// A trajectory turn by turn, alone or next to the others of its group.
import {ask, by, el, number} from "./dom.js";
import {go, parameters} from "./address.js";
import {fate} from "./badges.js";
import {greatest, has, named, quantities} from "./colours.js";
import {facts} from "./facts.js";
import {chosen, switches} from "./switches.js";
import * as tokens from "./tokens.js";
import {turn} from "./turns.js";

let shown = ""; // what is on the page
let current = []; // its close-ups
let asking = null;
let news = 0; // how often the run has been heard of

const wantsGroup = () => parameters().get("group") === "1";

const header = (c) => {
  const at = c.group.indexOf(c.id);
  return el(
    "div",
    {class: "title"},
    el(
      "div",
      {class: "steps"},
      el(
        "button",
        {
          type: "button",
          class: "quiet",
          title: "the previous of the group (h)",
          disabled: at <= 0,
          onclick: () => sibling(-1),
        },
        "‹",
      ),
      el("span", {class: "code"}, c.id),
      el(
        "button",
        {
          type: "button",
          class: "quiet",
          title: "the next of the group (l)",
          disabled: at >= c.group.length - 1,
          onclick: () => sibling(1),
        },
        "›",
      ),
      el("small", {}, `${at + 1} of ${c.group.length} in its group`),
    ),
    el(
      "div",
      {class: "steps"},
      c.group.length > 1 &&
        el(
          "button",
          {
            type: "button",
            id: "group",
            "aria-pressed": String(wantsGroup()),
            title: "the group side by side (g)",
            onclick: toggleGroup,
          },
          wantsGroup() ? "This one alone" : "Side by side",
        ),
      el("button", {type: "button", class: "quiet", id: "close", title: "close (Esc)", onclick: close}, "✕"),
    ),
  );
};

// asked is what the policy was asked: a question, or in several lines what the environment showed first.
const asked = (text) => el(text.includes("\n") ? "pre" : "p", {class: "asked"}, text);

const alone = (c) => [
  facts(c),
  c.turns.length === 0 && el("p", {class: "why"}, c.row.excluded ?? "The record holds no turns of it."),
  c.turns.map(turn),
];

// sideBySide has a column for each trajectory of the group and a line for each turn.
const sideBySide = (all) => {
  const grid = el("div", {class: "group", id: "side"});
  grid.style.setProperty("--members", all.length);
  const id = parameters().get("t");
  for (const c of all) {
    const r = c.row;
    grid.append(
      el(
        "div",
        {class: "member" + (c.id === id ? " at" : ""), data: {id: c.id}},
        el(
          "button",
          {type: "button", class: "code quiet", title: "open it alone", onclick: () => go({t: c.id, group: null})},
          c.id.split("/").at(-1),
        ),
        el("b", {class: r.reward === null ? "" : r.reward > 0 ? "plus" : "minus"}, number(r.reward)),
        fate(r.fate),
        el("small", {}, `answer ${r.answer ?? "none"} · ${number(r.tokens)} tokens`),
        c.advantage !== null && el("small", {}, `advantage ${number(c.advantage)}`),
      ),
    );
  }
  const deepest = Math.max(0, ...all.map((c) => c.turns.length));
  for (let i = 0; i < deepest; i++) {
    for (const c of all) grid.append(el("div", {class: "slot"}, c.turns[i] ? turn(c.turns[i]) : null));
  }
  return grid;
};

const recolour = () => {
  const q = named(chosen(current));
  tokens.colour(q, greatest(current));
  by("closeup").dataset.colour = q ? q.key : "none";
  by("closeup").querySelector(".switch")?.replaceWith(switches(current));
};

const draw = (all) => {
  current = all;
  tokens.clear();
  const root = by("closeup");
  const c = all.find((x) => x.id === parameters().get("t")) ?? all[0];
  root.replaceChildren(
    header(c),
    asked(c.asked || (c.row.problem ?? "")),
    switches(current),
    ...[wantsGroup() ? sideBySide(all) : alone(c)].flat(3).filter(Boolean),
  );
  root.dataset.id = c.id;
  root.dataset.members = all.length;
  recolour();
  if (wantsGroup()) root.querySelector(".member.at")?.scrollIntoView({inline: "nearest", block: "nearest"});
};

export const show = async (p) => {
  const id = p.get("t");
  const root = by("closeup");
  by("trajectories").classList.toggle("wide", Boolean(id) && wantsGroup());
  root.hidden = !id;
  if (!id) {
    shown = "";
    return;
  }
  const key = id + (wantsGroup() ? " group" : "");
  if (key === shown) {
    recolour();
    return;
  }
  shown = key;
  const known = news;
  asking?.abort();
  asking = new AbortController();
  root.dataset.busy = "true";
  try {
    const all = wantsGroup()
      ? await ask("group", {id: id.split("/").slice(0, -1).join("/")}, asking.signal)
      : [await ask("trajectory", {id}, asking.signal)];
    draw(all);
    root.scrollTop = 0;
  } catch (error) {
    if (error.name === "AbortError") return;
    shown = ""; // so that the next change of the address asks again
    current = [];
    root.replaceChildren(
      el(
        "div",
        {class: "title"},
        el("span", {}),
        el("button", {type: "button", class: "quiet", onclick: close}, "✕"),
      ),
      el("p", {class: "complaint"}, error.message),
    );
  } finally {
    root.dataset.busy = "false";
  }
  if (news > known && shown === "") show(parameters()); // the answer is older than the news
};

// heard asks again for what was not in the index yet.
export const heard = () => {
  news++;
  if (shown === "") show(parameters());
};

export const toggleGroup = () => {
  if (parameters().has("t")) go({group: wantsGroup() ? null : "1"});
};

export const sibling = (step) => {
  const id = parameters().get("t");
  const group = current.find((c) => c.id === id)?.group ?? [];
  const next = group[group.indexOf(id) + step];
  if (id && next) go({t: next}, {replace: true});
};

export const close = () => go({t: null, group: null});

// colour colours by the quantity of a number, and returns why it cannot.
export const colour = (i) => {
  const q = quantities[i];
  if (!parameters().has("t")) return "";
  if (q && !has(current, q)) return q.missing(current);
  go({colour: q?.key ?? "none"}, {replace: true});
  return "";
};

export const start = () => tokens.start(by("closeup"));
