// The address holds everything that the page shows, so that every view of it is a link.

const listeners = [];

export const parameters = () => new URLSearchParams(location.search);

export const filterKeys = ["part", "q", "step", "level", "min", "max", "status", "fate", "where"];

// filter is the part of the address that selects and orders the list.
export const filter = () => {
  const out = new URLSearchParams();
  for (const [key, value] of parameters()) {
    if ((filterKeys.includes(key) || key === "sort") && value !== "") out.append(key, value);
  }
  return out;
};

// go changes some parameters of the address: null removes one, a list repeats it.
export const go = (changes, {replace = false} = {}) => {
  const next = parameters();
  for (const [key, value] of Object.entries(changes)) {
    next.delete(key);
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") next.append(key, one);
    }
  }
  const query = next.toString().replaceAll("%2F", "/").replaceAll("%2C", ",");
  const to = location.pathname + (query ? "?" + query : "");
  if (to === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  tell();
};

export const onMove = (listener) => listeners.push(listener);
export const tell = () => listeners.forEach((listener) => listener(parameters()));
window.addEventListener("popstate", tell);
