// Common parts of all drawings: sharp pixels, a time axis, and the strategies in force above it.

import { colourOf, nameOf, theme } from "./looks.js";

export const FONT = '12px system-ui, "Liberation Sans", sans-serif';

// A cleared context in CSS pixels, and its size.
export function open(canvas, height = canvas.clientHeight) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
  if (canvas.style.height !== `${height}px`) canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  return { context, width, height, ...theme() };
}

const STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 900];

// A time axis (seconds before now) below a drawing from `left` to `right` and down to y.
export function timeAxis({ context, muted, line }, left, right, top, y, span) {
  const step = STEPS.find((s) => (s / span) * (right - left) > 75) ?? STEPS[STEPS.length - 1];
  for (let back = 0; back <= span + 1e-9; back += step) {
    const x = right - (back / span) * (right - left);
    context.fillStyle = line;
    context.fillRect(Math.round(x), top, 1, y - top);
    context.fillStyle = muted;
    context.textAlign = back === 0 ? "right" : x - left < 20 ? "left" : "center";
    context.fillText(back === 0 ? "now" : back < 120 ? `−${back} s` : `−${back / 60} min`, x, y + 10);
  }
}

// Periods under one strategy, within the time that is shown: [{ from, to, strategy }].
export function stretches(swaps, from, to) {
  const found = [];
  for (const swap of swaps) {
    const last = found[found.length - 1];
    if (last && nameOf(last.strategy) === nameOf(swap.strategy)) continue;
    if (last) last.to = swap.t;
    found.push({ from: swap.t, to, strategy: swap.strategy });
  }
  return found.filter((one) => one.to > from && one.from < to);
}

// A coloured line for each period, its name if there is room, and a mark down to `marksTo` at its beginning.
export function strategyBand({ context, text }, place, from, swaps, marksTo) {
  context.textAlign = "left";
  for (const one of stretches(swaps, from, from + place.seconds)) {
    const begin = Math.max(place.x(one.from), place.left);
    const end = Math.min(place.x(one.to), place.right);
    context.fillStyle = colourOf(one.strategy);
    context.fillRect(begin, place.top + 15, Math.max(end - begin, 1), 4);
    if (one.from > from) context.fillRect(Math.round(begin) - 1, place.top + 15, 2, marksTo - place.top - 15);
    const name = nameOf(one.strategy);
    if (context.measureText(name).width + 6 < end - begin) {
      context.fillStyle = text;
      context.fillText(name, begin + 3, place.top + 7);
    }
  }
}
