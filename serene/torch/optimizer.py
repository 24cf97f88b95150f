"""Training a PyTorch model on several workers with any optimizer, under any strategy.

    optimizer = serene.torch.DistributedOptimizer(torch.optim.AdamW(model.parameters()), job="gpt", workers=4)

Every worker runs the same program. Its optimizer changes its own parameters. The change is sent to the switch, and the
parameters then include all workers' changes (`serene.torch.replica`).
"""

from __future__ import annotations

import functools
import logging
import os
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

import torch
from torch import Tensor
from typing_extensions import ParamSpec, Self

from serene.errors import SereneError
from serene.strategy import parse, to_dict
from serene.torch import checkpoint, termination
from serene.torch.arguments import check, check_types, elastic
from serene.torch.checkpoint import OUTER_MOMENTUM, RESIDUAL
from serene.torch.membership import Member, Setting, Wanted, leave_without_close, momentum
from serene.torch.opening import Controller
from serene.torch.replica import REACH, BadParameters, BadUpdate, Named, Replica, limit_for, scale_for, set_values
from serene.torch.warning import warn_user
from serene.torch.work import SwitchWork

P = ParamSpec("P")
T = TypeVar("T")
LOG = logging.getLogger("serene.torch")


def _brief(method: Callable[P, T]) -> Callable[P, T]:
    """Removes the inner frames from the traceback of a method's SereneErrors. They do not help a user; the log has them
    at the level DEBUG."""

    @functools.wraps(method)
    def brief(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return method(*arguments, **named)
        except SereneError as error:
            LOG.debug("%s", error, exc_info=error)
            raise error.with_traceback(None) from None

    return brief


class DistributedOptimizer(torch.optim.Optimizer):
    """A worker's optimizer, whose parameters are shared by all workers of a job.

    optimizer: any; it changes this worker's parameters. job: the job's name at the controller ($SERENE_CONTROLLER). The
    first processes make the job, under ``strategy``, which 'serenectl sync' changes. workers: processes that train
    together; with ``places``, ``minimum`` or ``evict_after``, those with which the training begins: then others come
    and go. places: most workers at a time, by default ``workers``. evict_after: seconds of silence after which a worker
    is evicted, 10 by default. minimum: eviction leaves at least this number of members, by default 1. on_members:
    called by `step` with `workers` after joining and whenever the number has changed. every: steps of the optimizer
    from one exchange to the next. overlap: exchange in the background while the next steps are computed. outer:
    momentum of the updates from one exchange to the next (Nesterov's, as DiLoCo's outer one with a rate of 1), from 0
    to less than 1. limit: the largest distance of a parameter from its start, in the parameter's unit; by default it
    follows from the first updates. start: `start` of another process of the job, for a process that may find the job
    running and has loaded a checkpoint of it; unused if the job does not run. timeout_s: seconds to wait for the other
    processes, at the beginning and in `close`.

    The first exchange waits for all ``workers``. A process that comes later gets the others' parameters here. Raises
    SereneError for impossible arguments, without a controller, for parameters that do not fit the switch, and for a job
    that runs with other settings.
    """

    @_brief
    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        job: str,
        workers: int,
        every: int = 1,
        overlap: bool = False,
        outer: float = 0.0,
        limit: float | None = None,
        strategy: str = "bsp",
        places: int | None = None,
        minimum: int | None = None,
        evict_after: float | None = None,
        on_members: Callable[[int], None] = lambda workers: None,
        start: Tensor | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, DistributedOptimizer):
            raise SereneError(
                f"optimizer is a {type(optimizer).__name__}: expected an optimizer of torch.optim, not wrapped yet"
            )
        if start is not None and not (isinstance(start, Tensor) and start.is_floating_point() and start.dim() == 1):
            raise SereneError(f"start is a {type(start).__name__}: expected a vector, `start` of another process")
        if not callable(on_members):
            raise SereneError(f"on_members={on_members!r}: expected a function of the number of members")
        check_types(
            {"workers": workers, "every": every, "places": places, "minimum": minimum},
            {"outer": outer, "limit": limit, "timeout_s": timeout_s, "evict_after": evict_after},
        )
        if not isinstance(strategy, str):
            raise SereneError(f"strategy={strategy!r}: expected a text, for example 'ssp:3'")
        check(job, workers, every, outer, limit, timeout_s)
        self._elastic = elastic(workers, places, minimum, evict_after)
        self._strategy = to_dict(parse(strategy))
        parse(strategy).compile(range(workers))
        self.optimizer = optimizer
        # Attributes that Optimizer's own __init__ sets, except parameter groups and state, which are the wrapped
        # optimizer's.
        super().__setstate__({"defaults": optimizer.defaults})
        self.job, self.every, self.overlap, self.outer = job, every, overlap, outer
        self._expected, self._limit, self._timeout_s = workers, limit, timeout_s
        self._places = int(self._elastic.get("places", workers))
        self._on_members, self._notified_of = on_members, 0  # the last number
        self._process = os.getpid()
        self._controller = Controller()
        self._replica: Replica | None = None
        self._place: Member | None = None  # also before it has joined
        self._under_way: SwitchWork | None = None
        self._steps = 0  # since the last exchange
        self._exchanges = 0  # of the member, before the present contribution
        self._closed = False
        self._over = True  # whether all others had left before this worker closed
        self._warned = 0
        trained = self._trained()
        if not trained:
            raise BadParameters("the optimizer has no trainable parameter: expected one with requires_grad")
        self._controller.check_room(sum(named.parameter.numel() for named in trained))
        self._joins_running_job = self._controller.find(job) is not None
        if self._joins_running_job:  # this process begins with the others' parameters
            if start is not None:
                set_values(trained, start)
            self._begin()
            self._join(self._begun.first_reach())
            self._take_the_jobs_numbers()
            self._begun.take()
            if bool(self._begun.sum.any()):
                self._begun.show()
        _close_in_children(self)

    # -- as any optimizer ------------------------------------------------------------------------------------

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        return self.optimizer.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        return self.optimizer.state

    @_brief
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of the optimizer and, after each ``every`` of them, an exchange. Returns the result of the
        optimizer's step. Raises BadUpdate, a SereneError, for an update that is not finite, and the exchange's
        errors."""
        if self._closed:
            raise SereneError(f"the optimizer is closed: this worker has left job {self.job!r}")
        if self._replica is None:
            self._begin()
        if self._identities() != self._all:
            raise SereneError(
                f"the optimizer's parameters are not those of the first step, and job {self.job!r} shares only these: "
                "set them before the first step"
            )
        for named in self._frozen:
            if named.parameter.requires_grad:
                raise SereneError(
                    f"{named.name} was frozen at the first step, so it is not shared: unfreeze it before the first "
                    "step, or start another job"
                )
        if self._joins_running_job:
            self._joins_running_job = False
            self._keep_the_jobs_parameters()
        with self._begun.interruptible():
            self._end_interrupted()
            self._steps += 1  # before the step: an interrupt of it may leave changes, which `close` sends, too
            loss = self.optimizer.step() if closure is None else self.optimizer.step(closure)
            if self._steps >= self.every:
                self._exchange()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Raises SereneError when the parameters are shared: the length of all workers' vectors is then fixed."""
        if self._replica is not None:
            raise SereneError(f"job {self.job!r} has started: add parameter groups before the first step")
        self.optimizer.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, so that either loads the other's. Its parameter groups also have this worker's
        ``residual``, and with ``outer`` the ``outer_momentum``: lists of the parameters' tensors. Warns if there are
        updates that were not sent, or are not read yet: the state does not contain these."""
        for before in self._optimizer_state_dict_pre_hooks.values():
            before(self)
        saved = self.optimizer.state_dict()
        if (replica := self._replica) is not None:
            if self._under_way is not None or replica.contributing or not replica.is_shown():
                warn_user(
                    f"the state is saved between two exchanges of job {self.job!r}: it lacks this worker's updates "
                    "since the last one. Save after an exchange without overlap, or after close()"
                )
            for name, parts in ((RESIDUAL, replica.pending()), (OUTER_MOMENTUM, replica.outer_momentum)):
                if parts:
                    of = dict(zip(self._shared, parts, strict=True))
                    checkpoint.add_part(saved["param_groups"], self.param_groups, name, of)
        for after in self._optimizer_state_dict_post_hooks.values():
            if (changed := after(self, saved)) is not None:
                saved = changed
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """First ends an interrupted exchange, as `step` does. Raises SereneError for a residual or an outer momentum
        that does not fit the parameters, and that exchange's errors; then nothing is loaded."""
        for before in self._optimizer_load_state_dict_pre_hooks.values():
            if (changed := before(self, state_dict)) is not None:
                state_dict = changed
        state_dict = checkpoint.checked(state_dict, self.param_groups)
        if self._replica is not None:
            with self._replica.interruptible():
                self._end_interrupted()
        self.optimizer.load_state_dict(state_dict)
        if self._replica is not None:
            self._take_loaded(self._replica)
            checkpoint.remove_parts(self.param_groups)
        for after in self._optimizer_load_state_dict_post_hooks.values():
            after(self)

    def __repr__(self) -> str:
        return f"DistributedOptimizer of job {self.job!r}: {self.optimizer!r}"

    def __getstate__(self) -> dict[str, Any]:
        raise SereneError(
            "a DistributedOptimizer cannot be copied or pickled, since it holds a place in a job: save its state_dict()"
        )

    # -- the job ---------------------------------------------------------------------------------------------

    @property
    def workers(self) -> int:
        """The number of members, by the switch's last answer; before the first exchange the expected number."""
        return self._expected if self._member is None else self._member.workers

    @property
    def worker(self) -> int | None:
        """This process's number in the job; None before the first exchange."""
        return None if self._member is None else self._member.worker

    @property
    def unit(self) -> float:
        """The change of a parameter per unit of the sum; 0 before the first exchange."""
        return self._begun.unit

    @property
    def start(self) -> Tensor:
        """The parameters' values when the job began, one vector: for a checkpoint, and the argument ``start``. Empty
        before the first step."""
        return torch.empty(0) if self._replica is None else self._replica.start

    @property
    def sum_of_updates_read(self) -> Tensor:
        """The sum of all contributions that this worker has read, int32[values] in units. Parameters are their start
        plus `unit` times this. Empty before the first step. Do not change it: the worker uses the same memory."""
        return torch.empty(0, dtype=torch.int32) if self._replica is None else self._replica.sum

    @property
    def sum_of_updates_sent(self) -> Tensor:
        """The sum of this worker's own contributions, as ``sum_of_updates_read``, modulo 2^32."""
        return torch.empty(0, dtype=torch.int32) if self._replica is None else self._replica.sent

    @_brief
    def close(self) -> bool:
        """Sends the remaining updates, leaves, and waits until all workers have left: then all have the same
        parameters. Returns whether this succeeded within the timeout. Raises as `step`."""
        if self._closed or not (self._member or self._steps):
            self._closed = True
            return self._over
        try:
            if self._place is not None:
                self._place.check()  # a join that failed would take long to fail again
            self._end_interrupted()
            if self._steps:
                self._exchange()
            self._wait()
            assert self._member is not None
            self._closed = True
            self._over = self._member.leave(self._timeout_s)
        except BaseException:
            self._over = False
            self._abandon()
            raise
        self._begun.take()
        self._begun.show()
        if not self._over:
            warn_user(
                f"not all workers left job {self.job!r} before its end or within {self._timeout_s:g} s: this worker's "
                "parameters may lack the others' last updates"
            )
        return self._over

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close() if kind is None else self._abandon()

    # -- within ----------------------------------------------------------------------------------------------

    @property
    def _member(self) -> Member | None:
        """This worker in its job; None before it has joined."""
        return self._place if self._place is not None and self._place.joined else None

    @property
    def _begun(self) -> Replica:
        if self._replica is None:
            self._begin()
        assert self._replica is not None
        return self._replica

    def _named(self) -> Iterator[Named]:
        for number, group in enumerate(self.param_groups):
            names = group.get("param_names") or []
            for index, parameter in enumerate(group["params"]):
                shape = list(parameter.shape)
                name = names[index] if index < len(names) else f"parameter {index} of group {number}"
                yield Named(f"{name} (shape {shape})", parameter)

    def _identities(self) -> list[int]:
        """Of all parameters."""
        return [id(parameter) for group in self.param_groups for parameter in group["params"]]

    def _trained(self) -> list[Named]:
        return [named for named in self._named() if named.parameter.requires_grad]

    def _begin(self) -> None:
        checkpoint.move_older(self.state, self.param_groups)  # the wrapped optimizer may have loaded them
        checkpoint.check_parts(self.param_groups, self.param_groups)
        self._all = self._identities()
        self._frozen = [named for named in self._named() if not named.parameter.requires_grad]
        trained = self._trained()
        self._shared = [named.parameter for named in trained]
        replica = Replica(trained, self.outer)
        self._take_loaded(replica)
        # In this order: an interrupt in between must not lose what was loaded.
        self._replica = replica
        checkpoint.remove_parts(self.param_groups)

    def _take_loaded(self, replica: Replica) -> None:
        """Takes what `state_dict` has added from the wrapped optimizer's state, if that was loaded."""
        outer, residual = (checkpoint.part_of(self.param_groups, name) for name in (OUTER_MOMENTUM, RESIDUAL))
        if outer is not None:
            replica.set_outer_momentum([outer.get(each) for each in self._shared])
        if residual is None:
            return
        if not self._joins_running_job:
            replica.set_pending([residual.pop(each, None) for each in self._shared])
        if any(part.any() for part in residual.values()):
            why = "the job runs, and may have it already" if self._joins_running_job else "parameters are frozen now"
            LOG.warning("job %r: the checkpoint's residual is not used: %s", self.job, why)

    def _keep_the_jobs_parameters(self) -> None:
        """A checkpoint that was loaded after joining would count as an update, which undoes the others'."""
        if not self._begun.is_shown():
            LOG.warning(
                "job %r runs: its parameters replace those that were loaded since the optimizer was made", self.job
            )
            self._begun.show()

    def _settings(self) -> dict[str, Setting]:
        replica = self._begun
        shapes, start = replica.digest()
        return {
            "workers": self._expected,
            "every": self.every,
            "outer": f"{self.outer:g}",
            "optimizer": type(self.optimizer).__name__,
            "strategy": ":".join(str(value) for value in self._strategy.values()),
            "limit": "by the first updates" if self._limit is None else f"{self._limit:.9g}",
            "parameters": f"{len(self._trained())} of {replica.values:,} values",
            "digest of their shapes": shapes,
            "digest of their first values (made the same by one torch.manual_seed, or one checkpoint)": start,
            **{name: f"{value:g}" for name, value in self._elastic.items()},
        }

    def _join(self, reach: float) -> None:
        replica = self._begun
        limit = limit_for(self._places)
        scale = scale_for(reach if self._limit is None else self._limit, self._places)
        wanted = Wanted(self.job, self._expected, self._settings(), self._strategy, scale, limit, self._elastic)
        # An interrupt may come between any two operations: this worker must be known before it joins.
        self._place = Member(self._controller, wanted, replica.read, replica.sent.numpy(), self._timeout_s)
        weakref.finalize(self, leave_without_close, self._place, self.job, os.getpid())
        self._place.join()
        LOG.info("worker %d of job %s (%d)", self._place.worker, self.job, self._place.job)

    def _take_the_jobs_numbers(self) -> None:
        replica, member = self._begun, self._member
        assert member is not None
        member.session.facts["momentum"] = max(map(momentum, self.param_groups))
        replica.begin(member.scale, member.limit)

    def _exchange(self) -> None:
        replica = self._begun
        try:
            if self._member is None:
                self._join(replica.first_reach())
            assert self._member is not None
            if not replica.begun:  # also if an interrupt came when this worker had joined
                self._take_the_jobs_numbers()
            self._wait()
            self._exchanges = self._member.exchanges
            contribution = replica.contribute(self._member.workers)
        except BadUpdate as bad:
            who = "a worker" if self._member is None else f"worker {self._member.worker}"
            raise BadUpdate(f"{who} of job {self.job!r}: {bad}") from None
        self._steps = 0
        if self.overlap:
            replica.take(under_way=True)
        self._under_way = self._member.exchange(contribution)
        if not self.overlap:
            self._wait()
            replica.take()
        replica.show()
        self._warn_of_reach()
        if self.workers != self._notified_of:
            self._notified_of = self.workers
            self._on_members(self._notified_of)

    def _end_interrupted(self) -> None:
        """Ends an exchange in which an interrupt ended `step`, as Ctrl-C in a notebook: sends the contribution, unless
        the worker's thread has it already, and reads. An interrupt may end this, too, at any place."""
        replica, member = self._begun, self._member
        if member is None or self._closed or not replica.contributing:
            return
        if not replica.resume():
            LOG.warning("job %r: two interrupts came at once: changes of the parameters since are lost", self.job)
        self._wait()
        member.settle()
        contribution = replica.contribute(member.workers)
        if member.exchanges == self._exchanges:
            self._under_way = member.exchange(contribution)
            self._wait()
        self._steps = 0
        replica.take()
        replica.show()

    def _wait(self) -> None:
        """Waits for an unfinished exchange. Raises its error, or an earlier one's."""
        if self._under_way is not None:
            try:
                self._under_way.wait()
            finally:
                if self._under_way.is_completed():  # else an interrupt: the exchange continues
                    self._under_way = None
        if self._member is not None:
            self._member.check()

    def _warn_of_reach(self) -> None:
        """Warns once, and again each time the number of values has grown tenfold."""
        clipped = self._begun.clipped
        if clipped >= max(10 * self._warned, 1):
            self._warned = clipped
            warn_user(
                f"{clipped} update values so far were too large, or would move a parameter more than "
                f"{REACH * self.unit:g} from its start. The excess stays in the residual; limit= sets how far "
                "parameters may move"
            )

    def _abandon(self) -> None:
        """Leaves without waiting for other workers, so that none waits for this one."""
        self._over, self._closed = self._over and self._closed, True
        if self._member is not None and self._process == os.getpid():
            self._member.abandon()

    def _close_in_child(self) -> None:
        """Closes the sockets in a forked child (of a DataLoader, for example)."""
        termination.forget()
        if self._member is not None:
            self._member.close()
            self._closed, self._place = True, None


def _close_in_children(optimizer: DistributedOptimizer) -> None:
    there = weakref.ref(optimizer)

    def close_in_child() -> None:
        if (left := there()) is not None:
            left._close_in_child()

    os.register_at_fork(after_in_child=close_in_child)
