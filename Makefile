# Everything sets itself up in .venv; Python 3.11 or later, make and pip are all it takes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready

# On how many ranks the parallel tests run, on how many features are crossed, and which of these
# tests; `make test-long` has the rest. More ranks than cores take more than twice the time.
RANKS   ?= 2
CROSSED ?= 3
WHICH   ?= not long
TOGETHER = -n auto --dist worksteal

# The tests start hundreds of processes, each of which would compile every source anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo docs test test-long test-slurm claims lint warm warm-experiments warm-phold serial serial-tests parallel on-ranks bench doctor format clean

help:
	@echo "make demo      a dragonfly on two ranks, what it did, and a report to open"
	@echo "make test      lint, types, contracts, serial and parallel tests"
	@echo "make test-long what takes long: more ranks, more of what is random, attacks (see CONTRIBUTING.md)"
	@echo "make test-slurm  every file of slurm_jobs/, on a Slurm that it installs and starts here (as root)"
	@echo "make claims    all studies anew: does each claim come out as docs show it? (hours)"
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
	@$(MAKE) --no-print-directory -j2 lint warm-experiments warm-phold
	@$(MAKE) --no-print-directory serial-tests parallel

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# What the tests run, compiled: once for a version, as many at a time as there are cores, and what
# several of them share only once in a process. `odonata warm` has every routing of traffic, and what
# these experiments need.
warm: warm-experiments warm-phold

warm-experiments: $(READY)
	@$(BIN)/odonata warm $(addprefix scripts/experiments/,months.toml nedd.toml caps.toml jobs.toml) \
	  tests/warm/*.toml --routings traffic

warm-phold: $(READY)
	@$(BIN)/odonata bench phold --end 1us --json > /dev/null

# As many tests at a time as there are cores; what times something, by itself (of the files that
# have such a test: to collect them all takes longer than to run these).
serial: warm serial-tests

serial-tests: $(READY)
	$(BIN)/python -m pytest -q -m alone $$(grep -rl --include='test_*.py' 'mark\.alone' tests)
	$(BIN)/python -m pytest -q -m "not alone and not long" --ignore tests/parallel $(TOGETHER)

# Each rank has a temporary directory of its own: pytest's usual one is swept by all that share it.
# Features are crossed without the compiler: each combination would take it seconds.
parallel: $(READY)
	@set -e; for n in $(RANKS); do $(MAKE) --no-print-directory on-ranks N=$$n JIT=1 TESTS=tests/parallel; done
	@set -e; for n in $(CROSSED); do \
	  $(MAKE) --no-print-directory on-ranks N=$$n JIT=0 TESTS=tests/parallel/test_matrix_ranks.py; done

on-ranks:
	@echo "--- $(N) ranks$(if $(filter 0,$(JIT)),$(comma) features crossed)"; rm -rf .ranks; mkdir .ranks
	@ODONATA_JIT=$(JIT) $(BIN)/mpiexec -n $(N) sh -c 'exec $(BIN)/python -m pytest -q --with-mpi \
	  --only-mpi --basetemp=.ranks/$$$$ -p no:cacheprovider -m "$(WHICH)" $(TESTS)'
	@rm -rf .ranks

comma := ,

# What repeats at length what the tests above show: on more ranks, in more ways, by attack.
test-long: warm $(VENV)/docs
	$(BIN)/python -m pytest -q -m "(long or hypothesis) and not alone" --hypothesis-profile long $(TOGETHER)
	$(MAKE) parallel WHICH=long
	$(MAKE) parallel RANKS="3 4" CROSSED="2 4" WHICH="long or not long"
	$(BIN)/python scripts/attack_signals.py --count 60
	$(BIN)/python scripts/attack_results.py --count 200

# Every file of slurm_jobs/, submitted to Debian's Slurm on this machine alone: stopped, put back into
# the queue, and compared with what the same commands give without it.
test-slurm: $(READY)
	@$(BIN)/python scripts/slurm.py --install

# What the pages say of the papers, simulated anew: hours on two cores, kept in out/claims, and
# what is cut short goes on with the same command.
claims: $(READY)
	@$(BIN)/python scripts/claims.py $(STUDIES)

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
