// The tokens of the turns on the page: their colours, and the numbers that the pointer shows.
import {by, el} from "./dom.js";
import {paint, tell} from "./colours.js";

let turns = []; // {spans, pieces}

// clear forgets the turns that are no longer on the page.
export const clear = () => (turns = []);

export const tokens = (pieces) => {
  const spans = pieces.text.map((text, i) =>
    el("span", {class: pieces.written[i] ? "piece" : "piece context", data: {i}}, text),
  );
  const turn = turns.push({spans, pieces}) - 1;
  return el("pre", {class: "tokens", data: {turn}}, spans);
};

// colour colours all turns by a quantity; most is the greatest advantage among them.
export const colour = (quantity, most) => {
  for (const {spans, pieces} of turns) paint(spans, pieces, quantity, most);
};

const point = (event) => {
  const tip = by("tip");
  const piece = event.target.closest?.(".piece");
  if (!piece) {
    if (!tip.classList.contains("flash")) tip.hidden = true;
    return;
  }
  const {pieces} = turns[Number(piece.parentElement.dataset.turn)];
  tip.className = "tip";
  tip.replaceChildren(
    ...tell(pieces, Number(piece.dataset.i)).map(([name, value]) =>
      el("div", {}, el("span", {}, name), el("b", {}, value)),
    ),
  );
  tip.hidden = false;
  const box = piece.getBoundingClientRect();
  const left = Math.min(Math.max(8, event.clientX - 20), window.innerWidth - tip.offsetWidth - 8);
  const above = box.top - tip.offsetHeight - 6;
  tip.style.left = left + "px";
  tip.style.top = (above > 4 ? above : Math.min(box.bottom, event.clientY + 24) + 6) + "px";
};

export const start = (root) => {
  root.addEventListener("mouseover", point);
  root.addEventListener("mouseleave", () => (by("tip").hidden = true));
};
