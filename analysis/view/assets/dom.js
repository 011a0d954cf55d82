// Makes elements. Texts become text nodes, never markup, because policies wrote them.

export const el = (tag, attributes = {}, ...children) => {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) out.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(out.dataset, value);
    else out.setAttribute(name, value === true ? "" : value);
  }
  out.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return out;
};

export const by = (id) => document.getElementById(id);

export const ask = async (path, parameters, signal) => {
  const query = parameters ? "?" + new URLSearchParams(parameters) : "";
  const answer = await fetch("api/" + path + query, {signal});
  const type = answer.headers.get("Content-Type") ?? "";
  const body = type.startsWith("application/json") ? await answer.json() : {error: await answer.text()};
  if (!answer.ok) throw new Error(body.error);
  return body;
};

const whole = new Intl.NumberFormat("en-US");
export const count = (n) => whole.format(n);
export const percent = (x) => (x === null ? "–" : (100 * x).toFixed(1) + "%");

// number is a short form with a real minus sign; no number is a dash.
export const number = (x, digits = 3) => {
  if (x === null || x === undefined) return "–";
  if (typeof x !== "number") return String(x);
  if (Number.isInteger(x)) return String(x).replace("-", "−");
  const short =
    Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(2) : Number(x.toPrecision(digits + 1)).toString();
  return short.replace("-", "−");
};

export const plural = (n, word) =>
  `${count(n)} ${word === "trajectory" && n !== 1 ? "trajectories" : word + (n === 1 ? "" : "s")}`;
