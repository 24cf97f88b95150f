// Loss and accuracy over time: a thin line for each worker, and the mean in the colour of the strategy in force.

import { open, stretches, timeAxis } from "./canvas.js";
import { colourOf } from "./looks.js";
import { BINS, BIN_S } from "./store.js";

const LEFT = 38;
const TOP = 8;

// what: "loss" or "accuracy". The newest mean, or null.
export function drawCurve(canvas, record, workers, now, span, what) {
  const view = open(canvas);
  const { context } = view;
  const right = view.width - 6;
  const bottom = view.height - 22;
  const from = now - span;
  const first = Math.floor(from / BIN_S);
  const count = Math.floor(now / BIN_S) - first + 1;
  const lines = workers.map((worker) => values(record.worker(worker.worker), what, first, count));
  const mean = meanOf(lines, count);
  const seen = mean.filter((value) => !Number.isNaN(value));
  const most = what === "accuracy" ? 1 : nice(Math.max(...lines.flatMap((line) => largest(line)), 0));
  const x = (i) => LEFT + (((first + i + 1) * BIN_S - from) / span) * (right - LEFT);
  const y = (value) => bottom - (value / most) * (bottom - TOP);

  context.textAlign = "right";
  for (let part = 0; part <= 4; part += 2) {
    const at = y((most * part) / 4);
    context.fillStyle = view.line;
    context.fillRect(LEFT, Math.round(at), right - LEFT, 1);
    context.fillStyle = view.muted;
    context.fillText(label((most * part) / 4), LEFT - 6, at);
  }
  timeAxis(view, LEFT, right, bottom, bottom + 2, span);

  context.save();
  context.beginPath();
  context.rect(LEFT, 0, right - LEFT, bottom + 2);
  context.clip();
  context.lineJoin = "round";
  context.strokeStyle = view.muted;
  context.globalAlpha = workers.length > 8 ? 0.2 : 0.4;
  context.lineWidth = 1;
  for (const line of lines) stroke(context, line, x, y);
  context.globalAlpha = 1;
  context.lineWidth = 2.5;
  for (const one of stretches(record.swaps, from, now)) {
    context.save();
    context.beginPath();
    const begin = LEFT + ((one.from - from) / span) * (right - LEFT);
    context.rect(begin, 0, LEFT + ((one.to - from) / span) * (right - LEFT) - begin, view.height);
    context.clip();
    context.strokeStyle = colourOf(one.strategy);
    stroke(context, mean, x, y);
    context.restore();
    if (one.from > from) {
      context.fillStyle = colourOf(one.strategy);
      context.fillRect(Math.round(begin) - 1, 0, 1.5, bottom);
    }
  }
  context.restore();
  return seen.length ? seen[seen.length - 1] : null;
}

// A value for each bin from `first` on. Bins without a reported value have the previous one.
function values(known, what, first, count) {
  const line = new Float32Array(count).fill(NaN);
  let last = NaN;
  for (let back = 1; back <= 60 && Number.isNaN(last); back++) {
    if (known.has(first - back)) last = known[what][(first - back) % BINS];
  }
  for (let i = 0; i < count; i++) {
    if (known.has(first + i)) {
      const value = known[what][(first + i) % BINS];
      if (!Number.isNaN(value)) last = value;
    }
    line[i] = last;
  }
  return line;
}

function meanOf(lines, count) {
  const mean = new Float32Array(count).fill(NaN);
  for (let i = 0; i < count; i++) {
    let sum = 0;
    let known = 0;
    for (const line of lines) {
      if (Number.isNaN(line[i])) continue;
      sum += line[i];
      known++;
    }
    if (known) mean[i] = sum / known;
  }
  return mean;
}

function stroke(context, line, x, y) {
  context.beginPath();
  let pen = false;
  const step = Math.max(1, Math.floor(line.length / 600));
  for (let i = 0; i < line.length; i += step) {
    if (Number.isNaN(line[i])) {
      pen = false;
    } else if (pen) {
      context.lineTo(x(i), y(line[i]));
    } else {
      context.moveTo(x(i), y(line[i]));
      pen = true;
    }
  }
  context.stroke();
}

function largest(line) {
  let most = 0;
  for (const value of line) if (value > most) most = value;
  return most;
}

function nice(value) {
  if (value <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * [1, 2, 3, 4, 5, 6, 8, 10].find((step) => step * unit >= value);
}

const label = (value) => (value === 0 ? "0" : value >= 0.1 ? String(+value.toFixed(2)) : value.toPrecision(1));
