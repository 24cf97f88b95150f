// The page's requests to its controller. Every answer is JSON; an error's message names the cause.

const PATIENCE_MS = 10000;

export class Refused extends Error {
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

// No answer, or one that could not be read.
export class NoAnswer extends Error {}

async function ask(method, path, body) {
  const options = { method, cache: "no-store" };
  if (method === "GET") options.signal = AbortSignal.timeout(PATIENCE_MS); // a tunnel may hang
  if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let answer, told;
  try {
    answer = await fetch(path, options);
    told = await answer.json();
  } catch (error) {
    throw new NoAnswer(`The controller does not answer: ${error.message}`);
  }
  if (!answer.ok) throw new Refused(told.error ?? `HTTP ${answer.status}`, answer.status);
  return told;
}

// Exchanges the token for a cookie, which the browser stores and no script can read.
export async function enter(token) {
  const answer = await fetch("/v1/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) throw new Refused((await answer.json()).error, answer.status);
}

export const live = (since) => ask("GET", `/v1/live?since=${since}`);
export const choices = () => ask("GET", "/v1/choices");
export const job = (id) => ask("GET", `/v1/jobs/${id}`);
export const createJob = (workers, strategy) => ask("POST", "/v1/jobs", { workers, strategy });
export const deleteJob = (id) => ask("DELETE", `/v1/jobs/${id}`);
export const setStrategy = (id, strategy) => ask("PUT", `/v1/jobs/${id}/strategy`, strategy);
export const setAutomatic = (id, name, parameters) => ask("PUT", `/v1/jobs/${id}/automatic`, { name, parameters });
export const unsetAutomatic = (id) => ask("DELETE", `/v1/jobs/${id}/automatic`);
export const evict = (id, worker) => ask("PUT", `/v1/jobs/${id}/workers/${worker}/evicted`);
export const readmit = (id, worker) => ask("DELETE", `/v1/jobs/${id}/workers/${worker}/evicted`);
