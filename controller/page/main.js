// The controller's page: it requests new data, stores them, and shows them.
// A new request follows PAUSE_MS after each answer. So a slow machine gets fewer requests, and a hidden page sends
//none. One answer contains all data since the last one. Drawings move between the answers.

import * as api from "./api.js";
import { headline, showBarrier } from "./barrier.js";
import { drawCurve } from "./curves.js";
import { setUp, showControls } from "./controls.js";
import { showCounters } from "./counters.js";
import { byId, keep, make, say } from "./dom.js";
import * as looks from "./looks.js";
import { drawStaleness, meanOf, sumOf } from "./staleness.js";
import { Store } from "./store.js";
import { drawTimeline, timelineInWords } from "./timeline.js";
import { showWorkers } from "./workers.js";

const PAUSE_MS = 400; // between an answer and the next request
const PATIENCE_MS = 2000; // before the next request if there was no answer
const NOTICE_MS = 6000;
const DRAWN_S = 1; // behind the controller's clock, so that all drawn data have arrived
const SPANS = [["30 s", 30], ["2 min", 120], ["10 min", 600], ["1 h", 3600]];

const store = new Store();
let controls = null;
let chosen = null; // the job that the user has chosen
let span = 30;
let timer = 0;
let noticed = 0;
let drawnAt = 0;

function shown() {
  const jobs = store.now?.status.jobs ?? [];
  const wanted = jobs.find((job) => job.job === chosen);
  return wanted ?? jobs.find((job) => job.state !== "finished") ?? jobs[0] ?? null;
}

async function poll() {
  clearTimeout(timer);
  timer = 0;
  let pause = PAUSE_MS;
  try {
    if (!controls) {
      const choices = await api.choices();
      looks.useColours(choices.colours);
      colourLegend();
      controls ??= setUp(choices, poll, notice); // another poll may have done this meanwhile
    }
    store.hear(await api.live(store.since));
    for (const job of store.now.status.jobs) {
      const record = store.jobs.get(job.job);
      if (record.epochs.size < Math.min(job.epochs_begun, 1000) && job.epochs_begun > job.history.length && !record.asked) {
        record.asked = true; // only once: there were more epochs than a status contains
        record.hearEpochs((await api.job(job.job)).history);
      }
    }
    byId("trouble").hidden = byId("token-form").hidden = true;
    show();
  } catch (error) {
    say(byId("trouble"), inWords(error));
    const asked = error.status === 401;
    if (asked && byId("token-form").hidden) {
      byId("token-form").hidden = false;
      byId("token-form").elements.token.focus();
    }
    byId("trouble").hidden = asked;
    if (!(error instanceof api.NoAnswer || error instanceof api.Refused)) console.error(error);
    pause = PATIENCE_MS;
  }
  if (!document.hidden && !timer) timer = setTimeout(poll, pause);
}

function inWords(error) {
  const age = store.now ? `; this page shows the state of ${looks.clock(store.now.t)}` : "";
  if (error instanceof api.Refused) return `The controller reports: ${error.message}`;
  if (error instanceof api.NoAnswer) return `The controller does not answer${age}.`;
  return `This page has a defect and may be incomplete: ${error.message}. Reload it.`;
}

function show() {
  const { status, explanations, t } = store.now;
  const job = shown();
  showSwitch(status);
  showJobs(status.jobs, job);
  showCounters(status.switch, t);
  showEvents();
  byId("job").hidden = !job;
  byId("nothing").hidden = Boolean(job);
  if (!job) return;
  const told = explanations[status.jobs.indexOf(job)];
  const record = store.jobs.get(job.job);
  say(byId("in-force"), looks.inForce(job));
  byId("in-force").style.borderColor = looks.colourOf(job.strategy);
  say(byId("headline"), headline(job, told, record, t));
  say(byId("facts"), facts(job));
  showControls(job);
  showBarrier(job, told);
  showWorkers(job, told, record, controls.membership);
  const ages = sumOf(job.workers);
  drawStaleness(byId("staleness"), ages, looks.colourOf(job.strategy));
  say(byId("staleness-mean"), meanOf(ages));
  drawCurves();
  byId("timeline").setAttribute("aria-label", timelineInWords(record, job, t, span));
}

