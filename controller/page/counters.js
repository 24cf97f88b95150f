// The switch's counters: packets of all workers, and drops by reason.

import { byId, keep, make, say } from "./dom.js";

const OVER_S = 3;
let past = []; // [seconds, counts]

export function showCounters(switch_, now) {
  const counts = { ...switch_.totals };
  for (const [reason, packets] of Object.entries(switch_.drops)) if (packets) counts[`dropped: ${reason.replaceAll("_", " ")}`] = packets;
  past.push([now, counts]);
  past = past.filter(([t], i) => now - t <= OVER_S || i === past.length - 1);
  const [t, before] = past[0];
  keep(byId("counters").tBodies[0], Object.entries(counts), () => make("tr", {}, make("td"), make("td"), make("td", { className: "muted" })), (tr, [name, count]) => {
    say(tr.children[0], name);
    tr.dataset.counter = name;
    say(tr.children[1], count.toLocaleString("en"));
    const rate = now > t ? Math.max(count - (before[name] ?? 0), 0) / (now - t) : 0;
    say(tr.children[2], rate >= 0.5 ? `${Math.round(rate).toLocaleString("en")} per s` : "");
  });
}
