// Shows the report's figures, drawn again after each step.
import {ask, by, el} from "./dom.js";

let asked = ""; // progress for which the shown figures were asked
let progress = "";
const open = new Set(); // figures whose SQL is open

const parsed = (text) => {
  const svg = new DOMParser().parseFromString(
    text.replace("<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `),
    "image/svg+xml",
  ).documentElement;
  return document.importNode(svg, true);
};

const table = (t) =>
  el(
    "table",
    {},
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        t.Columns.map((c) => el("th", {}, c)),
      ),
    ),
    el(
      "tbody",
      {},
      t.Rows.map((row) =>
        el(
          "tr",
          {},
          row.map((cell) => el("td", {}, cell)),
        ),
      ),
    ),
  );

const figure = (f) => {
  const out = el("figure", {id: "figure-" + f.id, class: f.empty && "empty"}, el("figcaption", {}, f.title));
  if (f.empty) out.append(el("p", {class: "why"}, f.empty));
  else {
    if (f.legend?.length) {
      out.append(
        el(
          "div",
          {class: "legend"},
          f.legend.map((k) => el("span", {class: "key"}, el("i", {class: `${k.Mark} s${k.Color}`}), k.Name)),
        ),
      );
    }
    if (f.svg) out.append(parsed(f.svg));
    if (f.table) out.append(table(f.table));
    out.append(el("p", {class: "note"}, f.note));
  }
  if (f.questions?.length) {
    const details = el(
      "details",
      {open: open.has(f.id)},
      el("summary", {}, "SQL"),
      f.questions.map((q) => el("pre", {class: "sql"}, q.sql)),
    );
    details.addEventListener("toggle", () => (details.open ? open.add(f.id) : open.delete(f.id)));
    out.append(details);
  }
  return out;
};

const tile = (t) =>
  el(
    "div",
    {class: "tile"},
    el("span", {class: "tile-name"}, t.Name),
    el("span", {class: "tile-value"}, t.Value),
    el("span", {class: "tile-note"}, t.Note),
  );

const draw = (page) => {
  const root = by("figures");
  const contents = el(
    "nav",
    {class: "contents", "aria-label": "sections"},
    page.sections.map((s) =>
      el(
        "a",
        {
          href: "#" + s.id,
          onclick: (event) => {
            event.preventDefault();
            by(s.id).scrollIntoView({behavior: "smooth"});
          },
        },
        s.title,
      ),
    ),
  );
  root.replaceChildren(
    el("div", {class: "tiles"}, page.tiles.map(tile)),
    contents,
    ...page.sections.map((s) =>
      el("section", {id: s.id}, el("h2", {}, s.title), el("div", {class: "figures"}, s.figures.map(figure))),
    ),
  );
  root.dataset.steps = page.steps_done;
};

export const show = async () => {
  if (progress === "" || asked === progress) return;
  asked = progress;
  const root = by("figures");
  if (root.childElementCount === 0) root.replaceChildren(el("p", {class: "why"}, "Drawing the figures…"));
  root.dataset.asked = asked;
  try {
    const page = await ask("figures");
    if (root.dataset.asked === asked) draw(page);
  } catch (error) {
    root.replaceChildren(el("p", {class: "why"}, "The figures cannot be drawn: " + error.message));
  }
};

export const heard = (state, shown) => {
  progress = `${state.run.status} ${state.run.steps_done} of ${state.run.steps_planned}`;
  if (shown) show();
};
