// Starts the page: hears of the run's state, switches between views and takes keys.
import {ask, by, el, plural} from "./dom.js";
import {go, onMove, parameters, tell} from "./address.js";
import * as list from "./list.js";
import * as closeup from "./closeup.js";
import * as figures from "./figures.js";
import * as filters from "./filters.js";

const views = {trajectories: by("trajectories"), figures: by("figures")};
const view = () => (parameters().get("view") === "figures" ? "figures" : "trajectories");

const moved = (p) => {
  for (const [name, root] of Object.entries(views)) root.hidden = name !== view();
  for (const tab of document.querySelectorAll("[data-view]")) {
    tab.setAttribute("aria-current", tab.dataset.view === view() ? "page" : "false");
  }
  if (view() === "figures") figures.show();
  else {
    list.show(p);
    closeup.show(p);
  }
};

let state = null;
const heard = (next) => {
  state = next;
  const run = next.run;
  document.title = `${run.run} · ropewalk view`;
  by("run").textContent = run.run;
  by("problems").href = "/problems?" + new URLSearchParams({run: run.run});
  by("workflow").href = next.workflow;
  by("workflow").hidden = next.workflow === "";
  const planned = Math.max(run.steps_planned, run.steps_done);
  const done = run.evaluating ? `${run.evaluating.measured} of ${plural(run.evaluating.asked, "problem")}`
    : `step ${run.steps_done}${planned > run.steps_done ? " of " + planned : ""}`;
  const failure = run.failure_kind ? ` (${run.failure_kind})` : "";
  const parts = [run.status.replaceAll("_", " ") + failure, done, plural(next.rows, "trajectory")];
  if (next.waiting > 0) parts.push(`reading ${plural(next.waiting, "more step")}`);
  by("progress").textContent = parts.join(" · ");
  by("progress").title = run.reason ?? "";
  by("progress").dataset.status = run.status;
  by("progress").dataset.complete = next.complete;
  const problem = [next.problem, next.gap].filter(Boolean).join("\n");
  by("problem").textContent = problem;
  by("problem").hidden = problem === "";
  list.heard(next);
  if (view() === "trajectories") closeup.heard();
  figures.heard(next, view() === "figures");
};

const listen = () => {
  const events = new EventSource("api/events");
  events.onmessage = (event) => heard(JSON.parse(event.data));
  events.onerror = () => {
    by("problem").textContent =
      "The server does not answer: `ropewalk view` has ended, or the link's token is another one.";
    by("problem").hidden = false;
  };
};

const keys = [
  ["j  ↓", "the next trajectory", ["j", "ArrowDown"], () => list.step(1)],
  ["k  ↑", "the previous trajectory", ["k", "ArrowUp"], () => list.step(-1)],
  ["Enter", "open the trajectory", ["Enter", "o"], () => list.open()],
  ["g", "its group side by side, or back", ["g"], () => closeup.toggleGroup()],
  ["l  →", "the next trajectory of the group", ["l", "ArrowRight"], () => closeup.sibling(1)],
  ["h  ←", "the previous one", ["h", "ArrowLeft"], () => closeup.sibling(-1)],
  [
    "1 … 7",
    "colour by log-probability, entropy, ratio, reference, advantage, mask, value",
    ["1", "2", "3", "4", "5", "6", "7"],
    (key) => paint(Number(key) - 1),
  ],
  ["0", "no colours", ["0"], () => paint(-1)],
  ["/", "search", ["/"], () => filters.focus("q")],
  ["w", "SQL where", ["w"], () => filters.focus("where")],
  ["x", "clear the filters", ["x"], () => filters.clear()],
  ["t  f", "trajectories, figures", ["t", "f"], (key) => go({view: key === "f" ? "figures" : null})],
  ["y", "copy the link of what is shown", ["y"], () => copyLink()],
  ["Esc", "close, leave a field", ["Escape"], () => closeup.close()],
  ["?", "this help", ["?"], () => openHelp()],
];

const paint = (i) => {
  const why = closeup.colour(i);
  if (why) flash(why);
};

const copyLink = async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    flash("link copied");
  } catch {
    flash("the browser does not let the page copy; the address bar holds the link");
  }
};

let flashed;
const flash = (text) => {
  const tip = by("tip");
  tip.textContent = text;
  tip.className = "tip flash";
  tip.hidden = false;
  clearTimeout(flashed);
  flashed = setTimeout(() => (tip.hidden = true), 1200 + 25 * text.length);
};

const openHelp = async () => {
  by("help").showModal();
  if (by("columns").childElementCount > 0) return;
  for (const c of await ask("columns")) {
    by("columns").append(
      el("div", {}, el("dt", {class: "code"}, c.name, el("small", {}, c.type)), el("dd", {}, c.doc)),
    );
  }
};

const press = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || by("help").open) return;
  const field = event.target.closest?.("input, select, textarea");
  if (field) {
    if (event.key === "Escape") {
      event.preventDefault(); // a search field would empty itself
      field.blur();
    }
    return;
  }
  if (event.key === "Enter" && event.target.closest?.("button, a, summary")) return;
  const key = keys.find(([, , names]) => names.includes(event.key));
  if (!key) return;
  if (view() === "figures" && !["t", "f", "y", "?"].includes(event.key)) return;
  event.preventDefault();
  key[3](event.key);
};

for (const tab of document.querySelectorAll("[data-view]")) {
  tab.addEventListener("click", () => go({view: tab.dataset.view === "figures" ? "figures" : null}));
}
by("help-open").addEventListener("click", openHelp);
by("keys").append(
  ...keys.map(([names, what]) => el("div", {}, el("dt", {}, el("kbd", {}, names)), el("dd", {}, what))),
);
document.addEventListener("keydown", press);
onMove(moved);
list.start();
closeup.start();
tell();
listen();
