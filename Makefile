# Everything sets itself up in .venv; Python 3.11 or later, make and pip are all it takes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready

# On how many ranks the parallel tests run, and which of them; `make test-long` has the rest. Two
# ranks are those of many serial tests, which start them.
RANKS  ?= 3
WHICH  ?= not long
TOGETHER = -n auto --dist worksteal

# The tests start hundreds of processes, each of which would compile every source anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo docs test test-long lint warm serial serial-tests parallel bench doctor format clean

help:
	@echo "make demo      a dragonfly on two ranks, what it did, and a report to open"
	@echo "make test      lint, types, contracts, serial and parallel tests"
	@echo "make test-long what takes long: more ranks, more of what is random, attacks (see CONTRIBUTING.md)"
	@echo "make docs      the documentation as a site, with search and reference, to open"
	@echo "make bench     how fast, against one rank and against ROSS"
	@echo "make doctor    does this installation work?"
	@echo "make format    rewrite the sources as the linter wants them"
	@echo "make clean     remove everything that make made"

$(READY): setup.py pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed, $(PYTHON) is older; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "setting up $(VENV) (once; about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --editable '.[test]' \
	  > $(VENV)/install.log 2>&1 || { cat $(VENV)/install.log; exit 1; }
	@touch $@

demo: $(READY)
	@echo "A 1,056-node dragonfly, every group talking to the next, adaptive routing, on two MPI ranks"
	@echo "(scripts/experiments/demo.toml; the first time, kernels are compiled for some 8 s):"
	@$(BIN)/mpiexec -n 2 $(BIN)/odonata run scripts/experiments/demo.toml -o out/demo --overwrite
	@echo "open this in a browser:"
	@$(BIN)/odonata report out/demo

# A warning, such as a link that leads nowhere, is an error. Always from the beginning: the reference is
# made from the program, whose changes Sphinx does not see.
docs: $(VENV)/docs
	@$(BIN)/sphinx-build -q -E -n -W --keep-going -c docs/site -d build/doctrees . build/site
	@echo "open this in a browser:"
	@echo "build/site/index.html"

$(VENV)/docs: $(READY)
	@echo "setting up Sphinx in $(VENV) (once)"
	@$(BIN)/python -m pip install --disable-pip-version-check --editable '.[docs]' \
	  > $(VENV)/install-docs.log 2>&1 || { cat $(VENV)/install-docs.log; exit 1; }
	@touch $@

# The types are checked, on one core, while kernels are compiled.
test: $(READY)
	@$(MAKE) --no-print-directory -j2 lint warm
	@$(MAKE) --no-print-directory serial-tests parallel

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# What the tests run, compiled: once for a version, as many at a time as there are cores. `odonata warm`
# has every routing of traffic, and what these experiments need; the others are started for a moment.
warm: $(READY)
	@$(BIN)/odonata warm $(addprefix scripts/experiments/,nedd.toml caps.toml jobs.toml months.toml) --routings traffic
	@{ echo run scripts/experiments/jobs.toml --no-metrics --overwrite --json -o out/warm-told --set scheduler.telemetry=20us; \
	  echo run scripts/experiments/uniform.toml --overwrite --json -o out/warm-traced --trace-packets 100 --set network.routing=adaptive --set run.duration=1ns; \
	  echo bench dragonfly --preset kim-72 --duration 1ns --json --routing adaptive --crossbar 1.2 --sight output --credits flit --detours true --ejection 6GB/s --injection-channels 2; \
	  echo bench dragonfly --preset kim-72 --duration 1ns --json --routing par --crossbar 1.2 --output-buffer none --credits head --detours true --ejection 40GB/s --duplex half; \
	  echo schedule --model poisson --jobs 9 --nodes 9 --machine kim-72 --json; \
	  echo schedule --model poisson --jobs 9 --nodes 9 --power dynamic-learner,uniform,rate-by-number,rmap-naive --json; \
	  echo bench phold --end 1us --json; } \
	  | xargs -L 1 -P $$(getconf _NPROCESSORS_ONLN) $(BIN)/odonata > /dev/null; rm -rf out/warm-told out/warm-traced

# As many tests at a time as there are cores; what times something, by itself (of the files that
# have such a test: to collect them all takes longer than to run these).
serial: warm serial-tests

serial-tests: $(READY)
	$(BIN)/python -m pytest -q -m alone $$(grep -rl --include='test_*.py' 'mark\.alone' tests)
	$(BIN)/python -m pytest -q -m "not alone and not long" --ignore tests/parallel $(TOGETHER)

# Each rank has a temporary directory of its own: pytest's usual one is swept by all that share it.
# Features are crossed without the compiler: each combination would take it seconds.
parallel: $(READY)
	@set -e; for n in $(RANKS); do for jit in 1 0; do \
	  tests=tests/parallel; test $$jit = 1 || tests=tests/parallel/test_matrix_ranks.py; \
	  echo "--- $$n ranks$$(test $$jit = 1 || echo ', features crossed')"; rm -rf .ranks; mkdir .ranks; \
	  ODONATA_JIT=$$jit $(BIN)/mpiexec -n $$n sh -c 'exec $(BIN)/python -m pytest -q --with-mpi \
	  --only-mpi --basetemp=.ranks/$$$$ -p no:cacheprovider -m "$(WHICH)" '$$tests; \
	  done; done; rm -rf .ranks

# What repeats at length what the tests above show: on more ranks, in more ways, by attack.
test-long: warm $(VENV)/docs
	$(BIN)/python -m pytest -q -m "(long or hypothesis) and not alone" --hypothesis-profile long $(TOGETHER)
	$(MAKE) parallel WHICH=long
	$(MAKE) parallel RANKS="2 4" WHICH="long or not long"
	$(BIN)/python scripts/attack_signals.py --count 60
	$(BIN)/python scripts/attack_results.py --count 200

bench: $(READY)
	@$(BIN)/python scripts/bench.py

doctor: $(READY)
	@$(BIN)/odonata doctor

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .ranks out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
