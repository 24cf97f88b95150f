// A row for each worker: its state, its progress, its shares of time, and a button to evict or readmit it.

import { byId, keep, make, say } from "./dom.js";
import { beginsRack, colourOfState, fixed, workerName } from "./looks.js";
import { drawSmall } from "./staleness.js";

const PARTS = [["compute_s", "computing"], ["network_s", "exchanging"], ["waiting_s", "waiting"]];
const NAMES = ["worker", "", "iteration", "lead", "per s", "loss", "accuracy", "time", "staleness", ""];
const LEVELS = { leaf: " at its leaf", root: " at the root" };

// command(worker, evicted): sends the command.
export function showWorkers(job, told, record, command) {
  const going = job.workers.filter((worker) => worker.state === "running").map((worker) => worker.iteration);
  const least = going.length ? Math.min(...going) : 0;
  const words = new Map(told.workers.map((worker) => [worker.worker, worker]));
  keep(byId("workers").tBodies[0], job.workers, () => row(command), (tr, worker, i) => {
    const doing = words.get(worker.worker);
    const report = worker.report ?? {};
    const cells = tr.children;
    const running = worker.state === "running";
    const name = workerName(job, worker.worker);
    tr.className = doing.state === "silent" ? "silent" : running ? "" : "out";
    tr.classList.toggle("rack", beginsRack(job, i));
    say(cells[0], name);
    say(cells[1], doing.waits_for.length ? `waits for ${names(job, doing.waits_for)}${LEVELS[doing.level] ?? ""}` : doing.state);
    say(cells[2], String(worker.iteration));
    say(cells[3], running ? `+${worker.iteration - least}` : "");
    say(cells[4], fixed(record.worker(worker.worker).rate, 1));
    say(cells[5], fixed(report.loss, 4));
    say(cells[6], fixed(report.accuracy, 3));
    timeBar(cells[7].firstChild, report);
    drawSmall(cells[8].firstChild, worker.staleness);
    const button = cells[9].firstChild;
    button.hidden = job.state !== "running" || job.pool || !(running || worker.state === "evicted");
    button.dataset.worker = worker.worker;
    button.dataset.evict = running ? "yes" : "no";
    say(button, running ? "Evict" : "Readmit");
    button.setAttribute("aria-label", `${running ? "Evict" : "Readmit"} worker ${name}`);
  });
}

function row(command) {
  const button = make("button", { className: "quiet" });
  button.addEventListener("click", () => command(Number(button.dataset.worker), button.dataset.evict === "yes"));
  const inside = { 7: make("div", { className: "bar" }, make("span"), make("span"), make("span")), 8: make("canvas"), 9: button };
  inside[7].setAttribute("role", "img");
  inside[8].setAttribute("role", "img");
  const tr = make("tr", {}, ...NAMES.map((_, i) => make("td", {}, ...(inside[i] ? [inside[i]] : []))));
  NAMES.forEach((name, i) => (tr.children[i].dataset.name = name));
  tr.children[1].className = "text doing";
  tr.children[7].className = tr.children[8].className = "text";
  return tr;
}

const names = (job, numbers) =>
  numbers.slice(0, 4).map((number) => workerName(job, number)).join(", ") + (numbers.length > 4 ? " …" : "");

function timeBar(bar, report) {
  const seconds = PARTS.map(([key]) => (typeof report[key] === "number" && report[key] >= 0 ? report[key] : 0));
  const total = seconds.reduce((a, b) => a + b, 0);
  seconds.forEach((part, i) => {
    bar.children[i].style.width = total ? `${(100 * part) / total}%` : "0";
    bar.children[i].style.background = colourOfState(PARTS[i][1]);
  });
  const share = (i) => (total ? Math.round((100 * seconds[i]) / total) : 0);
  bar.title = `computing ${share(0)} %, exchanging ${share(1)} %, waiting ${share(2)} %`;
  bar.setAttribute("aria-label", bar.title);
}
