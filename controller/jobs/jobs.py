"""Jobs: their workers, slots and strategies. No I/O, no clock, no switch.

A change that is written to the switch takes two steps. It is planned (`hello`, `plan_swap`, `plan_leave`), and
committed after the write (`started`, `swapped`, ...). A failed write changes nothing, but uses up its epoch: the write
may have arrived, and an epoch has one policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace

from serene.controller.jobs import joining, notes
from serene.controller.jobs import precision as precisions
from serene.controller.jobs.errors import BadRequest, Conflict, InTheWay, NoSuchJob
from serene.controller.jobs.job import Elastic, EpochBegun, Job, JobState, Worker, WorkerState
from serene.controller.jobs.plans import Leave, Policy, Readmission, Refusal, Start, Swap, Waiting
from serene.controller.jobs.slots import SlotRange, first_fit, free_ranges
from serene.entries import Endpoint
from serene.errors import choices
from serene.fixedpoint import DEFAULT_LIMIT, DEFAULT_SCALE, LARGEST, POOL_SCALE
from serene.racks import NO_RACKS, Racks
from serene.report import Facts
from serene.strategy import ASP, BSP, Strategy, shrunk
from serene.wire import MOST_IN_POOL

LARGEST_SESSION = 2**32 - 1
LATEST_BY_CLOCK = 2**32 - 2**20  # the latest session that is taken from the clock, in the year 2106


class Jobs:
    """All jobs of one switch, or tree of switches, whose program has ``slots`` slots of ``lanes`` values. max_jobs: ids
    are 0 to max_jobs - 1; max_workers: of one job, over all racks."""

    def __init__(self, *, slots: int, lanes: int, max_jobs: int, max_workers: int) -> None:
        self.total_slots = slots
        self.lanes = lanes
        self.max_jobs = max_jobs
        self.max_workers = max_workers
        self._jobs: dict[int, Job] = {}
        self._last_session = 0

    def __iter__(self) -> Iterator[Job]:
        return iter(sorted(self._jobs.values(), key=lambda job: job.id))

    def get(self, job: int) -> Job | None:
        """The job, or None."""
        return self._jobs.get(job)

    def __getitem__(self, job: int) -> Job:
        """Raises NoSuchJob, which names the existing jobs."""
        if job not in self._jobs:
            raise NoSuchJob(f"there is no job {job} ({self._there_are()})")
        return self._jobs[job]

    def _there_are(self) -> str:
        if not self._jobs:
            return "there are no jobs; create one with 'serenectl jobs create --workers N'"
        return f"jobs: {', '.join(str(job) for job in sorted(self._jobs))}"

    # Creating and deleting

    def create(
        self,
        workers: int,
        strategy: Strategy,
        *,
        job: int | None = None,
        scale: int = DEFAULT_SCALE,
        limit: float = DEFAULT_LIMIT,
        pool_slots: int | None = None,
        racks: Racks | None = None,
        precision: int = 32,
        elastic: Elastic | None = None,
    ) -> Job:
        """A new job that waits for ``workers`` workers.

        job: its id; None: a free one. scale: fixed-point units in 1.0. limit: the largest |value| of a contribution.
        pool_slots: makes it a pool with this number of slots. racks: the workers of each rack; None: there is one
        switch. precision: initial bits of the values of a pool's gradients. elastic: others join later. Raises
        BadRequest, Conflict, or the strategy's own error if it does not fit the workers; InTheWay if it would succeed
        after deleting a finished job.
        """
        if not 1 <= workers <= self.max_workers:
            raise BadRequest(f"a job of {workers} workers: expected 1 to {self.max_workers}")
        precisions.check_scale(workers, scale, limit)
        strategy.compile(range(workers))
        created = Job(self._free_id(job), workers, strategy, scale, limit, racks=racks or NO_RACKS, elastic=elastic)
        if pool_slots is not None:
            self._make_pool(created, pool_slots)
        if precision != created.precision:
            precisions.check(created, self.lanes, precision)
            created.precision = precision
        if pool_slots is not None:  # at once, so that a lack of room is an error before its workers come
            refusal = self._reserve(created, pool_slots * self.lanes)
            if refusal is not None:
                raise Conflict(refusal.reason)
        before = self._jobs.get(created.id)
        if before is not None and not before.over:
            raise InTheWay(before)
        self._jobs[created.id] = created
        return created

    def _make_pool(self, job: Job, slots: int) -> None:
        if job.strategy != BSP():
            raise BadRequest(
                f"a pool runs under BSP only, not {job.strategy}, because its slots are reused. "
                "For other strategies use DistributedOptimizer in docs/pytorch.md"
            )
        if job.workers_expected > MOST_IN_POOL:
            raise BadRequest(f"a pool of {job.workers_expected} workers: expected 1 to {MOST_IN_POOL}")
        if not 1 <= slots <= self.total_slots:
            raise BadRequest(f"pool_slots {slots}: expected 1 to {self.total_slots}")
        job.pool, job.scale, job.limit = True, POOL_SCALE, LARGEST / POOL_SCALE  # known to who takes the job over

    def check_no_pool(self, job_id: int) -> None:
        """Raises Conflict for a pool, whose strategy and members cannot change, and NoSuchJob."""
        if self[job_id].pool:
            raise Conflict(
                f"job {job_id} belongs to a process group, so it stays under BSP and keeps its workers. "
                "For other strategies use DistributedOptimizer in docs/pytorch.md"
            )

    def _free_id(self, wanted: int | None) -> int:
        """The wanted id, or a free one. Free are, in this order: an id that was never used, that of a job that is over,
        that of a finished pool (nothing is read from it any more), that of another finished job. Raises BadRequest or
        Conflict."""
        if wanted is not None and not 0 <= wanted < self.max_jobs:
            raise BadRequest(f"job {wanted}: expected 0 to {self.max_jobs - 1}")
        candidates = range(self.max_jobs) if wanted is None else [wanted]
        for job in candidates:
            if job not in self._jobs:
                return job
        finished = [self._jobs[job] for job in candidates if self._jobs[job].state is JobState.FINISHED]
        if finished:
            return min(finished, key=Job.needed).id
        if wanted is None:
            raise Conflict(f"all {self.max_jobs} job ids are in use: delete a job with 'serenectl jobs delete --job N'")
        delete = f"'serenectl jobs delete --job {wanted}'"
        raise Conflict(f"job {wanted} is {self._jobs[wanted].state.value}: {delete} first, or choose another id")

    def delete(self, job: int) -> None:
        """Commits a deletion; its slots are free at once."""
        del self._jobs[job]

    # Joining

    def hello(
        self,
        job_id: int,
        place: int,
        endpoint: Endpoint,
        vector_length: int,
        now: float,
        session: int = 0,
        goes_on: bool = False,
    ) -> Refusal | Start | Readmission | Waiting | None:
        """A worker that is no member asks to join. Returns a plan to write to the switch, Waiting, or a Refusal; None
        if it has joined already and asked before it knew. Raises InTheWay if a finished job still has the slots that it
        needs.

        place: its number in the rack of its endpoint. vector_length: in values. now: in Unix seconds. session: its last
        one; 0: none. goes_on: it believes that this session continues, and would contribute under seqs that another
        process may have used meanwhile.
        """
        job = self._jobs.get(job_id)
        if job is None:
            return Refusal(f"there is no job {job_id} ({self._there_are()})")
        worker = job.worker_at(endpoint.rack, place)
        if worker is None:
            return Refusal(job.no_worker_at(endpoint.rack, place))
        if refusal := joining.refusal(job, worker, endpoint, vector_length, session, goes_on):
            return refusal
        if job.state is JobState.RUNNING:
            if worker.endpoint == endpoint and not worker.uncertain:
                return None
            if job.pool:
                return Refusal(
                    f"job {job_id} belongs to a process group that started without this process: restart all ranks"
                )
            if job.restoring and worker.endpoint is None:
                job.returning |= {worker.id}  # to the next session, if this one is lost, too
                return Waiting(job.id)  # the others do not wait: late workers could make them begin again for ever
            return self._plan_readmission(job, worker, endpoint)
        known = job.slots is not None and vector_length == job.vector_length
        if not known and (refusal := self._reserve(job, vector_length)):
            return refusal
        worker.come(endpoint, WorkerState.JOINED)
        missing = job.awaited()
        return Waiting(job.id, missing) if missing else self._plan_start(job, now)

    def _reserve(self, job: Job, vector_length: int) -> Refusal | None:
        """Gives the job the slots that a vector of this length needs. Raises InTheWay."""
        if vector_length < 1:
            return Refusal(f"vector_length {vector_length}: expected at least 1")
        count = math.ceil(vector_length / self.lanes)
        taken = self._taken({job.id})
        slots = first_fit(self.total_slots, taken, count)
        if slots is None:
            finished = [other for other in self if other.state is JobState.FINISHED and other.id != job.id]
            if first_fit(self.total_slots, self._taken({job.id, *(other.id for other in finished)}), count):
                raise InTheWay(min((other for other in finished if not other.over), key=Job.needed))
            longest = max((gap.count for gap in free_ranges(self.total_slots, taken)), default=0)
            there = f"the longest free range has {longest} of {self.total_slots} slots"
            needed = f"vector_length {vector_length} needs {count} slots of {self.lanes} values"
            return Refusal(f"{needed}: {there}; 'serenectl up --slots N' provides more")
        job.slots = slots
        job.slots_needed = count
        job.vector_length = vector_length
        return None

    def _taken(self, without: Collection[int]) -> list[SlotRange]:
        """The slots of all jobs, except jobs with the ids ``without``."""
        return [job.slots for job in self if job.id not in without and job.slots is not None]

    def _plan_start(self, job: Job, now: float) -> Start | Refusal:
        assert job.slots is not None
        # A session's number comes from the clock, so that it grows even if the switch has lost the last one. A clock
        # far in the future must not use up the numbers.
        session = max(self._last_session + 1, min(int(now), LATEST_BY_CLOCK))
        if session > LARGEST_SESSION:
            return Refusal("all session numbers are used up: restart the switch and the controller")
        self._last_session = session
        members = job.places()
        first = BSP() if job.lost_sessions else job.strategy  # the sums are restored first
        fields = replace(shrunk(first, sorted(members)).compile(sorted(members)), precision=job.precision)
        policy = Policy(session, 1, first, fields)
        return Start(
            job.id, job.slots, job.vector_length, job.scale, job.limit_units, members, job.lost_sessions, policy,
            job.racks, job.elastic.places if job.elastic is not None else len(members), notes.of(job),
        )  # fmt: skip

    def note_session(self, session: int) -> None:
        """The switch has, or had, a session of this number: later ones get larger numbers."""
        self._last_session = max(self._last_session, session)

    def started(self, start: Start, now: float) -> None:
        """Commits a start."""
        job = self._jobs[start.job]
        job.state = JobState.RUNNING
        job.epochs_spent = start.policy.epoch
        for worker in job.workers:
            if worker.state is not WorkerState.EVICTED:
                worker.state = WorkerState.RUNNING if worker.id in start.members else WorkerState.LEFT
        job.absent, job.returning = 0, frozenset()
        job.restoring = start.lost_sessions > 0
        job.begin_epoch(start.policy, "resumed" if job.restoring else "started", now)

    def plan_restored(self, job_id: int) -> Swap | None:
        """The swap to the job's own strategy after a restoration, without the evicted workers that took part. None if
        that is BSP of the members, which is in force already.

        An unneeded epoch would change the bits of a BSP run: the round in which an epoch begins is not isolated.
        """
        job = self[job_id]
        if job.strategy == BSP() and job.restorers() == job.members():
            return None
        return self._plan_policy(job, job.strategy, job.members(), "restored", job.evicted())

    def restored(self, job_id: int, swap: Swap | None, now: float) -> None:
        """Commits the end of a restoration."""
        self._jobs[job_id].restoring = False
        if swap is not None:
            self.swapped(swap, now)

    def _plan_readmission(self, job: Job, worker: Worker, endpoint: Endpoint) -> Readmission:
        members = sorted({*job.members(), *(() if worker.stays_evicted(endpoint) else (worker.id,))})
        why = f"worker {job.racks.name(worker.id)} {'restarted' if worker.endpoint else 'came back'}"
        swap = self._plan_policy(job, job.in_force, members, why, (*job.evicted(), worker.id))
        places = {**job.places(), worker.id: endpoint}
        return Readmission(job.id, worker.id, worker.endpoint, endpoint, places, swap)

    def readmitted(self, readmission: Readmission, now: float) -> None:
        """Commits a readmission."""
        job = self._jobs[readmission.job]
        worker = job.workers[readmission.worker]
        worker.come(readmission.new, WorkerState.RUNNING)
        self.swapped(readmission.swap, now)

    def not_readmitted(self, readmission: Readmission) -> None:
        """A write of a readmission failed: the next process that asks is readmitted."""
        self._jobs[readmission.job].workers[readmission.worker].uncertain = True

    # Strategies

    def plan_swap(self, job_id: int, strategy: Strategy, reason: str = "requested") -> Swap | None:
        """The swap to another strategy; None if the job does not run yet or is restoring: `choose` is enough.

        Raises NoSuchJob; Conflict for a pool, a finished job, or a job without members; or the strategy's own error if
        it does not fit.
        """
        self.check_no_pool(job_id)
        job = self[job_id]
        if job.state is JobState.FINISHED:
            raise Conflict(f"job {job_id} has finished: its strategy cannot change")
        if job.state is JobState.WAITING or job.restoring:
            strategy.compile(range(len(job.workers)))
            return None
        if not job.members():
            back = f"readmit one with 'serenectl readmit --job {job_id} --worker N'"
            raise Conflict(f"job {job_id}: all its workers are evicted; {back}")
        fields = strategy.compile(job.members())
        return Swap(job_id, Policy(job.session, self._next_epoch(job), strategy, fields), reason)

    def plan_precision(self, job_id: int, bits: int) -> Swap | None:
        """The swap to another precision of a pool's gradients; None if it is in force already. Raises NoSuchJob,
        BadRequest or Conflict."""
        job = self[job_id]
        fields = precisions.change(job, self.lanes, bits)
        if fields is None:
            return None
        return Swap(job_id, Policy(job.session, self._next_epoch(job), job.strategy, fields), f"precision {bits}")

    def has_already(self, job_id: int, strategy: Strategy) -> bool:
        """Whether this strategy is certainly in force in a running job. Then a new epoch is not needed, and would
        change the bits of a BSP run. After a failed write it is not certain. Raises NoSuchJob."""
        job = self[job_id]
        if job.state is not JobState.RUNNING or job.restoring or not job.members():
            return False
        fits = shrunk(strategy, job.members()) == strategy
        return fits and strategy == job.strategy and not job.in_doubt

    def taking_part(self, job_id: int, named: Iterable[int]) -> list[int]:
        """The workers that are members or evicted, in order. named: workers that have to be among them.

        Raises NoSuchJob; Conflict for a pool, for a job that does not run, or if a named worker has left or does not
        exist.
        """
        self.check_no_pool(job_id)
        job = self[job_id]
        if job.state is not JobState.RUNNING:
            raise Conflict(f"job {job_id} is {job.state.value}: nobody can be evicted or readmitted")
        taking_part = sorted(job.members() + job.evicted())
        if strangers := set(named) - set(taking_part):
            raise Conflict(f"worker {choices(strangers)} does not take part in job {job_id}: "
                           f"expected {choices(taking_part)}")  # fmt: skip
        return taking_part

    def plan_barrier(self, job_id: int, strategy: Strategy, evicted: Iterable[int], reason: str) -> Swap | None:
        """The swap to a strategy under which exactly these workers are evicted; None if that is certainly in force.

        Raises as `taking_part`, Conflict if no member would be left, or the strategy's own error if it does not fit.
        """
        job, evicted = self[job_id], frozenset(evicted)
        taking_part = self.taking_part(job_id, evicted)
        members = [worker for worker in taking_part if worker not in evicted and worker in job.places()]
        if not members:
            raise Conflict(f"job {job_id}: the last member cannot be evicted")
        if evicted == set(job.evicted()) and strategy == job.in_force and not job.in_doubt:
            return None
        if strategy != job.in_force:
            strategy.compile(taking_part)  # it is compiled for the remaining members, but has to fit all participants
        return replace(self._plan_policy(job, strategy, members, reason), evicted=evicted)

    def choose(self, job_id: int, strategy: Strategy) -> None:
        """Stores the strategy with which a waiting job will start, or a restoring one continue."""
        self[job_id].strategy = strategy

    def swapped(self, swap: Swap, now: float) -> EpochBegun:
        """Commits a swap."""
        job = self._jobs[swap.job]
        if swap.evicted is not None:
            job.mark_evicted(swap.evicted)
        return job.begin_epoch(swap.policy, swap.reason, now)

    def _plan_policy(
        self, job: Job, strategy: Strategy, members: list[int], reason: str, free: Sequence[int] = ()
    ) -> Swap:
        """The swap to a strategy for these members. free: the evicted workers that continue if no member is left."""
        fields = shrunk(strategy, members).compile(members) if members else ASP().compile(free)
        fields = replace(fields, precision=job.precision)
        return Swap(job.id, Policy(job.session, self._next_epoch(job), strategy, fields), reason)

    @staticmethod
    def _next_epoch(job: Job) -> int:
        job.epochs_spent += 1
        job.in_doubt = True  # until it is committed
        return job.epochs_spent

    # Leaving

    def plan_leave(
        self,
        job_id: int,
        place: int,
        at: Endpoint,
        contributions_sent: int | None,
        active: Collection[int] = (),
        session: int = 0,
        died: Collection[int] = (),
    ) -> Leave:
        """A worker's LEAVE, the first or a later one.

        place: its number in its rack. contributions_sent: packets, as it reports; None: not reported. active: the
        workers that sent something recently. session: its own; 0: none. died: a pool's workers that it reports dead;
        `Upkeep` believes it when they are silent. The job is over when no member is left and no evicted worker is
        active; an active one continues asynchronously. The last LEAVE is written to the switch, too: otherwise a
        controller that takes over would wait for that worker. Raises NoSuchJob or Conflict.
        """
        job, worker = self._begun(job_id, place, at)
        worker_id = worker.id
        if session not in (0, job.session):
            finished = job.state is JobState.FINISHED
            return Leave(job_id, worker_id, contributions_sent, None, job_over=finished, counts=False)
        if job.pool:
            job.died.update(worker for worker in died if 0 <= worker < len(job.workers))
        before, state = job.members(), worker.state
        remaining = [member for member in before if member != worker_id]
        free = [worker for worker in job.evicted() if worker in active and worker != worker_id]
        # If the others became silent after it had left, `Upkeep` ends the job: that is an epoch, and has to be written.
        over = job.state is JobState.FINISHED or (state is not WorkerState.LEFT and not (remaining or free))
        swap = None
        gone = state is WorkerState.RUNNING or (state is WorkerState.EVICTED and (job.restoring or not remaining))
        if job.state is JobState.RUNNING and gone:
            swap = self._plan_policy(job, job.in_force, remaining, f"worker {job.racks.name(worker_id)} left", free)
        return Leave(job_id, worker_id, contributions_sent, swap, job_over=over)

    def left(self, leave: Leave, now: float) -> None:
        """Commits a LEAVE. The last one ends the job, whose entries stay until it is `due`."""
        if not leave.counts:
            return
        job = self._jobs[leave.job]
        worker = job.workers[leave.worker]
        worker.state = WorkerState.LEFT
        if leave.contributions_sent is not None:
            worker.contributions_sent = leave.contributions_sent
        if leave.swap is not None:
            self.swapped(leave.swap, now)
        if leave.job_over:
            self._finished(job)

    def plan_abandoned(self, job_id: int) -> Swap:
        """The swap that ends a job: all its members have left, and its evicted workers are silent."""
        job = self._jobs[job_id]
        return self._plan_policy(job, job.in_force, [], "abandoned")

    def abandoned(self, swap: Swap, now: float) -> None:
        """Commits the end of an abandoned job."""
        self.swapped(swap, now)
        self._finished(self._jobs[swap.job])

    @staticmethod
    def _finished(job: Job) -> None:
        if job.state is JobState.RUNNING:
            job.state = JobState.FINISHED

    def due(self, now: float, grace_s: float) -> list[int]:
        """The ids of finished jobs whose entries may be removed. Entries stay for the workers' last PULLs: for
        ``grace_s`` seconds since a call of this method first found the job finished, or since `Job.note_reads`. A pool
        has no last PULLs. now: on the monotonic clock."""
        finished = [job for job in self if job.state is JobState.FINISHED and job.slots is not None]
        for job in finished:
            job.finished_at = now if job.finished_at is None else job.finished_at
        return [job.id for job in finished if job.pool or now - (job.finished_at or now) >= grace_s]

    def cleared(self, job_id: int) -> None:
        """Commits that the switch has no entries of the job any more; it stays listed."""
        self._jobs[job_id].slots = None

    # Telemetry, and jobs found or lost

    def take_over(self, job: Job) -> None:
        """Adds a job that the switch runs already. Known facts about its session are kept."""
        known = self._jobs.get(job.id)
        if known is not None and known.session == job.session:
            job.remember(known)
        self._jobs[job.id] = job
        self.note_session(job.session)

    def report(self, job_id: int, place: int, at: Endpoint, report: Facts, now: float) -> int:
        """Stores a worker's latest REPORT, and returns its number in the job. place: its number in its rack. now: on
        the monotonic clock. Raises NoSuchJob or Conflict."""
        _, worker = self._begun(job_id, place, at)
        worker.report, worker.reported_at = report, now
        return worker.id

    def _begun(self, job_id: int, place: int, at: Endpoint) -> tuple[Job, Worker]:
        """The job and the worker. Raises NoSuchJob, or Conflict if a packet belongs to an earlier job of this id or to
        an earlier incarnation."""
        job = self[job_id]
        worker = job.worker_at(at.rack, place)
        if job.state is JobState.WAITING or worker is None or worker.endpoint != at:
            raise Conflict(f"worker {place} at {at} is not admitted to job {job_id}")
        return job, worker

    def switch_has_only(
        self, held: Container[int], active: Callable[[Job], Collection[int]] = lambda job: ()
    ) -> list[int]:
        """Stores that the switch holds only the jobs ``held``. Other running jobs wait for their workers again; returns
        their ids. active: as of `Job.reset`, by job."""
        ran = []
        for job in (each for each in self if each.id not in held):
            if job.state is JobState.RUNNING:
                job.reset(active(job))
                ran.append(job.id)
            elif job.state is JobState.FINISHED:
                job.slots = None
        return ran
