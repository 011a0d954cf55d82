// The rows of the list and their head.
import {el, number} from "./dom.js";
import {go, parameters} from "./address.js";
import {fate, status} from "./badges.js";

export const rowHeight = 30; // pixels, as in the style sheet

// name, title, wide: only while no trajectory is open
const columns = [
  ["step", "step"],
  ["trajectory_id", "trajectory"],
  ["level", "level"],
  ["problem", "problem", true],
  ["answer", "answer"],
  ["gold", "gold", true],
  ["reward", "reward"],
  ["fate", "selection"],
  ["turns", "turns", true],
  ["statuses", "calls"],
  ["tokens", "tokens", true],
  ["finish", "end", true],
];

const cell = {
  reward: (row) =>
    el("span", {class: row.reward === null ? "" : row.reward > 0 ? "plus" : "minus"}, number(row.reward)),
  trajectory_id: (row) => row.trajectory_id.replace(/^evaluation\//, ""),
  fate: (row) => fate(row.fate),
  statuses: (row) =>
    el(
      "span",
      {class: "statuses"},
      row.statuses.slice(0, 8).map(status),
      row.statuses.length > 8 && `+${row.statuses.length - 8}`,
    ),
  answer: (row) => el("span", {class: row.success ? "right" : ""}, row.answer ?? "–"),
};

// drawRow draws the row of the list at a place.
export const drawRow = (row, i, selected) => {
  const out = el(
    "div",
    {
      class: "row",
      role: "row",
      data: {row: i, id: row.trajectory_id},
      "aria-rowindex": i + 2,
      "aria-selected": row.trajectory_id === parameters().get("t") ? "true" : "false",
    },
    columns.map(([name, , wide]) =>
      el(
        "span",
        {
          class: `cell of-${name}${wide ? " wide" : ""}`,
          role: "gridcell",
          title: name === "problem" ? row.problem : null,
        },
        cell[name] ? cell[name](row) : number(row[name]),
      ),
    ),
  );
  out.style.transform = `translateY(${i * rowHeight}px)`;
  if (selected) out.classList.add("at");
  return out;
};

// drawHead draws the names of the columns, by which a click sorts.
export const drawHead = (root) => {
  const sort = parameters().get("sort") ?? "-step";
  root.replaceChildren(
    ...columns.map(([name, title, wide]) => {
      const up = sort === name,
        down = sort === "-" + name;
      return el(
        "span",
        {
          class: `cell of-${name}${wide ? " wide" : ""}`,
          role: "columnheader",
          "aria-sort": up ? "ascending" : down ? "descending" : "none",
        },
        el(
          "button",
          {
            type: "button",
            title: `sort by ${name}`,
            onclick: () => go({sort: down ? name : name === "step" || up ? null : "-" + name}),
          },
          title,
          up ? " ↑" : down ? " ↓" : "",
        ),
      );
    }),
  );
};
