# The one door for commands: `make help` lists them. Each one that needs the set-up does it first.

STATE := .feedmill
BIN := $(STATE)/venv/bin
# Arguments for the program behind the target, e.g. make test ARGS="tests/unit -k retry"
ARGS ?=
# Servers that are given don't have to be installed.
SETUP_FLAGS := $(if $(and $(FEEDMILL_AMQP_URL),$(FEEDMILL_DATABASE_URL)),--no-servers)

export RUFF_CACHE_DIR := $(STATE)/cache/ruff
# Tests start hundreds of processes, each of which would compile our code anew, and each worker all tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run up test test-quick lint fmt bench eval train-topics lock entity-list audit image sbom pin-images release-notes clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 15

setup: ## Install what is missing for development: system packages, virtual environment (a moment if nothing is)
	@scripts/setup.sh --dev

run: ## Run the demo: all services against an embedded farm of feeds, with a summary at the end
	@scripts/setup.sh $(SETUP_FLAGS)
	@$(BIN)/feedmill demo $(ARGS)

up: ## Run all services until Ctrl-C, on data that is kept
	@scripts/setup.sh $(SETUP_FLAGS)
	@$(BIN)/feedmill up $(ARGS)

# All tests are shared by three workers (tests/side_by_side.py) and one pair of servers (tests/servers.py). Some tests run in one
# process, where --pdb works.
ALL_TESTS := --numprocesses 3 --dist loadfile --no-loadscope-reorder

test: lint ## Check everything: lint, then all tests (ARGS="tests/unit -k name" for some)
	@$(BIN)/python -m pytest $(or $(ARGS),$(ALL_TESTS))

# The slowest of them are left out: readers' inputs by the thousand, and whole processes but for one run of the pipeline.
QUICK_TESTS := tests/unit tests/contract tests/e2e/commands/test_demo.py --ignore=tests/unit/parse/inputs

test-quick: lint ## Check what changes most: lint, units, contracts, and one run of the whole pipeline (two minutes)
	@$(BIN)/python -m pytest $(ALL_TESTS) $(QUICK_TESTS)

lint: setup ## Check style, types and the rules on who may import whom
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo 'badly formatted (see above): run make fmt' >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache --no-logo >$(STATE)/lint-imports.log || { cat $(STATE)/lint-imports.log >&2; exit 1; }

fmt: setup ## Format the code, and fix what can be fixed
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format --quiet

bench: setup ## Measure (ARGS are the benchmarks' own)
	@$(BIN)/python -m benchmarks $(ARGS)

eval: setup ## Print how good the enricher's labels are (ARGS: language, similarity, topics, entities)
	@$(BIN)/python -m benchmarks.enrichment $(ARGS)

train-topics: setup ## Train the model of topics anew (ARGS=DIRECTORY with its data: docs/explanation/enrichment.md)
	@$(BIN)/python -m pip install --quiet --group topics
	@$(BIN)/python -m services.enricher.topics.training.shipped $(ARGS)

UV_COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

lock: ## Write the lock files anew from pyproject.toml (needs uv; ARGS="--upgrade" for the newest versions)
	@command -v uv >/dev/null || { echo 'make lock needs uv: pipx install uv' >&2; exit 1; }
	@$(UV_COMPILE) $(ARGS) pyproject.toml --extra traces --output-file requirements.lock
	@$(UV_COMPILE) $(ARGS) pyproject.toml --extra traces --extra enrich --constraint requirements.lock --output-file requirements-enrich.lock
	@$(UV_COMPILE) $(ARGS) pyproject.toml --extra traces --extra enrich --extra entities --constraint requirements.lock \
	    --constraint requirements-enrich.lock --output-file requirements-entities.lock
	@$(UV_COMPILE) $(ARGS) pyproject.toml --extra traces --extra enrich --group local --constraint requirements-enrich.lock \
	    --output-file requirements-local.lock
	@$(UV_COMPILE) $(ARGS) pyproject.toml --all-extras --group dev --constraint requirements-entities.lock \
	    --output-file requirements-dev.lock
	@$(UV_COMPILE) $(ARGS) --group build --output-file requirements-build.lock

entity-list: ## Build the list of entities anew from packages (needs npm and apt-get)
	@scripts/entities/build.sh

audit: setup ## Look our locked packages up in the list of known vulnerabilities (asks the package index)
	@for lock in requirements-local.lock requirements-entities.lock requirements-build.lock requirements-dev.lock; do \
	    echo "$$lock"; $(BIN)/pip-audit --strict --progress-spinner off --require-hashes --disable-pip --requirement $$lock || exit; \
	done

IMAGE ?= feedmill
TAG ?= dev

image: ## Build the images: all services, with the enricher's packages, with spaCy's models (IMAGE=feedmill TAG=dev)
	@for suffix in "" -enricher -enricher-models; do \
	    target=$${suffix#-}; docker build --target $${target:-image} --tag $(IMAGE)$$suffix:$(TAG) --build-arg VERSION=$(TAG) \
	        --build-arg REVISION=$$(git rev-parse HEAD) --build-arg SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) . || exit; \
	done

sbom: ## Print the list of what is in the image, as CycloneDX (IMAGE=feedmill TAG=dev)
	@docker run --rm --entrypoint cat $(IMAGE):$(TAG) /opt/feedmill/share/feedmill/sbom.cdx.json

pin-images: ## Write the digests of all images of others into the files that name them (asks their registries)
	@scripts/pin_images.sh $(ARGS)

release-notes: ## Print the changelog's section of VERSION; refused unless pyproject.toml says the same version
	@grep -qxF 'version = "$(VERSION)"' pyproject.toml || { \
	    echo "pyproject.toml's version is not '$(VERSION)'" >&2; exit 1; }
	@awk -v wanted='## $(VERSION)' 'index($$0, "## ") == 1 { on = ($$0 == wanted || index($$0, wanted " ") == 1); found += on; next } \
	    on; END { exit !found }' CHANGELOG.md || { echo "CHANGELOG.md has no section '## $(VERSION)'" >&2; exit 1; }

clean: ## Delete .feedmill (environment, caches, the private servers' data); refused while servers run
	@for lock in $$(find $(STATE) -maxdepth 4 -name lock -type f 2>/dev/null); do \
	    flock --nonblock "$$lock" true || { \
	        echo "$$(dirname "$$lock") is in use by process $$(cat "$$lock"): stop it first" >&2; exit 1; }; \
	done
	@# The servers' data may stand outside of a directory that their users can't enter, or in memory; a link leads there.
	@find $(STATE) -maxdepth 5 -name cluster -type l \( -lname '/var/lib/feedmill-*' -o -lname '/dev/shm/feedmill-*' \) -printf '%l\0' 2>/dev/null | xargs -0 -r rm -rf --
	@rm -rf $(STATE) .ruff_cache .mypy_cache .pytest_cache .hypothesis
	@find . -path ./.git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
