# Every habit of this project, one line each. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
.PHONY: help setup demo test test-slow test-vllm test-gpu check format bench lab lab-quick lab-full clean

BIN := .venv/bin
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile
SOURCES := solar_rl builders recipes scripts tests benchmarks docs

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 18

setup: .venv/.done ## make .venv with solar-rl in it (PYTHON=..., TORCH_INDEX_URL=... where wanted)
.venv/.done: pyproject.toml constraints.txt scripts/setup scripts/torch_build.py
	@scripts/setup
	@touch $@

demo: setup ## run the main job on the built-in phone: build, stats, SQL, report, two training stages
	$(BIN)/solar-rl demo --out demo

test: setup ## run the tests (what takes minutes is left out)
	$(PYTEST) -m "not slow"

test-slow: setup ## run the tests that take minutes
	$(PYTEST) -m slow

test-vllm: setup .venv-vllm/.done ## run vLLM's CPU engine against transformers, in an environment of its own (4 GB)
	.venv-vllm/bin/python -m pytest tests/vllm_engine

.venv-vllm/.done: scripts/setup-vllm scripts/torchvision_beside_cpu_torch.py scripts/constraints-vllm.txt
	@scripts/setup-vllm
	@touch $@

test-gpu: setup ## run the checks that need a GPU; vLLM comes with: .venv/bin/pip install '.[train,sample]'
	REQUIRE_GPU=1 $(BIN)/pytest -m gpu tests/gpu

check: setup ## hold the fences: style, types, import order, layout
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q tests/test_layout.py

format: setup ## let ruff rewrite the sources
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: setup ## run the benchmarks one after the other
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

lab-quick: setup ## check the lab's machinery in miniature, not the science
	$(BIN)/solar-rl lab quick

lab: setup ## train 11 arms x 5 seeds and measure them in closed loop, meant for 90 minutes on 2 cores; goes on after a kill
	$(BIN)/solar-rl lab lab --results docs/results.md

lab-full: setup ## the lab's sweeps, one factor at a time, hours; goes on after a kill (needs make lab)
	@for plan in stages history once rounds_1 rounds_4 rounds_16 kept adaptive anchor bigger pictures; do \
	  $(BIN)/solar-rl lab full_$$plan --results docs/results.md || exit 1; done
	$(BIN)/solar-rl lab confirm --results docs/results.md
	$(BIN)/solar-rl lab full_miniwob --results docs/results.md

clean: ## remove what the commands made, but not .venv
	rm -rf demo dist build .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find . -path "./.venv*" -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf
