# Needs python3 (3.11 or newer) and make; everything else is installed into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/.stamps

# Where an image has set it, every process compiles every import anew: 22 s instead of 8 s to collect tests/unit.
unexport PYTHONDONTWRITEBYTECODE

DEMO_QUESTION := What is the value of the Hubble constant, why do measurements of it disagree, \
and when will the disagreement be settled?

# Stamps live inside the environment, are written last and go with it, so an interrupted install is taken up
# again by the next call. An environment whose interpreter is gone (a system upgrade) counts as none.
ifneq ($(wildcard $(STAMPS)),)
$(shell $(BIN)/python -c '' 2>/dev/null || rm -rf $(STAMPS))
endif

# uv installs in seconds. Where it fails, say because only pip knows of a package mirror, pip installs the
# same pins: --no-deps, since the lock is complete and pip's resolver backtracks for minutes on this set.
define install
$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1) \
	|| $(BIN)/python -m pip install --quiet --no-deps --require-hashes -r $(1)
endef

COMPILE = $(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
	--no-emit-index-url --no-annotate --no-header $(UPGRADE)

define tested
mkdir -p .reports; rm -f .pytest_cache/v/cache/lastfailed; status=0; \
$(BIN)/python -m pytest -n $(3) --dist worksteal --junitxml=.reports/$(1).xml $(2) || status=$$?; \
if [ $$status = 1 ]; then status=0; $(BIN)/python tests/again.py || status=1; fi; \
$(BIN)/python tests/traceability.py || status=1; exit $$status
endef

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help venv dev local fleet browser demo check unit test thorough requirements bench lock clean distclean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf '  make %-13s %s\n' "$$name" "$$text"; done

venv: $(STAMPS)/project ## install OpenAssay into .venv

dev: $(STAMPS)/dev ## install what checks, tests and benchmarks need

local: $(STAMPS)/local ## install the runner for .gguf models (the extra `local`)

fleet: $(STAMPS)/fleet ## install what PostgreSQL, workers and traces need

browser: $(STAMPS)/dev ## find or install a Chromium for the browser tests
	@test -e $(STAMPS)/browser || { $(find_browser); }

demo: venv ## research a question on the example library, offline
	@$(BIN)/openassay research "$(DEMO_QUESTION)" --docs examples/library --yes

check: dev ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: dev ## the fast tests of single modules, in under a minute
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" --hypothesis-profile short tests/unit

test: dev browser check ## checks, tests and requirements, without the tests that take longest
	@$(call tested,quick,-m "not slow",2)

# Three at a time on two cores: slow tests wait a good deal, for servers and browsers.
thorough: dev browser check ## the same with all tests
	@$(call tested,junit,,3)

requirements: dev ## writes docs/traceability.md; fails where a requirement has no test that ran and passed
	@$(BIN)/python tests/traceability.py --write --strict

bench: dev ## take every figure of docs/quality.md again (hours)
	@status=0; $(BIN)/python -m benchmarks.evaluation --out docs/quality.md || status=1; \
	for file in benchmarks/bench_*.py benchmarks/arena.py; do \
		echo "== $$file"; FIGURES=docs/quality.md PYTHONPATH=. $(BIN)/python "$$file" || status=1; done; exit $$status

lock: $(STAMPS)/bootstrap ## compile the locks again (UPGRADE=--upgrade for newer versions)
	$(COMPILE) pyproject.toml --extra export -o requirements/runtime.lock
	$(COMPILE) requirements/bootstrap.in -c requirements/runtime.lock -o requirements/bootstrap.lock
	$(COMPILE) pyproject.toml --extra dev -c requirements/runtime.lock -c requirements/bootstrap.lock \
		-o requirements/dev.lock
	$(COMPILE) pyproject.toml --extra export --extra local -c requirements/runtime.lock -o requirements/local.lock
	$(COMPILE) pyproject.toml --extra export --extra fleet --extra telemetry -c requirements/dev.lock -o requirements/fleet.lock

clean: ## remove caches and reports
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .schemathesis .reports .requirements.json dist
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## remove .venv as well
	rm -rf $(VENV)

$(STAMPS)/bootstrap: requirements/bootstrap.lock
	@command -v $(PYTHON) >/dev/null \
		|| { echo "error: $(PYTHON) not found; install Python 3.11 or newer, or name one: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: OpenAssay needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo "error: this Python cannot make environments; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/runtime: requirements/runtime.lock $(STAMPS)/bootstrap
	$(call install,$<)
	@touch $@

$(STAMPS)/project: pyproject.toml $(STAMPS)/runtime
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(STAMPS)/local: requirements/local.lock $(STAMPS)/project
	$(call install,$<)
	@touch $@

$(STAMPS)/fleet: requirements/fleet.lock $(STAMPS)/project
	$(call install,$<)
	@touch $@

$(STAMPS)/dev: requirements/dev.lock $(STAMPS)/project
	$(call install,$<)
	@touch $@

# Never fails: without a browser its tests skip and say so. No stamp then, so the next call tries again.
define find_browser
found() { echo "browser: $$1"; touch $(STAMPS)/browser; exit 0; }; \
command -v chromium >/dev/null && found "$$(command -v chromium)"; \
test -x /usr/bin/chromium && found /usr/bin/chromium; \
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; } \
		>/dev/null && found "Debian's chromium"; \
fi; \
$(BIN)/playwright install chromium >/dev/null && found "Playwright's chromium"; \
echo "browser: none found and none could be installed; the browser tests will be skipped"
endef
