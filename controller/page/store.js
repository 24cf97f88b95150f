// The stored data of the jobs, of bounded size: an hour in bins, and the latest changes of state exactly.

export const BIN_S = 2; // as in controller/status/recorder.py
export const BINS = 1800;
const MOST_TURNS = 3000;
const MOST_EPOCHS = 2000;
const RATE_OVER_S = 5;

class WorkerRecord {
  constructor() {
    this.turns = []; // [seconds, state], oldest first
    this.first = Infinity; // the number of the bin in which the worker began
    this.last = -1; // the number of the newest bin
    this.shares = [0, 1, 2].map(() => new Uint8Array(BINS)); // computing, exchanging, waiting, in per cent
    this.loss = new Float32Array(BINS).fill(NaN);
    this.accuracy = new Float32Array(BINS).fill(NaN);
    this.iterations = []; // [seconds, iteration] during the last seconds
  }

  hear(told) {
    if (told.turns.length) {
      const known = this.turns.findIndex(([t]) => t >= told.turns[0][0]); // later ones are replaced by the controller's
      if (known >= 0) this.turns.length = known;
    }
    this.turns.push(...told.turns);
    if (this.turns.length > MOST_TURNS) this.turns.splice(0, this.turns.length - MOST_TURNS / 2);
    const lists = [told.computing, told.sending, told.waiting];
    for (let i = 0; i < told.computing.length; i++) {
      const bin = told.first + i;
      this.open(bin);
      const at = bin % BINS;
      lists.forEach((list, part) => (this.shares[part][at] = list[i]));
      this.loss[at] = told.loss[i] ?? NaN;
      this.accuracy[at] = told.accuracy[i] ?? NaN;
    }
  }

  open(bin) {
    if (this.last < 0) this.last = bin - 1;
    this.first = Math.min(this.first, bin);
    for (let b = Math.max(this.last + 1, bin - BINS + 1); b <= bin; b++) {
      for (const values of this.shares) values[b % BINS] = 0;
      this.loss[b % BINS] = this.accuracy[b % BINS] = NaN;
    }
    this.last = Math.max(this.last, bin);
  }

  has(bin) {
    return bin >= this.first && bin <= this.last && bin > this.last - BINS;
  }

  note(t, iteration) {
    const past = this.iterations;
    if (past.length && iteration < past[past.length - 1][1]) past.length = 0; // another session
    past.push([t, iteration]);
    while (t - past[0][0] > RATE_OVER_S) past.shift();
  }

  get rate() {
    const past = this.iterations;
    const took = past.length ? past[past.length - 1][0] - past[0][0] : 0;
    return took > 0 ? (past[past.length - 1][1] - past[0][1]) / took : 0;
  }
}

export class JobRecord {
  constructor(recording) {
    this.recording = recording;
    this.workers = new Map();
    this.epochs = new Map(); // by session and epoch: { t, strategy, reason }
  }

  worker(id) {
    if (!this.workers.has(id)) this.workers.set(id, new WorkerRecord());
    return this.workers.get(id);
  }

  hearEpochs(history) {
    for (const begun of history) this.epochs.set(`${begun.session}:${begun.epoch}:${begun.t}`, begun);
    for (const key of this.epochs.keys()) {
      if (this.epochs.size <= MOST_EPOCHS) break;
      this.epochs.delete(key); // the oldest one
    }
  }

  // The stored epochs, oldest first.
  get swaps() {
    return [...this.epochs.values()].sort((a, b) => a.t - b.t);
  }
}

export class Store {
  constructor() {
    this.jobs = new Map();
    this.events = [];
    this.since = 0;
    this.now = null; // the latest answer
    this.ahead = 0; // of the controller's clock, in seconds
  }

  hear(told) {
    this.now = told;
    this.since = told.t;
    this.ahead = told.t - Date.now() / 1000;
    const newest = this.events.length ? this.events[this.events.length - 1].t : 0;
    this.events.push(...told.events.filter((event) => event.t > newest));
    this.events.splice(0, this.events.length - 200);
    for (const timeline of told.timelines) {
      let record = this.jobs.get(timeline.job);
      if (!record || record.recording !== timeline.recording) {
        const before = record?.recording;
        record = new JobRecord(timeline.recording);
        this.jobs.set(timeline.job, record);
        if (before) this.since = 0; // another job with this id: requests all its data once
      }
      for (const worker of timeline.workers) record.worker(worker.worker).hear(worker);
    }
    const there = new Set(told.status.jobs.map((job) => job.job));
    for (const id of this.jobs.keys()) if (!there.has(id)) this.jobs.delete(id);
    for (const job of told.status.jobs) {
      const record = this.jobs.get(job.job);
      record.hearEpochs(job.history);
      for (const worker of job.workers) record.worker(worker.worker).note(told.t, worker.iteration);
    }
  }

  // The controller's clock.
  get clock() {
    return Date.now() / 1000 + this.ahead;
  }
}
