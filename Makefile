# Two commands: `make run` talks, `make test` checks everything.
VENV ?= .venv
PYTHON ?= $(shell scripts/find-python)
ARGS ?=
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check
PYTEST_ARGS ?=

.PHONY: run install test lint clean

run: install
	$(VENV)/bin/python app.py $(ARGS)

install: $(VENV)/.installed

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with the venv module is needed; on Debian: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade pip
	@touch $@

$(VENV)/.installed: requirements.txt requirements-data.txt $(VENV)/.created
	$(PIP) install --quiet -r requirements.txt
	$(PIP) install --quiet --no-deps --require-hashes --ignore-requires-python -r requirements-data.txt
	@touch $@

$(VENV)/.tested: requirements-dev.txt $(VENV)/.installed
	$(PIP) install --quiet -r requirements-dev.txt
	PATH="$(VENV)/bin:$$PATH" scripts/get-browser
	@touch $@

lint: $(VENV)/.tested
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

test: lint
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
