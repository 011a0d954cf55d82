// Small marks that the list and the trajectory share.
import {el} from "./dom.js";

const fates = (text) => {
  if (text === "kept" || text === "solved") return "kept";
  return text.startsWith("masked") ? "masked" : "dropped";
};

// fate is drawn as a badge: what was learnt from, and why not.
export const fate = (text) =>
  el(
    "span",
    {class: "fate " + fates(text), title: text},
    text.replaceAll("_", " "),
  );

export const status = (text) => el("i", {class: "status " + (text === "ok" ? "good" : "bad"), title: text});
