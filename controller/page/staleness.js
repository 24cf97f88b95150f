// The staleness of contributions when they arrived, in rounds.

import { open } from "./canvas.js";
import { theme } from "./looks.js";

export const sumOf = (workers) =>
  workers.reduce((sum, worker) => sum.map((count, age) => count + (worker.staleness[age] ?? 0)), new Array(16).fill(0));

// In rounds, as a text; the last class is 15 or more.
export function meanOf(counts) {
  const total = counts.reduce((a, b) => a + b, 0);
  return total ? (counts.reduce((sum, count, age) => sum + count * age, 0) / total).toFixed(2) : "";
}

export function drawStaleness(canvas, counts, colour) {
  const view = open(canvas);
  const { context } = view;
  const total = counts.reduce((a, b) => a + b, 0);
  const bottom = view.height - 20;
  const top = 6;
  const step = (view.width - 8) / counts.length;
  counts.forEach((count, age) => {
    const share = total ? count / total : 0;
    const height = share * (bottom - top);
    const x = 4 + age * step;
    context.fillStyle = view.track;
    context.fillRect(x + 1, bottom - 1, step - 3, 1);
    context.fillStyle = colour;
    context.fillRect(x + 1, bottom - Math.max(height, count ? 1.5 : 0), step - 3, Math.max(height, count ? 1.5 : 0));
    context.fillStyle = view.muted;
    context.textAlign = "center";
    if (age % 3 === 0) context.fillText(age === 15 ? "15+" : String(age), x + step / 2, bottom + 11);
  });
  canvas.setAttribute("aria-label", inWords(counts));
}

export function drawSmall(canvas, counts) {
  const view = open(canvas);
  const most = Math.max(...counts, 1);
  const step = view.width / 16;
  counts.forEach((count, age) => {
    const height = count ? Math.max((count / most) * view.height, 1.5) : 0;
    view.context.fillStyle = view.track;
    view.context.fillRect(age * step, view.height - 1, step - 1, 1);
    view.context.fillStyle = theme().muted;
    view.context.fillRect(age * step, view.height - height, step - 1, height);
  });
  canvas.setAttribute("aria-label", inWords(counts));
}

const percent = (share) => (share >= 0.1 ? `${Math.round(share * 100)}%` : `${(share * 100).toFixed(1)}%`);

function inWords(counts) {
  const total = counts.reduce((a, b) => a + b, 0);
  if (!total) return "Staleness: no contribution yet";
  const said = counts.map((count, age) => (count ? `${age} rounds old: ${percent(count / total)}` : "")).filter(Boolean);
  return `Staleness: ${said.join(", ")}`;
}
