// The fields above the list. What they say goes into the address, from which the list is asked for.
import {by, count, el} from "./dom.js";
import {filterKeys, go, parameters} from "./address.js";

// The list is asked for when the keys have paused so long, in milliseconds. A condition that is half typed is an error,
// so it gets more time. A question whose answer is no longer wanted ends at once.
const pause = 40;
const pauseOfSQL = 120;

// offer draws the choices of several values, with how many trajectories have each.
export const offer = (facets) => {
  for (const root of document.querySelectorAll(".choice")) {
    const {key, name} = root.dataset;
    const chosen =
      key === "level" ? (parameters().get(key) ?? "").split(",").filter(Boolean) : parameters().getAll(key);
    const all = facets?.[key] ?? [];
    const signature = JSON.stringify([chosen, all]);
    if (root.dataset.signature === signature) continue;
    root.dataset.signature = signature;
    const wasOpen = root.querySelector("details")?.open;
    const label =
      chosen.length === 0 ? "all" : chosen.length === 1 ? chosen[0].replaceAll("_", " ") : `${chosen.length} chosen`;
    root.replaceChildren(
      el("span", {class: "label"}, name),
      el(
        "details",
        {open: wasOpen},
        el("summary", {class: chosen.length ? "chosen" : ""}, label),
        el(
          "div",
          {class: "menu"},
          all.map(({value, count: n}) =>
            el(
              "label",
              {},
              el("input", {
                type: "checkbox",
                value: String(value),
                checked: chosen.includes(String(value)),
                onchange: () => {
                  const values = [...root.querySelectorAll("input:checked")].map((box) => box.value);
                  go({[key]: key === "level" ? values.join(",") : values});
                },
              }),
              el("span", {}, String(value).replaceAll("_", " ") || "–"),
              el("small", {}, count(n)),
            ),
          ),
          all.length === 0 && el("p", {class: "note"}, "nothing to choose from yet"),
        ),
      ),
    );
  }
};

const fillFields = () => {
  for (const input of by("filters").querySelectorAll("[name]")) {
    const value = parameters().get(input.name) ?? "";
    if (document.activeElement !== input) input.value = value;
    input.classList.toggle("set", value !== "");
  }
};

// show draws the fields as the address says; facets are the values to choose from.
export const show = (facets) => {
  offer(facets);
  fillFields();
};

// filtered reports whether the address leaves episodes of its part out.
export const filtered = () => narrowing().some((key) => parameters().has(key));

const narrowing = () => filterKeys.filter((key) => key !== "part");

export const focus = (name) => {
  const field = by("filters").elements[name];
  field.focus();
  field.select();
};

export const clear = () => {
  for (const input of by("filters").querySelectorAll("input[name]")) input.value = "";
  go(Object.fromEntries(narrowing().map((key) => [key, null])));
};

export const start = () => {
  let typed;
  const form = by("filters");
  const enter = () => {
    clearTimeout(typed);
    go(Object.fromEntries([...form.querySelectorAll("[name]")].map((i) => [i.name, i.value.trim()])), {
      replace: true,
    });
  };
  form.addEventListener("input", (event) => {
    if (!event.target.name) return;
    clearTimeout(typed);
    typed = setTimeout(enter, event.target.name === "where" ? pauseOfSQL : pause);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    enter();
  });
  by("reset").addEventListener("click", clear);
  document.addEventListener("click", (event) => {
    // an open menu closes when the reader goes elsewhere
    for (const menu of document.querySelectorAll(".choice details[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
};
