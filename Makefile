# Serene: training through a P4 switch. `make help` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help setup run-mininet run-local test bench reproduce network-study pytorch-study pytorch-suites simgrid compare schedules soak \
	chaos swaps profile fuzz mutants p4 p4-tofino p4-suites shell docs lint clean

# The environment of all targets. PYTHON= names the interpreter with which set-up creates it.
VENV_PYTHON := .venv/bin/python

# The settings of each target. Other settings are refused: otherwise a run would silently ignore them.
RUN_SETTINGS := WORKERS RACKS STRATEGY STRAGGLER STEPS TARGET MODEL DATASET DATA_DIR BATCH_SIZE LEARNING_RATE EXCHANGE EXCHANGE_SHARE \
	PACKETS LINK_MBIT UPLINK_MBIT \
	SEED COMPUTE_MS PROGRAM SLOTS FAULTS OUT
SETTINGS_OF_run-mininet := $(RUN_SETTINGS)
SETTINGS_OF_run-local := $(RUN_SETTINGS)
SETTINGS_OF_test := TORCH
SETTINGS_OF_pytorch-suites := TORCH PYTORCH
SETTINGS_OF_bench := SEED_JSON PINS_JSON
SETTINGS_OF_reproduce := FULL OUT CLUSTER CLUSTER_OPTIONS
SETTINGS_OF_network-study := FULL EMULATED OUT CLUSTER CLUSTER_OPTIONS
SETTINGS_OF_pytorch-study := OUT
SETTINGS_OF_compare := STRATEGIES MODELS CELLS STRAGGLER SEEDS STEPS CSV RUNS OUT MININET
SETTINGS_OF_schedules := RACKS RUNS FIRST TAKE_OVERS OUT
SETTINGS_OF_swaps := TARGET WORKERS RACKS OUT
SETTINGS_OF_fuzz := PACKETS SEED
SETTINGS_OF_mutants := SEED
SETTINGS_OF_chaos := DEATHS SEED
SETTINGS_OF_p4-tofino := FRONTIER
SETTINGS_OF_p4-suites := P4_GUIDE TUTORIALS UP4 NGSDN P4_LEARNING P4C BMV2 DASH PINS FABRIC ONOS
EVERYWHERE := PYTHON TORCH_INDEX CC CFLAGS V SHELL MAKEFLAGS MFLAGS MAKE

GOALS := $(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))
TAKEN := $(sort $(foreach goal,$(GOALS),$(SETTINGS_OF_$(goal))))
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
ODD := $(sort $(filter-out $(TAKEN) $(EVERYWHERE),$(GIVEN)))
ifneq ($(ODD),)
$(error $(shell python3 scripts/no_such_setting.py '$(GOALS)' '$(subst ','\'',$(ODD))' '$(TAKEN)' '$(RUN_SETTINGS)'))
endif

UNREAD := $(strip $(foreach name,$(TAKEN),$(if $(filter environment,$(firstword $(origin $(name)))),$(name))))
ifneq ($(UNREAD),)
$(warning $(UNREAD): in the environment, which is ignored; give settings after make, as in make $(GOALS) $(firstword $(UNREAD))=...)
endif

# A setting that is not given is empty, even if the environment has it. Then the programs' defaults apply.
$(foreach name,$(TAKEN),$(if $(filter $(name),$(GIVEN)),,$(eval $(name) :=)))

# A given setting as one word for the shell: neither make nor the shell expands it.
quoted = '$(subst ','\'',$(value $(1)))'

# A program's options for the given settings: BATCH_SIZE=64 becomes --batch-size '64'.
options = $(foreach name,$(1),$(if $(value $(name)),--$(subst _,-,$(shell echo $(name) | tr A-Z a-z)) $(call quoted,$(name))))

