// Commands: buttons and a form for the strategy, automatic strategies, and jobs.

import * as api from "./api.js";
import { byId, keep, make, say } from "./dom.js";
import { colourOf, nameOf, textOf, workerName } from "./looks.js";

let current = null; // the job that is shown
let shipped = [];

// done(): called after a change. notice(text, bad): shows a message.
export function setUp(choices, done, notice) {
  shipped = choices.automatic;
  const form = byId("other");
  const automatic = byId("automatic");
  form.elements.staleness.max = choices.max_staleness;
  const newJob = byId("new-job-form");
  newJob.elements.workers.max = choices.max_workers;
  // The controller checks the fields and answers with an error, which screen readers read, too. Not every browser shows
  // its own message.
  for (const checked of [form, automatic, newJob]) checked.noValidate = true;
  automatic.elements["automatic-name"].append(...shipped.map(({ name }) => make("option", { value: name, textContent: name })));

  const attempt = async (work) => {
    try {
      notice(await work(), false);
    } catch (error) {
      notice(error.message, true);
    }
    done();
  };

  byId("strategies").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) attempt(() => swap(JSON.parse(button.dataset.strategy)));
  });
  form.addEventListener("change", () => showFields(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(() => swap(chosen(form.elements)));
  });
  automatic.elements["automatic-name"].addEventListener("change", () => showParameters(automatic));
  automatic.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      const name = automatic.elements["automatic-name"].value;
      await api.setAutomatic(current.job, name, given(automatic));
      return `automatic strategy ${name} is on`;
    });
  });
  byId("off").addEventListener("click", () =>
    attempt(async () => `automatic strategy off, ${nameOf((await api.unsetAutomatic(current.job)).strategy)} stays`),
  );
  newJob.addEventListener("submit", (event) => {
    event.preventDefault();
    const { workers, strategy } = event.target.elements;
    const meant = strategy.value === "ssp" ? { name: "ssp", staleness: 3 } : { name: strategy.value };
    attempt(async () => {
      const job = await api.createJob(numberOf(workers, "workers"), meant);
      byId("new-job").open = false;
      return `job ${job.job} waits for ${job.workers_expected} workers`;
    });
  });
  byId("delete").addEventListener("click", () => {
    const { job, state } = current;
    if (state !== "finished" && !confirm(`Delete job ${job}? Its workers are refused from now on.`)) return;
    attempt(async () => {
      await api.deleteJob(job);
      return `job ${job} deleted`;
    });
  });
  showFields(form);
  showParameters(automatic);
  return { membership: (worker, evict) => attempt(() => move(worker, evict)) };
}

async function swap(strategy) {
  const made = await api.setStrategy(current.job, strategy);
  const off = made.automatic_ended ? `; automatic strategy ${made.automatic_ended} is off` : "";
  if (!made.changed) return `${nameOf(made.strategy)} already${off}`;
  const when = made.epoch ? `epoch ${made.epoch} (${Math.round(made.write_ms)} ms)` : "when the job starts";
  return `${nameOf(made.before)} → ${nameOf(made.strategy)}, ${when}${off}`;
}

async function move(worker, evict) {
  const job = await (evict ? api.evict : api.readmit)(current.job, worker);
  return `worker ${workerName(job, worker)} is ${evict ? "evicted" : "readmitted"}, epoch ${job.epoch}`;
}

// A field without a valid number has an empty value, and Number("") would be 0.
function numberOf(field, what) {
  if (field.value === "") throw new Error(`${what}: expected a number`);
  return Number(field.value);
}

function chosen(fields) {
  const name = fields.name.value;
  if (name === "quorum") return { name, k: numberOf(fields.k, "k") };
  const staleness = numberOf(fields.staleness, "staleness");
  if (name === "ssp") return { name, staleness };
  const named = fields.async_workers.value.split(",").map((part) => part.trim());
  if (!named.every((part) => /^\d+$/.test(part))) throw new Error("asynchronous workers: expected worker ids, for example 3,5");
  return { name, async_workers: named.map(Number), staleness };
}

function showFields(form) {
  for (const label of form.querySelectorAll("[data-of]")) {
    label.hidden = !label.dataset.of.split(" ").includes(form.elements.name.value);
  }
}

function showParameters(form) {
  const { about, parameters } = shipped.find(({ name }) => name === form.elements["automatic-name"].value);
  say(byId("about"), `${about}.`);
  byId("parameters").replaceChildren(
    ...parameters.map(({ name, kind, default: usual }) => {
      const input = make("input", { name, type: kind === "bool" ? "checkbox" : "number" });
      if (kind === "bool") input.checked = usual;
      else Object.assign(input, { value: usual, step: kind === "int" ? 1 : "any" });
      return make("label", {}, `${name} `, input);
    }),
  );
}

const given = (form) =>
  Object.fromEntries(
    [...byId("parameters").querySelectorAll("input")].map((input) => [
      input.name,
      input.type === "checkbox" ? input.checked : numberOf(input, input.name),
    ]),
  );

export function showControls(job) {
  const before = current;
  current = job;
  const count = job.workers.length;
  const quorum = Math.max(count - 1, 1);
  if (before?.job !== job.job) byId("other").elements.k.value = quorum;
  byId("other").elements.k.max = count;
  const offered = [{ name: "bsp" }, { name: "ssp", staleness: 1 }, { name: "ssp", staleness: 3 }, { name: "ssp", staleness: 10 }, { name: "asp" }];
  if (count > 1) offered.push({ name: "quorum", k: quorum });
  const there = textOf(job.strategy);
  if (!offered.some((one) => textOf(one) === there)) offered.push(job.strategy);
  const fixedFor = job.pool || job.state === "finished";
  keep(byId("strategies"), offered, () => make("button", { type: "button" }, make("i"), make("span")), (button, strategy) => {
    button.dataset.strategy = JSON.stringify(strategy);
    button.firstChild.style.background = colourOf(strategy);
    say(button.lastChild, nameOf(strategy));
    button.setAttribute("aria-pressed", String(textOf(strategy) === there));
    button.disabled = fixedFor;
    button.title = job.pool ? "a process group's job has no other strategy than BSP" : "";
  });
  byId("choose").querySelector("details").hidden = fixedFor;
  const { automatic } = job;
  byId("decides").hidden = !automatic;
  if (automatic) {
    const made = `${automatic.decisions} decisions, ${automatic.changes} changes`;
    const why = automatic.reason ? `; ${automatic.reason}` : "";
    const blind = automatic.blind_to.length ? `; blind to ${automatic.blind_to.join(", ")}` : "";
    say(byId("decides").firstChild, automatic.trouble ? `automatic strategy ${automatic.name} was stopped: ${automatic.trouble}` : `automatic strategy ${automatic.name}: ${made}${blind}${why}`);
  }
}
