# Everything a newcomer types: `make run`. Needs cargo, a C compiler and Python 3.10 or newer.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/stamps

# One Python for whatever builds the extension, so that nothing is built twice.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

SOURCES := $(shell find crates machines -type f 2>/dev/null) Cargo.toml Cargo.lock pyproject.toml

.PHONY: help build wheel run test test-rust test-python lint format bench fidelity soak same lock clean tools

help:
	@echo 'make build     create .venv with the command .venv/bin/indelible'
	@echo 'make wheel     dist/indelible-*.whl, for computers without Rust and C: pip install'
	@echo 'make run       build, then compare three designs on four workloads (out/compare.png)'
	@echo 'make test      every Rust and Python test'
	@echo 'make lint      format and lint checks, as CI runs them'
	@echo 'make format    format everything'
	@echo 'make bench     how fast the simulator is on this computer'
	@echo 'make fidelity  measure the tables of docs/fidelity.md anew; TABLES="loc.sd hops.main", CHECK=1'
	@echo 'make soak      longer crash campaigns; SEEDS="1 2 3" POINTS=all, or MINUTES=30 on random machines'
	@echo 'make same      whether the working tree moves a number of COMMIT=HEAD; MINUTES=5 of random runs'
	@echo 'make lock      choose new versions for requirements.lock (needs uv)'
	@echo 'make clean     remove what the build made'

tools:
	@command -v cargo >/dev/null || { echo 'error: no cargo: install Rust from https://rustup.rs'; exit 1; }
	@command -v cc >/dev/null || { echo 'error: no C compiler: install gcc or clang (Debian: apt install build-essential)'; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo 'error: no $(PYTHON): install Python 3.10 or newer, or make PYTHON=...'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo 'error: $(PYTHON) is older than 3.10: make PYTHON=python3.12'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo 'error: $(PYTHON) has no venv (Debian: apt install python3-venv)'; exit 1; }

$(STAMPS)/requirements: requirements.lock | tools
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@mkdir -p $(STAMPS) && touch $@

# Python sources are used where they are; only Rust has to be built again. An environment of conda
# that is active would be another one than ours, which maturin refuses.
$(STAMPS)/extension: $(STAMPS)/requirements $(SOURCES)
	env -u CONDA_PREFIX VIRTUAL_ENV='$(CURDIR)/$(VENV)' $(BIN)/maturin develop --release --locked
	@mkdir -p $(STAMPS) && touch $@

build: $(STAMPS)/extension

# One wheel for every Python from 3.10 on, of this system and processor.
wheel: $(STAMPS)/requirements
	$(BIN)/maturin build --release --locked --out dist

run: build
	@mkdir -p out
	$(BIN)/indelible compare --designs native,undo@x86,silo --workloads hash,btree,ycsb,sqlite \
		--machine silo --cores 8 --plot out/compare.png

# Most of what builds the extension is done by one processor, so the tests in Rust run beside it.
test:
	@$(MAKE) --no-print-directory -j2 test-rust build
	@$(MAKE) --no-print-directory test-python

# The extension module is tested from Python: a test of its own would have to link libpython, which
# a system's Python does not always have.
test-rust: $(STAMPS)/requirements
	MAKEFLAGS= cargo test --locked --workspace --exclude indelible-python

# Beside each other, but for those that something beside them could make fail. They start Python many
# times, which is to find its modules compiled whatever the environment says.
test-python: export INDELIBLE_REQUIRE_CORE = 1
test-python: export PYTHONDONTWRITEBYTECODE =
test-python: build
	$(BIN)/python -m pytest -m 'not alone' -n logical --maxprocesses 4 --dist worksteal
	$(BIN)/python -m pytest -m alone

lint: $(STAMPS)/requirements
	@cargo fmt --version >/dev/null 2>&1 || { echo 'error: no rustfmt: rustup component add rustfmt'; exit 1; }
	@cargo clippy --version >/dev/null 2>&1 || { echo 'error: no clippy: rustup component add clippy'; exit 1; }
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check python tests tools
	$(BIN)/ruff check python tests tools
	$(BIN)/mypy

format: $(STAMPS)/requirements
	cargo fmt --all
	$(BIN)/ruff format python tests tools
	$(BIN)/ruff check --fix python tests tools

bench: build
	$(BIN)/indelible bench

# CHECK=1 writes nothing, and fails if a table differs.
fidelity: build
	PYTHONPATH=tools $(BIN)/python -m fidelity $(if $(CHECK),--check) $(TABLES)

SEEDS  ?= 1 2 3 4 5 6 7 8
POINTS ?= all

soak: build
	$(BIN)/python tests/python/soak.py $(if $(MINUTES),--minutes $(MINUTES),--points $(POINTS)) $(SEEDS)

COMMIT ?= HEAD

same: build
	$(BIN)/python tests/python/same.py $(if $(MINUTES),--minutes $(MINUTES)) $(COMMIT)

lock:
	uv pip compile --universal --python-version 3.10 --upgrade --custom-compile-command 'make lock' \
		requirements.in --output-file requirements.lock

clean:
	cargo clean
	rm -rf $(VENV) out python/indelible/_core*.so .mypy_cache .pytest_cache .ruff_cache
