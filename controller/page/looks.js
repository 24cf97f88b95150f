// Names and colours of strategies and of workers' states. The colours are those of serene/palette.py, as in all
// figures.

const dark = matchMedia("(prefers-color-scheme: dark)");
let colours = {};

export const useColours = (given) => (colours = given);

const visible = (colour) => (dark.matches && colour === "#000000" ? "#ffffff" : colour); // black is the text's colour

// A strategy's text on command lines: {"name": "ssp", "staleness": 3} -> "ssp:3".
export function textOf(strategy) {
  const { name, staleness, k, async_workers } = strategy;
  if (name === "ssp") return `ssp:${staleness}`;
  if (name === "quorum") return `quorum:${k}`;
  if (name === "mixed") return `mixed:${async_workers.join(",")}${staleness ? `:${staleness}` : ""}`;
  return name;
}

// A strategy's name, as in serene/strategy.py: "SSP(3)".
export function nameOf(strategy) {
  const { name, staleness, k, async_workers } = strategy;
  if (name === "ssp") return `SSP(${staleness})`;
  if (name === "quorum") return `${k}-of-n`;
  if (name === "mixed") return `Mixed(asynchronous ${async_workers.join(", ")}${staleness ? `, staleness ${staleness}` : ""})`;
  return name.toUpperCase();
}

// The strategy in force, as in `serenectl status`: "BSP in 8 bits".
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

// A worker's name, as in serene/racks.py: 2, or over racks 1.0, the first worker of rack 1.
export function workerName(job, number) {
  const { rack, place } = job.workers[number];
  return job.racks.length < 2 ? String(number) : `${rack}.${place}`;
}

// "worker 2", "workers 0, 1 and 3"; of many workers only the number.
export function workers(job, numbers) {
  const names = numbers.map((number) => workerName(job, number));
  if (names.length === 1) return `worker ${names[0]}`;
  if (names.length > 6) return `${names.length} workers`;
  return `workers ${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

// Whether this worker is the first of a rack, and not of the first one.
export const beginsRack = (job, i) => i > 0 && job.workers[i].rack !== job.workers[i - 1].rack;

export const fixed = (value, digits) => (typeof value === "number" ? value.toFixed(digits) : "–");
