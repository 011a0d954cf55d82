// The choice of what tokens are coloured by: the quantities that the record has of what is shown.
import {el} from "./dom.js";
import {go, parameters} from "./address.js";
import {greatest, has, named, quantities, scale} from "./colours.js";

// chosen is the key of the quantity that the address or else the record suggests.
export const chosen = (all) => parameters().get("colour") ?? (has(all, quantities[0]) ? "logprob" : "advantage");

const choice = (key, name, {checked, disabled, title}) =>
  el(
    "label",
    {class: disabled ? "absent" : "", title},
    el("input", {
      type: "radio",
      name: "colour",
      value: key,
      checked,
      disabled,
      onchange: () => go({colour: key}, {replace: true}),
    }),
    name,
  );

// switches draws the choice. What the record lacks is not offered; a link may ask for it all the same.
export const switches = (all) => {
  const q = named(chosen(all));
  const radios = quantities
    .filter((x) => !x.rare || x === q || has(all, x))
    .map((x) => {
      const there = has(all, x);
      return choice(x.key, x.name, {checked: x === q, disabled: !there, title: there ? x.about : x.missing(all)});
    });
  return el(
    "div",
    {class: "switch", role: "radiogroup", "aria-label": "colour tokens by"},
    el("span", {}, "Colour by"),
    radios,
    choice("none", "nothing", {checked: !q}),
    q && has(all, q) ? scale(q, greatest(all)) : el("span", {class: "missing"}, q?.missing(all) ?? ""),
  );
};
