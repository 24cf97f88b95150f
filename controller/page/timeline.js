// Workers' states over time: a row for each worker, with the present at the right. Short spans show every reported
// change of state, long spans the shares of states in each bin. If steps are too short for workers to report every
// change, all spans show shares.

import { open, strategyBand, timeAxis } from "./canvas.js";
import { beginsRack, colourOfState, workerName } from "./looks.js";
import { BINS, BIN_S } from "./store.js";

const STATES = ["unknown", "computing", "exchanging", "waiting", "paused"]; // as in controller/status/recorder.py
const DRAWN = ["computing", "exchanging", "waiting"];
const EXACT = 5; // pixels per second from which changes of state are drawn; below that, bins
const MOST_STEPS = 6; // per second: up to this number, workers report every change (serene/client/session/reports.py)
const SILENT_S = 3;
const LEFT = 30;
const BAND = 24;
const NARROWEST = 2; // a bin's column, in pixels

const laneHeight = (count) => Math.max(11, Math.min(28, Math.floor(420 / count)));

export function drawTimeline(canvas, record, job, now, span) {
  const { workers } = job;
  const lane = laneHeight(workers.length);
  const bottom = BAND + lane * workers.length;
  const view = open(canvas, bottom + 22);
  const { context } = view;
  const right = view.width - 4;
  const from = now - span;
  const scale = (right - LEFT) / span;
  const place = { left: LEFT, right, top: 0, seconds: span, x: (t) => LEFT + (t - from) * scale };
  const paths = Object.fromEntries(DRAWN.map((state) => [state, new Path2D()]));

  workers.forEach((worker, row) => {
    const y = BAND + row * lane;
    context.fillStyle = view.track;
    context.fillRect(LEFT, y + 1, right - LEFT, lane - 2);
    context.fillStyle = view.muted;
    context.textAlign = "right";
    if (lane >= 11) context.fillText(workerName(job, worker.worker), LEFT - 8, y + lane / 2 + 1);
    if (beginsRack(job, row)) context.fillRect(0, y - 0.5, right, 1);
    const known = record.worker(worker.worker);
    if (scale >= EXACT && known.rate < MOST_STEPS) exact(paths, known, worker, now, from, place, y, lane);
    else binned(paths, known, now, from, place, y, lane);
  });
  for (const state of DRAWN) {
    context.fillStyle = colourOfState(state);
    context.fill(paths[state]);
  }
  timeAxis(view, LEFT, right, bottom, bottom + 3, span);
  strategyBand(view, place, from, record.swaps, bottom);
}

function exact(paths, known, worker, now, from, place, y, lane) {
  const { turns } = known;
  const heard = worker.state === "running" || worker.state === "evicted" ? Math.max(worker.silent_s - SILENT_S, 0) : 0;
  for (let i = turns.length - 1; i >= 0; i--) {
    const last = i === turns.length - 1;
    const end = last ? now - heard : turns[i + 1][0];
    if (end < from) break;
    const path = paths[STATES[turns[i][1]]];
    if (!path) continue;
    const x = place.x(Math.max(turns[i][0], from));
    const until = Math.min(place.x(end), place.right);
    if (x < until) path.rect(x, y + 1, until - x, lane - 2);
  }
}

function binned(paths, known, now, from, place, y, lane) {
  const width = place.x(BIN_S) - place.x(0);
  const together = Math.max(1, Math.ceil(NARROWEST / width)); // bins in a column
  const first = Math.floor(from / BIN_S / together) * together;
  for (let bin = first; bin * BIN_S < now; bin += together) {
    const sums = [0, 0, 0];
    for (let b = bin; b < bin + together; b++) {
      if (known.has(b)) known.shares.forEach((values, part) => (sums[part] += values[b % BINS]));
    }
    const left = Math.max(place.x(bin * BIN_S), place.left);
    const right = Math.min(place.x((bin + together) * BIN_S), place.right);
    let top = y + lane - 1;
    DRAWN.forEach((state, part) => {
      const height = (sums[part] / together / 100) * (lane - 2);
      if (height > 0.2) paths[state].rect(left, top - height, right - left + 0.3, height);
      top -= height;
    });
  }
}

// A text for screen readers.
export function timelineInWords(record, job, now, span) {
  const shares = job.workers.map((worker) => {
    const known = record.worker(worker.worker);
    let waited = 0;
    let bins = 0;
    for (let bin = Math.floor((now - span) / BIN_S); bin < Math.floor(now / BIN_S); bin++) {
      if (!known.has(bin)) continue;
      waited += known.shares[2][bin % BINS];
      bins++;
    }
    return `worker ${workerName(job, worker.worker)} waited ${bins ? Math.round(waited / bins) : 0} %`;
  });
  return `Timeline: ${shares.join(", ")} of the time shown`;
}
