# `make` alone lists the targets. Everything happens inside this folder: .venv, build and out.
.DEFAULT_GOAL := help
.PHONY: help reference setup setup-run setup-local demo package wheel soak quick test test-local nightly explore check lint format types spelling locks bench lock sample clean
export LC_ALL := C.UTF-8
# Packages are installed uncompiled: if Python could not write bytecode, each command would compile its imports again.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
# A shell prefix that finds (or installs) Java and puts it into the environment of the command after it.
WITH_JAVA = JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&
quoted = '$(subst ','\'',$(1))'
DATA ?= ../shared/data/debdocs-dev

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## bring .venv up to date for development; find or install Java, Chromium and Airflow
	@scripts/setup.sh dev

setup-run:
	@scripts/setup.sh run

setup-local:
	@scripts/setup.sh local

demo: setup-run ## find the near-duplicates of samples/debdocs; results in out/demo
	@$(WITH_JAVA) $(BIN)/nddup run samples/debdocs --output out/demo --overwrite

# Three processes on two cores: one that waits for Spark or a command leaves its core to another. Two have Spark.
# Files run in the order of their names, so that Airflow and the cluster, which take longest, do not come last.
PYTEST = $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --durations 10 --junitxml build/junit.xml

# Of a fresh checkout one process compiles the tests and what they import, before three would each do it all.
test: setup ## run the tests in three processes; PYTEST_ARGS="-k word" chooses
	@mkdir -p build
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only --quiet >build/collected.txt || true
	@$(WITH_JAVA) $(PYTEST) --no-loadscope-reorder -m "not nightly" $(PYTEST_ARGS)

test-local: setup-local ## run the tests that need no Java, browser or Airflow, and install none of these
	@mkdir -p build
	@$(PYTEST) -m "not spark and not cluster and not airflow and not browser and not nightly" $(PYTEST_ARGS)

# What make test does with a sample, done whole: kills at each write of a repository, most of all.
nightly: setup ## run the tests that take too long for make test
	@mkdir -p build
	@$(WITH_JAVA) $(PYTEST) -m nightly $(PYTEST_ARGS)

# Drawn from a seed, not from the name of the test as by `make test`; the last line says how to repeat a failure.
explore: setup ## draw the random tests anew; SEED=n draws as before, PYTEST_ARGS chooses
	@mkdir -p build
	@seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; echo "explore: seed $$seed"; \
	    $(WITH_JAVA) $(BIN)/python -m pytest --numprocesses 3 --dist loadfile -m hypothesis \
	    --hypothesis-profile explore --hypothesis-seed $$seed $(PYTEST_ARGS) || { status=$$?; \
	    echo "explore: this repeats it: make explore SEED=$$seed PYTEST_ARGS="$(call quoted,$(call quoted,$(PYTEST_ARGS))); exit $$status; }

# The pure rooms, and the embedded engine against brute force; no Java, no browser, no process of its own.
QUICK := tests/test_architecture.py tests/against tests/matching tests/mining tests/settings tests/sketching \
    tests/verifying tests/embedded/test_matrix.py tests/embedded/test_support.py tests/run/test_find_duplicates.py

quick: setup ## run the tests of the pure rooms and some of the embedded engine
	@$(BIN)/python -m pytest --quiet --numprocesses 2 -m "not spark and not cluster and not airflow and not browser and not thorough" \
	    $(QUICK) $(PYTEST_ARGS)

check: lint format types spelling locks ## lint, format, types, spelling, locks: exactly what CI checks

lint: setup
	$(BIN)/ruff check --output-format=concise .

format: setup
	$(BIN)/ruff format --check --output-format=concise .

types: setup
	$(BIN)/mypy

spelling: setup
	$(BIN)/codespell

locks:
	@! grep -n -e '://' -e '^--' *.lock || { echo "a lock must name no address"; exit 1; }

package: setup ## pack what executors need besides Spark into dist/nddup-deps.tar.gz (docs/operations.md)
	@scripts/package.sh

wheel: setup ## build dist/nddup-….whl, install it into an empty environment and run it there
	@scripts/wheel.sh

soak: setup ## kill the driver of the main job 50 times at random moments (KILLS=5: 5 times)
	@$(WITH_JAVA) $(BIN)/python -m scripts.soak $(or $(KILLS),50)

bench: setup ## measure speed and quality (bench/README.md says what)
	@$(WITH_JAVA) $(BIN)/python -m bench $(BENCH_ARGS)

reference: setup ## make docs/reference.md again from the code
	@$(BIN)/python -m scripts.make_reference

lock: setup ## resolve all dependencies again into the three locks
	@scripts/lock.sh
	@$(MAKE) --no-print-directory locks

sample: setup ## make samples/debdocs again from DATA, a folder with docs.parquet and its pairs
	@$(BIN)/python scripts/make_sample.py $(DATA)/docs.parquet $(DATA)/pairs_w5_j070.tsv.gz samples/debdocs

clean: ## remove everything built or computed: out, build, caches (not .venv)
	rm -rf out build dist spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find nddup jobs tests scripts bench -name __pycache__ -type d -prune -exec rm -rf {} +