help:
	@echo "make run-mininet   train on an emulated network, live view, results in runs/ (runs set-up first)"
	@echo "make run-local     the same without root or Mininet: UDP on loopback, the embedded switch"
	@echo "make test          all tests that this machine can run (runs set-up first)"
	@echo "                   TORCH=2.15.0 (the tests of PyTorch's process group on that version, in a separate environment)"
	@echo "make pytorch-suites  PyTorch's own tests on gloo and on the process group serene (an hour); TORCH=2.15.0 PYTORCH=CHECKOUT"
	@echo "make bench         speed as ratios to gloo, BMv2 and scapy (needs root); SEED_JSON=FILE (the authors' program, compiled)"
	@echo "                   PINS_JSON=FILE (p4c's pins_middleblock.p4, compiled)"
	@echo "make reproduce     the paper's experiment in Mininet, and a report: about 25 min; FULL=1 hours; can be resumed;"
	@echo "                   CLUSTER=tcp://HOST:PORT of a dask scheduler, or CLUSTER=slurm CLUSTER_OPTIONS=FILE (docs/clusters.md)"
	@echo "make network-study the network that training needs, with and without the switch: minutes; FULL=1 up to an hour; EMULATED=1 in Mininet, too;"
	@echo "                   CLUSTER= and CLUSTER_OPTIONS= as above"
	@echo "make pytorch-study shared training against PyTorch's DDP and PostLocalSGD: 540 trainings, 70 minutes on two quiet cores; can be resumed"
	@echo "make compare       automatic strategies' time to accuracy against the best fixed strategy, in virtual time (over an hour); can be resumed"
	@echo "                   STRATEGIES=auto,ssp:2,my.py:Mine (beside the fixed ones) MODELS=softmax CELLS='none, 4 workers; changing' STRAGGLER=trace:FILE"
	@echo "                   SEEDS=4,5,6 STEPS=100 CSV=regret.csv RUNS=runs.csv MININET=1 (16 cells in Mininet, needs root)"
	@echo "make simgrid       installs SimGrid (Debian), the reference engine, and compares with it"
	@echo "make schedules     random runs with faults and swaps, 10,000 for each pair of strategies (an hour or more); RACKS=3 over a tree"
	@echo "                   RUNS=1000 FIRST=2000 OUT=part.json (a part; python -m serene.experiments.correctness.tallies adds up parts)"
	@echo "                   TAKE_OVERS=1 (probability that two processes compete for one worker's place; default 0.5)"
	@echo "make chaos         deaths of workers, controller and switch in one shared training (DEATHS=1000: half an hour)"
	@echo "make soak          a million packets with loss, duplication and reordering in one run (minutes)"
	@echo "make swaps         200 live swaps in one training run, with the time of each (needs root); RACKS=4 WORKERS=8 over a tree"
	@echo "make profile       the time of each stage of a packet's processing, on both switches (needs root)"
	@echo "make fuzz          sends mutated packets, programs and P4Runtime messages to the embedded switch (PACKETS=100000 SEED=1)"
	@echo "make mutants       breaks the compiled programs in 96 ways and names the test that detects each (about 15 min)"
	@echo "make setup         install Debian packages and .venv"
	@echo "make p4            compile p4src with p4c-bm2-ss, if installed"
	@echo "make p4-suites     run other projects' P4 test suites on BMv2 and serene-switch, from the checkouts P4_GUIDE=, TUTORIALS=,"
	@echo "                   UP4=, NGSDN=, P4_LEARNING=, P4C=, BMV2=, DASH=, PINS=, FABRIC= and ONOS= (as root)"
	@echo "make p4-tofino     compile p4src/tna with p4c-barefoot and bfas, if installed; FRONTIER=1 all variants"
	@echo "make shell         p4runtime-shell on the running switch (in a separate environment)"
	@echo "make docs          the documentation as a site with search, in build/site"
	@echo "make lint          ruff and mypy"
	@echo "make clean         remove build output, caches and environments"
	@echo
	@echo "A run's settings and their defaults:"
	@echo "  WORKERS=4 STRATEGY=bsp (bsp, ssp:S, asp, quorum:K, mixed:W,W, auto, auto:NAME, auto:FILE.py:NAME) STEPS=200 SEED=1"
	@echo "  STRAGGLER=none (none, slow_worker, heterogeneous, failure; as slow_worker:probability=0.3 or trace:FILE)"
	@echo "  TARGET=auto (auto, embedded, bmv2)  MODEL=mlp (mlp, cnn, cnn-large)"
	@echo "  DATASET=digits (digits, fashion-mnist, mnist, cifar10)  BATCH_SIZE=32 LEARNING_RATE= (the paper's authors use 256 and 0.04)"
	@echo "  RACKS=1 (2 to 8: a leaf switch for each and a root above them; up to 32 workers in each) UPLINK_MBIT= (of each leaf's link)"
	@echo "  COMPUTE_MS=250 LINK_MBIT= DATA_DIR= PROGRAM=serene (serene, serene_jumbo, or a .json's path) OUT=runs/..."
	@echo "  SLOTS= (number of the switch's slots, 8192 by default; a slot holds as many values as a packet)"
	@echo "  EXCHANGE=switch (switch, server, sharded, rpc, gloo: all but switch are baselines over TCP and a Linux bridge)"
	@echo "  EXCHANGE_SHARE= (communication's share of a step, as 0.65; replaces COMPUTE_MS; needs LINK_MBIT)"
	@echo "  PACKETS=compiled (packet encoder: compiled, numpy, scapy)"
	@echo "  FAULTS= (a file: lost packets, killed processes; docs/faults.md)"

