// The barrier: the workers that others wait for, with the controller's texts, and each worker's progress by slots.

import { byId, keep, make, say } from "./dom.js";
import { colourOfState, workerName, workers as named } from "./looks.js";
import { BINS, BIN_S } from "./store.js";

const OVER_S = 10; // the headline is over this time: single states change too fast to be read
let samples = []; // [seconds, { worker: number that wait for it }, number that wait]
let sampled = null; // the job of the samples

export function headline(job, told, record, now) {
  if (job.state !== "running" || job.restoring) return told.headline.replace(/^job \d+:? /, "").replace(/^./, upper);
  if (sampled !== job.job) samples = [];
  sampled = job.job;
  const blamed = {};
  const waiting = told.workers.filter((worker) => worker.waits_for.length);
  for (const worker of waiting) for (const other of worker.waits_for) blamed[other] = (blamed[other] ?? 0) + 1;
  samples.push([now, blamed, waiting.length]);
  samples = samples.filter(([t]) => now - t <= OVER_S);

  const share = waitingShare(members(job).map((worker) => record.worker(worker.worker)), now);
  const waited = samples.reduce((sum, [, , count]) => sum + count, 0);
  const silent = told.workers.filter((worker) => worker.state === "silent").map((worker) => worker.worker);
  const slow = job.slow ? ` ${upper(job.slow.text)}.` : "";
  const end = (silent.length ? ` ${upper(named(job, silent))} ${silent.length > 1 ? "are" : "is"} silent.` : "") + slow;
  if (share < 2) return `Nobody waits.${end}`;
  const start = `The workers wait ${Math.round(share)} % of the time`;
  if (!waited) return `${start}.${end}`;
  const sums = {};
  for (const [, of] of samples) for (const [worker, count] of Object.entries(of)) sums[worker] = (sums[worker] ?? 0) + count;
  const [worst, times] = Object.entries(sums).sort((a, b) => b[1] - a[1])[0];
  const whom = `for worker ${workerName(job, worst)}`;
  const often = times > 0.6 * waited ? `mostly ${whom}` : times > 0.35 * waited ? `most often ${whom}` : "for each other in turn";
  return `${start}, ${often}.${end}`;
}

// In per cent, over the last OVER_S seconds.
function waitingShare(records, now) {
  let sum = 0;
  let count = 0;
  for (const known of records) {
    for (let bin = Math.floor((now - OVER_S) / BIN_S); bin < Math.floor(now / BIN_S); bin++) {
      if (!known.has(bin)) continue;
      sum += known.shares[2][bin % BINS];
      count++;
    }
  }
  return count ? sum / count : 0;
}

const upper = (text) => text[0].toUpperCase() + text.slice(1);
const members = (job) => job.workers.filter((worker) => worker.state === "running");

export function showBarrier(job, told) {
  const words = new Map(told.workers.map((worker) => [worker.worker, worker]));
  const there = members(job).map((worker) => words.get(worker.worker));
  const epoch = Math.max(...there.map((worker) => worker.epoch ?? 0), 0);
  const rounds = there.filter((worker) => worker.epoch === epoch && worker.round !== null).map((worker) => worker.round);
  const round = rounds.length ? Math.min(...rounds) : null;
  const none = job.state === "running" && job.strategy.name === "asp";
  say(byId("round"), none ? "none under ASP: nobody waits" : round === null ? "" : `round ${round} of epoch ${epoch}`);
  keep(byId("waits"), lines(job, told.workers, none), () => make("li", {}, make("span"), make("small")), (item, line) => {
    say(item.firstChild, line.text);
    say(item.lastChild, line.more);
  });
  const waitedFor = new Set(told.workers.flatMap((worker) => worker.waits_for));
  const shown = job.pool || job.strategy.name === "asp" ? [] : job.workers.filter((worker) => worker.state === "running" || worker.state === "evicted");
  keep(byId("slots"), shown, slotRow, (row, worker) => {
    const at = words.get(worker.worker);
    const done = slotsDone(worker, at, job.slots, round, epoch);
    say(row.children[0], workerName(job, worker.worker));
    row.children[1].firstChild.style.width = `${(100 * done) / Math.max(job.slots, 1)}%`;
    row.children[1].firstChild.style.background = colourOfState(waitedFor.has(worker.worker) ? "waiting" : "computing");
    row.classList.toggle("waited-for", waitedFor.has(worker.worker));
    say(row.children[2], slotWords(worker, at, done, job.slots, round, epoch));
  });
}

const slotRow = () => make("div", { className: "slot-row" }, make("span"), make("div", { className: "bar" }, make("span")), make("span"));

// The number of the job's slots that have the worker's contribution to the awaited round.
function slotsDone(worker, at, slots, round, epoch) {
  if (round === null || at.epoch === null) return 0;
  if (at.epoch > epoch || (at.epoch === epoch && at.round > round) || at.state === "waiting") return slots;
  return at.state === "exchanging" ? worker.contributions % slots : 0;
}

function slotWords(worker, at, done, slots, round, epoch) {
  if (worker.state === "evicted") return "evicted";
  if (at.epoch === epoch && round !== null && at.round > round) {
    return `${at.round - round} round${at.round - round > 1 ? "s" : ""} ahead`;
  }
  return `${done} of ${slots} slots`;
}

// The list's lines: waiting workers, in groups that wait for the same workers, and workers in unusual states. Workers
// of different racks may wait for the same workers at different switches, so a group has one rack.
function lines(job, told, none) {
  const groups = new Map();
  for (const worker of told.filter((one) => one.waits_for.length)) {
    const key = `${job.workers[worker.worker].rack}: ${worker.waits_for}`;
    groups.set(key, [...(groups.get(key) ?? []), worker]);
  }
  const sorted = [...groups.values()].sort((a, b) => b.length - a.length);
  const found = sorted.slice(0, 4).map((group) => {
    const first = group[0];
    const who = upper(named(job, group.map((worker) => worker.worker)));
    const rest = first.text.slice(first.text.indexOf(" waits ") + 7);
    return { text: group.length > 1 ? `${who} wait ${rest}` : upper(first.text), more: first.advice ?? "" };
  });
  const odd = told.filter((one) => ["expected", "joined", "silent", "evicted"].includes(one.state));
  for (const worker of odd.slice(0, 4)) found.push({ text: upper(worker.text), more: worker.advice ?? "" });
  return found.length || none ? found : [{ text: "Nobody waits at this moment.", more: "" }];
}