function facts(job) {
  const taken = job.workers.filter((worker) => worker.state === "running").length;
  const many = job.places ? `${taken} of ${job.places} places` : `${job.workers.length} worker${job.workers.length > 1 ? "s" : ""}`;
  const parts = [job.state, `epoch ${job.epoch}`, many];
  if (job.vector_length) parts.push(`${job.vector_length.toLocaleString("en")} values in ${job.slots} slots`);
  const lost = job.lost_sessions;
  if (lost) parts.push(`the switch lost its state ${lost === 1 ? "once" : `${lost} times`}`);
  return parts.join(" · ");
}

function showSwitch({ switch: switch_, switches }) {
  byId("switch").className = switch_.connected ? "up" : "down";
  const state = switch_.connected ? "" : ` is unreachable: ${switch_.trouble}`;
  const leaves = switches.length > 1 ? ` and ${switches.length - 1} leaves` : "";
  say(byId("switch-text"), `${leaves ? "root" : "switch"} ${switch_.address}${leaves}, ${switch_.program}${state}`);
}

function showJobs(jobs, current) {
  const button = () => {
    const made = make("button", { type: "button" });
    made.addEventListener("click", () => {
      chosen = Number(made.dataset.job);
      show();
    });
    return made;
  };
  keep(byId("jobs"), jobs, button, (made, job) => {
    made.dataset.job = job.job;
    say(made, `job ${job.job}${job.state === "running" ? "" : ` (${job.state})`}`);
    made.setAttribute("aria-pressed", String(job === current));
  });
}

function showEvents() {
  const latest = store.events.slice(-100).reverse();
  keep(byId("events"), latest, () => make("li", {}, make("time"), make("span")), (item, event) => {
    say(item.firstChild, looks.clock(event.t));
    say(item.lastChild, event.text);
  });
}

function drawCurves() {
  const job = shown();
  const record = store.jobs.get(job.job);
  for (const what of ["accuracy", "loss"]) {
    const value = drawCurve(byId(what), record, job.workers, until(job), span, what);
    say(byId(`${what}-now`), value === null ? "" : value.toFixed(3));
    byId(what).setAttribute("aria-label", `Mean ${what} over time, now ${value === null ? "unknown" : value.toFixed(3)}`);
  }
}

// A finished job is shown in its last state.
function until(job) {
  if (job.state !== "finished") return store.clock - DRAWN_S;
  let end = 0;
  for (const worker of store.jobs.get(job.job).workers.values()) end = Math.max(end, worker.turns.at(-1)?.[0] ?? 0);
  return end || store.now.t;
}

// Just often enough to move the drawings pixel by pixel.
function draw(moment) {
  requestAnimationFrame(draw);
  const job = store.now && shown();
  if (!job || document.hidden) return;
  const pixel_ms = (1000 * span) / Math.max(byId("timeline").clientWidth, 1);
  if (moment - drawnAt < Math.max(50, Math.min(pixel_ms, 1000))) return;
  drawnAt = moment;
  drawTimeline(byId("timeline"), store.jobs.get(job.job), job, until(job), span);
}

function notice(text, bad) {
  byId("notice").className = bad ? "bad" : "";
  byId("notice").setAttribute("role", bad ? "alert" : "status");
  say(byId("notice"), text);
  clearTimeout(noticed);
  noticed = setTimeout(() => say(byId("notice"), ""), NOTICE_MS);
}

function colourLegend() {
  for (const mark of document.querySelectorAll("[data-colour]")) {
    mark.style.background = looks.colourOfState(mark.dataset.colour);
  }
}

function offerSpans() {
  keep(byId("spans"), SPANS, () => make("button", { type: "button" }), (button, [name, seconds]) => {
    say(button, name);
    button.setAttribute("aria-pressed", String(seconds === span));
    button.onclick = () => {
      span = seconds;
      drawnAt = 0;
      offerSpans();
      if (store.now) show();
    };
  });
}

byId("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await api.enter(event.target.elements.token.value);
    poll();
  } catch (error) {
    notice(error.message, true);
  }
});
offerSpans();
document.addEventListener("visibilitychange", () => !document.hidden && poll());
looks.whenThemeChanges(() => store.now && show());
requestAnimationFrame(draw);
poll();
