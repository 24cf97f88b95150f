// Names and colours of strategies and of what workers do; colours are serene/palette.py's, as in all pictures.

const dark = matchMedia("(prefers-color-scheme: dark)");
let colours = {};

export const useColours = (given) => (colours = given);

const visible = (colour) => (dark.matches && colour === "#000000" ? "#ffffff" : colour); // black is the text's colour

// A strategy as {"name": "ssp", "staleness": 3} -> "ssp:3", as on command lines.
export function textOf(strategy) {
  const { name, staleness, k, async_workers } = strategy;
  if (name === "ssp") return `ssp:${staleness}`;
  if (name === "quorum") return `quorum:${k}`;
  if (name === "mixed") return `mixed:${async_workers.join(",")}${staleness ? `:${staleness}` : ""}`;
  return name;
}

// As serene/strategy.py prints it: "SSP(3)".
export function nameOf(strategy) {
  const { name, staleness, k, async_workers } = strategy;
  if (name === "ssp") return `SSP(${staleness})`;
  if (name === "quorum") return `${k}-of-n`;
  if (name === "mixed") return `Mixed(asynchronous ${async_workers.join(", ")}${staleness ? `, staleness ${staleness}` : ""})`;
  return name.toUpperCase();
}

// As `serenectl status` prints it: "BSP in 8 bits".
export const inForce = (job) => nameOf(job.strategy) + (job.pool ? ` in ${job.precision} bits` : "");

export function colourOf(strategy) {
  const text = textOf(strategy);
  return visible(colours[text] ?? colours[text.split(":")[0]] ?? colours[""] ?? "#888888");
}

export const colourOfState = (state) => colours[state] ?? colours[""] ?? "#888888";

// The page's own colours, for canvases.
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return { text: read("text"), muted: read("muted"), line: read("line"), track: read("track"), panel: read("panel") };
}

export const whenThemeChanges = (redraw) => dark.addEventListener("change", redraw);

export const clock = (unix) => new Date(unix * 1000).toLocaleTimeString([], { hour12: false });

// As serene/racks.py names a worker: 2, or over racks 1.0, the first one of rack 1.
export function workerName(job, number) {
  const { rack, place } = job.workers[number];
  return job.racks.length < 2 ? String(number) : `${rack}.${place}`;
}

// "worker 2", "workers 0, 1 and 3"; many are counted.
export function workers(job, numbers) {
  const names = numbers.map((number) => workerName(job, number));
  if (names.length === 1) return `worker ${names[0]}`;
  if (names.length > 6) return `${names.length} workers`;
  return `workers ${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

// Whether a rack begins with this worker, and another is before it.
export const beginsRack = (job, i) => i > 0 && job.workers[i].rack !== job.workers[i - 1].rack;

export const fixed = (value, digits) => (typeof value === "number" ? value.toFixed(digits) : "–");
