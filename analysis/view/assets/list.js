// The list of trajectories: rows that are fetched as they come into sight.
import {ask, by, count, el, number, percent, plural} from "./dom.js";
import {filter, go, parameters} from "./address.js";
import * as filters from "./filters.js";
import {drawHead, drawRow, rowHeight} from "./rows.js";

const pageRows = 100;

let run = null; // the state of the run
let state = null; // of the part of it that the address names
let shown = null; // the filter of the rows on the page, as text
let total = 0;
let pages = new Map(); // offset → rows, or a promise of them
let at = -1; // the selected row
let known = 0; // trajectories of the run when the rows were read
let asking = null; // the request for a filter
let summary = null; // of the rows on the page
let filling = true; // finished steps are still being read
let stale = false; // rows have come while the list was hidden

const asRows = (answer) =>
  answer.rows.map((values) => Object.fromEntries(answer.columns.map((c, i) => [c, values[i]])));

// page returns the rows from an offset, if they are here, and else fetches them.
const page = (offset) => {
  const have = pages.get(offset);
  if (have) return Array.isArray(have) ? have : null;
  const mine = pages;
  const query = filter();
  query.set("offset", offset);
  query.set("limit", pageRows);
  mine.set(
    offset,
    ask("trajectories", query).then(
      (answer) => {
        mine.set(offset, asRows(answer));
        if (mine === pages) draw();
      },
      () => mine.delete(offset),
    ),
  );
  return null;
};

const rowAt = (i) => page(Math.floor(i / pageRows) * pageRows)?.[i % pageRows] ?? null;

const draw = () => {
  const box = by("list");
  const first = Math.max(0, Math.floor((box.scrollTop - rowHeight) / rowHeight) - 5);
  const last = Math.min(total, first + Math.ceil(box.clientHeight / rowHeight) + 10);
  by("rows").style.height = total * rowHeight + "px";
  const out = [];
  for (let i = first; i < last; i++) {
    const row = rowAt(i);
    if (row) out.push(drawRow(row, i, i === at));
  }
  by("rows").replaceChildren(...out);
};

// load asks for the filtered list from its beginning, and keeps the place where a live run has gone on.
const load = async (keepPlace) => {
  asking?.abort();
  const query = filter();
  const wanted = query.toString();
  const mine = Object.assign(new AbortController(), {wanted});
  asking = mine;
  stale = false;
  const began = performance.now();
  by("list").dataset.busy = "true";
  try {
    const reader = keepPlace && at >= 0 ? rowAt(at)?.trajectory_id : parameters().get("t"); // where the reader is
    const page = [...query, ["offset", "0"], ["limit", String(pageRows)], ["find", reader ?? ""]];
    const answer = await ask("trajectories", page, mine.signal);
    pages = new Map([[0, asRows(answer)]]);
    total = answer.summary.count;
    known = answer.all;
    at = answer.place ?? -1;
    by("rows").style.height = total * rowHeight + "px";
    if (!keepPlace) by("list").scrollTop = 0;
    if (at >= 0) bring(at, !keepPlace);
    by("complaint").hidden = true;
    by("new").hidden = true;
    summary = answer.summary;
    summarise();
    draw();
    by("list").dataset.busy = "false";
    by("list").dataset.loaded = wanted || "all";
    by("list").dataset.milliseconds = Math.round(performance.now() - began);
  } catch (error) {
    if (error.name === "AbortError") return;
    by("complaint").textContent = error.message;
    by("complaint").hidden = false; // the rows of the filter before stay, greyed
  }
  shown = wanted;
  asking = null; // a later question would have ended this one
  if (by("complaint").hidden) refresh();
};

const evaluation = () => parameters().get("part") === "evaluation";

const missing = () => (evaluation() ? "No evaluation has recorded its episodes yet." : "No step is done yet.");

const summarise = () => {
  const s = summary;
  const filtered = filters.filtered();
  by("summary").replaceChildren(
    ...(total === 0
      ? [state?.rows ? "No trajectory passes the filters." : missing()]
      : [
          el("b", {}, count(total)),
          filtered && state
            ? ` of ${plural(state.rows, "trajectory")}`
            : total === 1
              ? " trajectory"
              : " trajectories",
          ...(evaluation() ? [] : [" · mean reward ", el("b", {}, number(s.reward))]),
          " · success ",
          el("b", {}, percent(s.success)),
          ...(evaluation() ? [] : [" · kept ", el("b", {}, count(s.kept))]),
        ]),
  );
  by("reset").hidden = !filtered;
};

// part is the part of a state that the address names.
const part = (of) => of && {...of, ...(evaluation() ? of.held : {})};

export const show = () => {
  state = part(run);
  drawHead(by("head"));
  filters.show(state?.facets);
  by("trajectories").classList.toggle("reading", parameters().has("t"));
  const wanted = filter().toString();
  if (wanted !== (asking?.wanted ?? shown)) load(false);
  else if (stale) load(true);
  else draw();
};

// refresh shows new trajectories at once, unless the reader is somewhere in the list of a run that goes on.
const refresh = () => {
  if (asking || shown === null || !state || state.rows <= known) return;
  if (by("trajectories").hidden) stale = true;
  else if (filling || (by("list").scrollTop === 0 && !parameters().has("t"))) load(true);
  else {
    by("new").textContent = `Show ${plural(state.rows - known, "new trajectory")}`;
    by("new").hidden = false;
  }
};

export const heard = (next) => {
  filling = !state?.complete;
  run = next;
  state = part(run);
  filters.offer(state.facets);
  if (summary) summarise();
  refresh();
};

// bring scrolls a row into sight: no further than needed, or to the middle.
const bring = (i, middle) => {
  const box = by("list");
  const top = i * rowHeight;
  const room = box.clientHeight - 2 * rowHeight; // without the head
  if (middle && top > room) box.scrollTop = top - room / 2;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top > box.scrollTop + room) box.scrollTop = top - room;
};

const select = (i) => {
  if (total === 0) return;
  at = Math.max(0, Math.min(total - 1, i));
  bring(at);
  draw();
  if (parameters().has("t")) open();
};

export const step = (by) => select(at < 0 ? (by > 0 ? 0 : total - 1) : at + by);

export const open = async () => {
  if (at < 0) return;
  rowAt(at);
  await pages.get(Math.floor(at / pageRows) * pageRows);
  const row = rowAt(at);
  if (row) go({t: row.trajectory_id}, {replace: parameters().has("t")});
};

export const start = () => {
  filters.start();
  by("list").addEventListener("scroll", () => requestAnimationFrame(draw));
  new ResizeObserver(draw).observe(by("list"));
  by("rows").addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (!row) return;
    at = Number(row.dataset.row);
    open();
  });
  by("new").addEventListener("click", () => load(false));
};
