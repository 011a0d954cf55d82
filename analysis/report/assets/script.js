"use strict";
// Colours the tokens by the quantity that the switch, or the address (#colour=entropy), selects.
(() => {
  const episodes = document.getElementById("episodes");
  if (!episodes) return;
  const choose = (by) => {
    episodes.dataset.colour = by;
    for (const scale of document.querySelectorAll(".scale")) scale.hidden = scale.dataset.for !== by;
    for (const input of document.querySelectorAll("input[name=colour]")) input.checked = input.value === by;
  };
  const fromAddress = () => {
    const match = /^#colour=(logprob|entropy|advantage|none)$/.exec(location.hash);
    if (match) choose(match[1]);
  };
  for (const input of document.querySelectorAll("input[name=colour]")) {
    input.addEventListener("change", () => choose(input.value));
  }
  window.addEventListener("hashchange", fromAddress);
  choose(episodes.dataset.colour);
  fromAddress();
})();
