// The quantities by which tokens are coloured. Each maps a piece's number to a shade from 0 to 1 and a tone.
import {el, number} from "./dom.js";

const sided = (x, most) => [Math.min(1, Math.abs(x) / most), x < 0 ? "minus" : "plus"];

// inBatch reports whether the update learnt from one of the trajectories, for which alone models compute outputs.
const inBatch = (all) => all.some((c) => c.row.kept && !c.row.fate.startsWith("masked"));

const dropped =
  "Outputs of other models are computed for trajectories in the batch alone, and this one is not in it.";

// about says what the number is; missing, of what is shown, why the record does not have it.
export const quantities = [
  {
    key: "logprob",
    name: "log-probability",
    about: "logarithm of the probability that the sampling policy gave the token",
    shade: (x) => [Math.min(1, -x / 4), "surprise"],
    ends: ["certain", "−4 nats or less"],
    tones: ["surprise"],
    missing: () => "The record has no log-probabilities of these tokens.",
    told: (x) => `${number(x)} (${(100 * Math.exp(Math.min(0, x))).toFixed(1)}%)`,
  },
  {
    key: "entropy",
    name: "entropy",
    about: "entropy of the distribution that the token was sampled from",
    shade: (x) => [Math.min(1, x / 2), "entropy"],
    ends: ["0", "2 nats or more"],
    tones: ["entropy"],
    told: (x) => number(x) + " nats",
    missing: () => "The record has no entropies of these tokens.",
  },
  {
    key: "ratio",
    name: "ratio",
    about: "the token's probability as the trainer computed it before the update, over the one it was sampled with",
    shade: (x) => sided(x, 0.7),
    ends: ["½", "2"],
    tones: ["minus", "plus"],
    told: (x) => number(Math.exp(x)),
    missing: (all) =>
      !inBatch(all)
        ? dropped
        : has(all, named("logprob"))
          ? "The recipe has loss.old_log_probs: rollout: the update divides by the log-probabilities of the " +
            "sampling, and no others are recorded. recompute records the trainer's."
          : "The record has no log-probabilities of these tokens, and so no ratios.",
  },
  {
    key: "reference",
    name: "reference",
    about: "logarithm of the sampling policy's probability over the reference's",
    shade: (x) => sided(x, 1.5),
    ends: ["likelier to the reference", "likelier to the policy"],
    tones: ["minus", "plus"],
    told: (x) => "log-ratio " + number(x),
    missing: (all) =>
      inBatch(all)
        ? "Neither the method nor the recipe's token_outputs asks for log-probabilities of a reference."
        : dropped,
  },
  {
    key: "advantage",
    name: "advantage",
    about: "advantage times weight, as the update saw it",
    shade: (x, most) => sided(x, most || 1),
    ends: ["−", "+"],
    tones: ["minus", "plus"],
    told: (x) => number(x) + " (× weight)",
    missing: () => "The trajectory is not in the batch, so that its tokens have no advantages.",
  },
  {
    key: "mask",
    name: "mask",
    about: "the tokens that the loss covers",
    shade: (x) => [x ? 0.6 : 0, "mask"],
    ends: ["not learnt from", "in the loss"],
    tones: ["mask"],
    told: (x) => (x ? "in the loss" : "not in the loss"),
    missing: () => "The record has no turns of it.",
  },
  {
    key: "value",
    name: "value",
    about: "the return that the critic expected",
    rare: true,
    shade: (x) => sided(x, 1),
    ends: ["−1", "+1"],
    tones: ["minus", "plus"],
    told: (x) => number(x),
    missing: () => "No critic's values are recorded.",
  },
];

export const named = (key) => quantities.find((q) => q.key === key);

// has reports whether the record has a quantity of one of the trajectories.
export const has = (closeups, q) => closeups.some((c) => c.turns.some((t) => t.pieces[q.key]));

// greatest is the greatest |advantage| of what is shown, which has the darkest colour.
export const greatest = (closeups) =>
  Math.max(
    0,
    ...closeups.flatMap((c) =>
      c.turns.map((t) => (t.pieces.advantage ?? []).reduce((most, x) => Math.max(most, Math.abs(x)), 0)),
    ),
  );

const darkest = 0.5; // what is added to the lightest shade, so that text stays legible

// paint colours the pieces of a turn. The square root keeps small values apart.
export const paint = (spans, pieces, q, most) => {
  for (let i = 0; i < spans.length; i++) {
    const span = spans[i];
    const values = q && pieces[q.key];
    if (!values || (!pieces.written[i] && q.key !== "mask")) {
      span.style.removeProperty("--shade");
      delete span.dataset.tone;
      continue;
    }
    const [shade, tone] = q.shade(values[i], most);
    span.style.setProperty("--shade", shade > 0.004 ? (0.1 + darkest * Math.sqrt(shade)).toFixed(3) : "0");
    span.dataset.tone = tone;
  }
};

export const scale = (q, most) => {
  if (!q) return el("span", {class: "scale"});
  const ends = q.key === "advantage" ? ["−" + number(most), "+" + number(most)] : q.ends;
  return el(
    "span",
    {class: "scale"},
    el("b", {}, ends[0]),
    el("i", {class: "ramp " + q.tones.join("-")}),
    el("b", {}, ends[1]),
  );
};

// tell lists every number of a piece.
export const tell = (pieces, i) => {
  if (!pieces.written[i]) return [["context", "not written by the policy"]];
  return quantities.filter((q) => pieces[q.key]).map((q) => [q.name, q.told(pieces[q.key][i])]);
};