setup:
	@scripts/setup

run-mininet: setup
	@$(VENV_PYTHON) -m serene.experiments.run $(call options,$(RUN_SETTINGS))

run-local: setup
	@$(VENV_PYTHON) -m serene.experiments.run $(call options,$(RUN_SETTINGS)) --no-mininet

# Three more processes than processors: many tests wait for a process, a timer or a packet. tests/conftest.py lists tests that
# never run in parallel.
# With TORCH=: only the tests of PyTorch, on that version.
TORCH_PYTHON = $(if $(value TORCH),.venv-torch-$(strip $(TORCH))/bin/python,$(VENV_PYTHON))

test: setup
	@$(if $(value TORCH),scripts/torch-environment $(call quoted,TORCH))
	@$(TORCH_PYTHON) -m pytest -n $$(($$(nproc) + 3)) --dist loadscope --no-loadscope-reorder $(if $(value TORCH),tests/torch tests/pytorch_suites)

pytorch-suites: setup
	@$(if $(value TORCH),scripts/torch-environment $(call quoted,TORCH))
	@$(TORCH_PYTHON) -m tests.pytorch_suites $(call options,PYTORCH)

bench: setup
	@$(VENV_PYTHON) -m serene.experiments.performance.bench $(call options,SEED_JSON PINS_JSON)

reproduce: setup
	@$(VENV_PYTHON) -m serene.experiments.straggler_study --grid $(if $(FULL),full,quick) $(call options,OUT CLUSTER CLUSTER_OPTIONS)

network-study: setup
	@$(VENV_PYTHON) -m serene.experiments.network_study --grid $(if $(FULL),full,quick) $(if $(EMULATED),--emulated) \
		$(call options,OUT CLUSTER CLUSTER_OPTIONS)

pytorch-study: setup
	@$(VENV_PYTHON) -m serene.experiments.pytorch_study $(call options,OUT)

simgrid: setup
	@scripts/simgrid
	@$(VENV_PYTHON) -m serene.experiments.network_study.reference

compare: setup
	@$(VENV_PYTHON) -m serene.experiments.straggler_study.regret $(if $(value MININET),--mininet) $(call options,STRATEGIES MODELS CELLS STRAGGLER SEEDS STEPS CSV RUNS OUT)

schedules: setup
	@$(VENV_PYTHON) -m serene.experiments.correctness.schedules $(if $(filter-out 1,$(value RACKS)),$(call options,RACKS)) \
		$(call options,RUNS FIRST TAKE_OVERS OUT)

soak: setup
	@$(VENV_PYTHON) -m serene.experiments.correctness.soak

chaos: setup
	@$(VENV_PYTHON) -m tests.torch.chaos $(if $(value DEATHS),$(call quoted,DEATHS),1000) $(if $(value SEED),$(call quoted,SEED),1)

swaps: setup
	@$(VENV_PYTHON) -m serene.experiments.performance.swaps $(call options,TARGET WORKERS RACKS OUT)

profile: setup
	@$(VENV_PYTHON) -m serene.experiments.performance.profiling

fuzz: setup
	@$(VENV_PYTHON) -m tests.embedded.fuzz --sanitize --count $(if $(value PACKETS),$(call quoted,PACKETS),100000) $(call options,SEED)

mutants: setup
	@$(VENV_PYTHON) -m tests.mutation $(call options,SEED)

p4:
	@python3 scripts/compile_p4.py

p4-suites: setup .venv-suites/made
	@$(VENV_PYTHON) -m tests.suites --write $(call options,$(SETTINGS_OF_p4-suites))

.venv-suites/made: tests/suites/requirements.txt
	@$(if $(PYTHON),$(PYTHON),python3) -m venv .venv-suites
	@.venv-suites/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

p4-tofino:
	@python3 scripts/p4_tofino.py $(if $(FRONTIER),--frontier)

shell:
	@scripts/shell

docs: setup
	@$(VENV_PYTHON) -m serene.experiments.network_study.results >/dev/null
	@$(VENV_PYTHON) -m serene.experiments.straggler_study.results >/dev/null
	@$(VENV_PYTHON) -m serene.experiments.performance.results >/dev/null
	@NO_MKDOCS_2_WARNING=1 $(VENV_PYTHON) -m mkdocs build --quiet
	@echo "build/site: $(VENV_PYTHON) -m http.server --bind 127.0.0.1 --directory build/site 8000"

lint: setup
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

clean:
	rm -rf build .venv .venv-shell .venv-suites .venv-torch-* *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
