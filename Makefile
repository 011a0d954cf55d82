# Commands for building, testing and measuring. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Go's vector instructions, where the toolchain offers them as an experiment. They make the CPU engine 1.4 times faster
# (policy/cpu says which loops use them).
GOEXPERIMENT ?= $(shell GOEXPERIMENT=simd go env GOVERSION >/dev/null 2>&1 && echo simd)
export GOEXPERIMENT

RECIPE ?= recipes/quickstart.yaml
# Packages whose tests run under the race detector: those that start goroutines. Of activities, the tests of flows do.
RACE ?= ./analysis/view ./policy/servers ./policy/tinker ./rollout/... ./internal/serve ./gpu/device ./gpu/lease \
	./gpu/torch ./gpu/wire ./internal/commit/... ./internal/enginepool ./internal/metrics \
	./internal/monitor ./sandbox/zygote ./tool/mcp ./sandbox/client ./sandbox/service ./sandbox/session ./store/... \
	./tool/... ./workflows/...

.PHONY: audit bench-fleet bench-peer bench-pipelined bench-trees bench-worlds build chaos check check-bytes \
	check-tool fuzz sbom gpu-bundle run test \
	parity humaneval test-hosts test-presets race lint bench soak clean help models tools lint-tools lint-lower \
	test-alerts test-engine test-kills test-environments test-experiments test-upgrades test-python-package \
	test-traces test-sandbox test-models test-fetch test-rollout-workers test-limits test-large test-worlds \
	test-worlds-textworld test-worlds-thefuzz test-worlds-mcp bench-temporal \
	test-worlds-mcp-npm test-worlds-reasoning test-worlds-openenv \
	test-worlds-sokoban test-worlds-babyai test-worlds-miniwob test-worlds-scienceworld test-worlds-textarena \
	test-worlds-webshop test-tokenizers test-serve test-servers test-servers-llama test-servers-vllm test-tinker \
	containers house house-path test-apiserver test-cluster test-containers test-deploy compose-up \
	compose-down release

build: ## build bin/ropewalk
	@command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer" >&2; exit 1; }
	@command -v "$${CC:-cc}" >/dev/null || { \
		echo "a C compiler is missing (DuckDB is linked in): on Debian: apt-get install gcc libc6-dev" >&2; \
		exit 1; }
	@command -v "$${CXX:-c++}" >/dev/null || { \
		echo "a C++ compiler is missing (DuckDB is linked in): install g++, on Debian: apt-get install g++" >&2; \
		exit 1; }
	@[[ -x bin/ropewalk ]] || echo "building bin/ropewalk (DuckDB is linked in; this takes minutes the first time)…"
	@go build -trimpath -o bin/ropewalk ./cmd/ropewalk

gpu-bundle: ## pack gpu-check, which measures a GPU on a bare machine, as .ropewalk/gpu-bundle.tar.gz
	@tools/gpu-bundle.sh

run: ## start the local stack, train RECIPE (recipes/quickstart.yaml), show it live
	@tools/build.sh --download temporal versitygw 2>/dev/null & \
	$(MAKE) --no-print-directory build # meanwhile the servers' modules are downloaded; `make tools` reports any error
	@$(MAKE) --no-print-directory tools
	@bin/ropewalk run $(RECIPE)

# TIMES=1 rewrites the packages' seconds in .ci/times.
test: build tools check-tool ## run every test against real local servers
	@ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_E2E_BINARY=$(CURDIR)/bin/ropewalk \
		.tools/check -times .ci/times $(if $(TIMES),-update)

# BASE is where the changes begin: the commit at which the branch left origin/main, or else the last commit.
BASE ?= $(shell at=$$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD); \
	[[ $$at != $$(git rev-parse HEAD) || -n $$(git status --porcelain) ]] || at=HEAD~1; echo $$at)
check: lint build tools check-tool ## lint, test the packages that a change reaches, train three steps (four minutes)
	@ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_E2E_BINARY=$(CURDIR)/bin/ropewalk \
		.tools/check -since $(BASE) -times .ci/times -budget 90s -slow 5
	@go test -trimpath ./internal/house ./internal/imports # they read the whole tree
	@tools/short-run.sh

check-tool:
	@GOEXPERIMENT= go -C tools/check build -o ../../.tools/check .

parity: ## compare every loss and its gradient with PyTorch's autograd (ROPEWALK_PYTHON: a Python with torch)
	ROPEWALK_REQUIRE_TORCH=1 go test -count 1 -run TestParity -v ./rl/loss

humaneval: ## run HumanEval's solutions and empty bodies in the sandbox, 50 rounds in random order
	ROPEWALK_HUMANEVAL_ROUNDS=50 go test -count 1 -run TestHumanEval -v ./sandbox

# ROPEWALK_PYTHON names a Python with torch.
test-hosts: tools ## train a model that lies on two hosts, and lose hosts during updates (minutes)
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_REQUIRE_TORCH=1 ROPEWALK_TEST_LOST_HOSTS=1 \
		go test -count 1 -timeout 30m -run TestOneModelOnTwoHosts -v ./test/e2e

test-engine: tools ## test the PyTorch engine with several processes, ranks and faults (five minutes)
	ROPEWALK_REQUIRE_TORCH=1 ROPEWALK_TEST_ENGINE=1 \
		go test -count 1 -timeout 30m -run 'TestPython|TestReal|TestMiniature' ./gpu/engine ./gpu/torch ./cmd/gpu-check

# STORM is the seed of the first storm, which decides what happens and when.
STORMS ?= 10
STORM ?= 1
chaos: tools ## disturb STORMS runs at random, and compare each with an undisturbed one (about a minute each)
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_STORMS=$(STORMS) ROPEWALK_STORM_SEED=$(STORM) \
		go test -count 1 -timeout 60m -run TestStorms -v ./test/e2e

test-kills: build tools ## kill workers in the middle of each way to run a step, and compare the weights
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_TEST_KILLS=1 go test -count 1 -timeout 60m -v \
		-run 'TestKilled|TestForwardPasses|TestAnInterruptedRunGoesOnElsewhere' ./test/e2e

test-environments: build tools ## train in the interactive environments, in a mix, and with a judge
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_TEST_ENVIRONMENTS=1 go test -count 1 -timeout 60m -v \
		-run 'TestInteractiveEnvironment|TestRunsOverALFWorldsGames|TestAJudgeDecides|TestAMixTrains' ./test/e2e

test-experiments: build tools ## kill an experiment's command, and have a trial wait for a decision
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_TEST_EXPERIMENTS=1 go test -count 1 -timeout 60m -v \
		-run 'TestAnExperiment|TestATrialParks' ./test/e2e

test-upgrades: build tools ## have runs change builds between two steps
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_TEST_UPGRADES=1 go test -count 1 -timeout 60m -v \
		-run 'TestARunChangesBuilds|TestARunFollows' ./test/e2e

test-python-package: build tools ## test the Python package over a real run, its types, the notebook and the trackers
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_REQUIRE_NOTEBOOK=1 ROPEWALK_REQUIRE_TRACKERS=1 \
	ROPEWALK_TEST_PYTHON_PACKAGE=1 go test -count 1 -timeout 60m -v \
		-run 'TestPythonPackage|TestNotebook|TestTrackers' ./test/e2e ./analysis/metrics

test-sandbox: ## try every attack in every tier, with signals from outside, and sympy's grading
	ROPEWALK_TEST_SANDBOX=1 go test -count 1 -timeout 60m ./sandbox ./sandbox/zygote ./sandbox/symbolic

test-models: ## compare models and their files with transformers and llama.cpp
	ROPEWALK_TEST_MODELS=1 go test -count 1 -timeout 60m ./policy/cpu ./policy/gguf

# Debian: apt-get install prometheus prometheus-alertmanager. This takes about five minutes.
test-alerts: tools ## have a real Prometheus and Alertmanager watch a real run, and inject faults
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_REQUIRE_PROMETHEUS=1 ROPEWALK_TEST_ALERTS=1 \
		go test -count 1 -timeout 30m -run 'TestMonitoringFiles|TestAlerts' -v ./test/e2e

# The collector is built into .tools once (a minute).
test-traces: tools ## send the spans of real runs through the OpenTelemetry project's collector
	@tools/build.sh otelcol
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_REQUIRE_COLLECTOR=1 ROPEWALK_TEST_COLLECTOR=1 \
		go test -count 1 -timeout 30m -run 'TestARealCollector|TestTraces' -v ./test/e2e

# Debian: apt-get install chromium. This takes minutes.
.PHONY: test-browser
test-browser: tools ## start, steer, mend and replay runs in Temporal's web UI, with a real browser
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_REQUIRE_CHROMIUM=1 ROPEWALK_TEST_BROWSER=1 \
		go test -count 1 -timeout 30m -run TestRunsInTheBrowser -v ./test/e2e

# WORKERS and MINUTES choose; with 0 minutes one run is disturbed.
WORKERS ?= 6
MINUTES ?= 10
test-rollout-workers: tools ## kill rollout workers behind a bad network and sandbox services, and compare the weights
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_FAR_WORKERS=$(WORKERS) ROPEWALK_FAR_MINUTES=$(MINUTES) \
		go test -count 1 -timeout 60m -v -run 'TestRolloutWorkersVanish|TestKilledSandboxNodes' ./test/e2e

# This takes tens of minutes on two cores; with LIMITS_SHORT=1 it extrapolates from 20 shards, in a minute or two.
test-limits: tools ## hold a step of 256 shards and 50 turns against the limits of a real Temporal server
	ROPEWALK_REQUIRE_SERVERS=1 $(if $(LIMITS_SHORT),ROPEWALK_LONG_FORMS=1,ROPEWALK_TEST_LIMITS=1) \
		go test -count 1 -timeout 60m -run TestALargeStepStaysWithinTemporalsLimits -v ./test/e2e

# This takes minutes and 12 GiB of disk.
test-large: tools ## send more than 5 GiB in one object to the local S3 server and back, in bounded memory
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_TEST_LARGE=1 \
		go test -count 1 -timeout 60m -run TestMoreThanASinglePut -v ./store/s3

# This takes a minute or two, 10 GiB of disk and 6 GiB of memory.
test-fetch: tools ## fetch a policy of Qwen3-0.6B's shape from the local S3 server, and time it
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_TEST_FETCH=1 \
		go test -count 1 -timeout 30m -run TestAPolicyIsFetchedOncePerVersion -v ./internal/enginepool

test-presets: build tools ## train the smoke recipe of every method: three steps through the real pipeline (minutes)
	@tools/smoke-presets.sh $(PRESETS)

# The packages are installed into .tools/worlds once. With them this takes about two and a half minutes of one core.
# WORLDS chooses some of textworld, thefuzz, reasoning (reasoning-gym), openenv, sokoban (gym-sokoban), mcp (servers
# from PyPI), mcp-npm (servers from npm, which want Node.js), and the examples of environments in Python, which take two
# training steps each: babyai, miniwob (wants Chromium), scienceworld (wants Java), textarena, textworld (and ALFWorld's
# package, if ROPEWALK_ALFWORLD names a folder of games) and webshop (if ROPEWALK_WEBSHOP names a folder of the release,
# and ROPEWALK_WEBSHOP_PYTHON a Python in which it runs).
WORLDS ?= textworld thefuzz mcp mcp-npm reasoning openenv sokoban babyai miniwob scienceworld textarena webshop
test-worlds: $(addprefix test-worlds-,$(WORLDS)) ## compare with the packages of others

test-worlds-textworld:
	ROPEWALK_REQUIRE_TEXTWORLD=1 \
	ROPEWALK_TEXTWORLD_PYTHON=$${ROPEWALK_TEXTWORLD_PYTHON:-$$(tools/worlds.sh textworld)} ROPEWALK_TASKS=10000 \
		go test -count 1 -timeout 60m -v \
		-run 'TestTextWorldAgrees|TestTheExpertSolvesEveryTask|TestRealWorldsTrain/(text|alf)world' \
		./env/household ./activities

test-worlds-thefuzz:
	ROPEWALK_REQUIRE_THEFUZZ=1 ROPEWALK_THEFUZZ_PYTHON=$${ROPEWALK_THEFUZZ_PYTHON:-$$(tools/worlds.sh thefuzz)} \
		go test -count 1 -run TestThefuzzAgrees -v ./env/shop

test-worlds-reasoning:
	ROPEWALK_REASONING_PYTHON=$${ROPEWALK_REASONING_PYTHON:-$$(tools/worlds.sh reasoning)} \
	ROPEWALK_REQUIRE_REASONING=1 go test -count 1 -run TestRealReasoningGym -v ./env/remote

test-worlds-openenv:
	ROPEWALK_OPENENV_PYTHON=$${ROPEWALK_OPENENV_PYTHON:-$$(tools/worlds.sh openenv)} \
	ROPEWALK_REQUIRE_OPENENV=1 go test -count 1 -run TestRealOpenEnv -v ./env/remote

test-worlds-sokoban:
	ROPEWALK_SOKOBAN_PYTHON=$${ROPEWALK_SOKOBAN_PYTHON:-$$(tools/worlds.sh sokoban)} \
	ROPEWALK_REQUIRE_SOKOBAN=1 go test -count 1 -run TestRealGymSokoban -v ./env/remote

test-worlds-babyai:
	ROPEWALK_BABYAI_PYTHON=$${ROPEWALK_BABYAI_PYTHON:-$$(tools/worlds.sh babyai)} ROPEWALK_REQUIRE_BABYAI=1 \
		go test -count 1 -timeout 60m -run 'TestRealGymnasium|TestRealWorldsTrain/babyai' -v ./env/remote ./activities

test-worlds-miniwob:
	ROPEWALK_MINIWOB_PYTHON=$${ROPEWALK_MINIWOB_PYTHON:-$$(tools/worlds.sh miniwob)} ROPEWALK_REQUIRE_MINIWOB=1 \
		go test -count 1 -timeout 60m -run TestRealWorldsTrain/miniwob -v ./activities

test-worlds-scienceworld:
	ROPEWALK_SCIENCEWORLD_PYTHON=$${ROPEWALK_SCIENCEWORLD_PYTHON:-$$(tools/worlds.sh scienceworld)} \
	ROPEWALK_REQUIRE_SCIENCEWORLD=1 \
		go test -count 1 -timeout 60m -run TestRealWorldsTrain/scienceworld -v ./activities

test-worlds-textarena:
	ROPEWALK_TEXTARENA_PYTHON=$${ROPEWALK_TEXTARENA_PYTHON:-$$(tools/worlds.sh textarena)} \
	ROPEWALK_REQUIRE_TEXTARENA=1 \
		go test -count 1 -timeout 60m -run TestRealWorldsTrain/textarena -v ./activities

test-worlds-webshop:
	go test -count 1 -timeout 60m -run TestRealWorldsTrain/webshop -v ./activities

test-worlds-mcp:
	ROPEWALK_MCP_PYTHON=$${ROPEWALK_MCP_PYTHON:-$$(tools/worlds.sh mcp)} ROPEWALK_REQUIRE_MCP_SERVERS=1 \
		go test -count 1 -run 'TestRealServerTime|TestRealLibraryServer' -v ./tool/mcp

test-worlds-mcp-npm:
	ROPEWALK_MCP_NODE_MODULES=$${ROPEWALK_MCP_NODE_MODULES:-$$(tools/worlds.sh mcp-npm)} \
	ROPEWALK_REQUIRE_MCP_SERVERS=1 go test -count 1 -run TestRealServerEverything -v ./tool/mcp

# The packages are installed into .tools/worlds/serve once (about 600 MB). With them it takes less than a minute.
test-serve: ## ask the server through OpenAI's Python client and through lm-eval
	ROPEWALK_SERVE_PYTHON=$${ROPEWALK_SERVE_PYTHON:-$$(tools/worlds.sh serve)} ROPEWALK_REQUIRE_SERVE_CLIENTS=1 \
		go test -count 1 -run TestReal -v ./internal/serve

# SERVERS chooses some of llama (compiled into .tools once, four minutes of two cores; then half a minute) and vllm
# (installed into .tools/vllm once, about 6 GB; then some minutes).
SERVERS ?= llama
test-servers: $(addprefix test-servers-,$(SERVERS)) ## generate with real inference servers, and train through them

test-servers-llama:
	ROPEWALK_LLAMA_SERVER=$${ROPEWALK_LLAMA_SERVER:-$$(tools/llama-server.sh)} ROPEWALK_REQUIRE_LLAMA_SERVER=1 \
		go test -count 1 -p 1 -v \
		-run 'TestRealLlama|TestARunThroughARealLlama|TestARunWhoseOnlyServer|TestServersThatAreTooFar' \
		./policy/servers ./internal/bench/fleet ./activities

test-servers-vllm: ## generate with a real vLLM on the processor, and train through it
	ROPEWALK_VLLM=$${ROPEWALK_VLLM:-$$(tools/vllm.sh)} ROPEWALK_REQUIRE_VLLM=1 \
		go test -count 1 -p 1 -timeout 60m -run 'TestRealVLLM|TestARunThroughARealVLLM' -v ./policy/servers ./activities

# SkyRL is installed into .tools/worlds once (some 8 GB; it wants Python 3.12). With it this takes about five minutes of
# two cores. ROPEWALK_PYTHON names a Python with torch and peft.
test-tinker: ## train at SkyRL's real Tinker server, and compare a step with PyTorch's
	ROPEWALK_TINKER_PYTHON=$${ROPEWALK_TINKER_PYTHON:-$$(tools/worlds.sh tinker)} ROPEWALK_REQUIRE_TINKER=1 \
		ROPEWALK_REQUIRE_TORCH=1 go test -count 1 -timeout 60m -run 'TestRealSkyRL|TestARunAtARealTinker' -v \
		./policy/tinker ./gpu/torch ./activities

models: ## fetch the published model of recipes/smollm2.yaml into .tools/models (98 MB)
	@tools/models.sh

# The files are fetched into .tools/tokenizers once (about 170 MB). The test also logs the ratio of encoding times.
test-tokenizers: ## compare published tokenizers with Hugging Face's on 11 MB of text
	ROPEWALK_TOKENIZERS=$${ROPEWALK_TOKENIZERS:-$$(tools/tokenizers.sh)} ROPEWALK_REQUIRE_TOKENIZERS=1 \
		go test -count 1 -run 'Published|TextFromOutside|ChatTemplates' -v ./policy/tokenizer ./internal/jinja

# The templates are fetched into .tools/templates once (140 MB of packages, of which 2 MB stay). ROPEWALK_PYTHON names a
# Python with transformers and jinja2.
test-templates: ## compare the chat templates of 210 published models with transformers (minutes)
	ROPEWALK_TEMPLATES=$${ROPEWALK_TEMPLATES:-$$(tools/templates.sh)} ROPEWALK_REQUIRE_TEMPLATES=1 \
		ROPEWALK_REQUIRE_TORCH=1 go test -count 1 -run TestPublishedTemplates -v ./internal/jinja ./rollout/protocol

check-bytes: tools ## run the same short recipes at BASE=COMMIT and here, and compare all rows and weights (minutes)
	@tools/check-bytes.sh "$(BASE)" $(RUNS)

# Left out: the tables of programs that run in the sandbox, and what PyTorch computes. Neither adds goroutines. ALL=1
# also runs the packages that passed with the files that they have now, which .ci/raced notes.
race: tools check-tool ## run the concurrent packages that a change reaches under the race detector
	@ROPEWALK_REQUIRE_SERVERS=1 .tools/check -race -skip 'TestThreats|TestNeighbours|TestHumanEval|TestReal' \
		-passed .ci/raced -times .ci/race-times $(if $(ALL),-all,-budget 300s) $(if $(TIMES),-update) $(RACE)

# tools/lint/checks holds the checks of go vet, staticcheck and workflowcheck. They look only at packages that changed.
lint: lint-tools ## run gofmt, all checks of Go code in one go vet, the style check and the licence check
	@unformatted=$$(gofmt -l .); \
	if [[ -n $$unformatted ]]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet -trimpath -vettool=.tools/checks ./... # the cache then serves every checkout
	go -C tools/lint test -trimpath ./...
	.tools/style -ratchet tools/lint/style/unwritten.txt
	.tools/licences ./cmd/...

# `.tools/style -all FOLDER` lists what is left to rewrite in a folder.
lint-lower: lint-tools ## write down that listed folders have fewer findings of style than before
	.tools/style -ratchet tools/lint/style/unwritten.txt -lower

# `go run ./internal/house MEASURE` lists all that a measure counts.
house: ## measure the tree: lines, packages, rooms, words, each with its ceiling and its aim
	@go run ./internal/house

house-path: tools ## measure what one more step of the quickstart executes of workflows and activities (two minutes)
	@tools/main-path.sh .ropewalk/main-path.txt
	@go run ./internal/house -path .ropewalk/main-path.txt

FUZZTIME ?= 10s
fuzz: ## run every fuzz target for FUZZTIME (10s) each; FUZZ='package Target' chooses one
	@tools/fuzz.sh $(FUZZTIME) $(FUZZ)

audit: ## look up known vulnerabilities of Go modules and Python packages, if their databases can be reached
	@tools/audit.sh

sbom: build ## list all linked modules and pinned packages (CycloneDX) in .ropewalk/sbom
	@tools/sbom.sh

containers: build sbom ## build the images of worker, gpu worker and sandbox node (root; podman or buildah, debootstrap)
	@deploy/containers/build.sh

test-containers: build sbom ## build the images twice, compare them, and have the sandbox's doctor look into its own
	@deploy/containers/check.sh

compose-up: ## start Temporal, S3, workers, a sandbox node and monitoring in containers (make containers first)
	@deploy/compose.sh up

compose-down: ## end what compose-up started; the data stays
	@deploy/compose.sh down

test-deploy: ## check units, chart and compose file: systemd-analyze, helm lint and template, Kubernetes' own schemas
	@tools/build.sh helm
	ROPEWALK_REQUIRE_HELM=1 ROPEWALK_REQUIRE_SYSTEMD=1 go test -count 1 ./deploy

# Debian: apt-get install etcd-server. Kubernetes' programs are built into .tools once (minutes). APISERVER_SHORT=1
# applies the chart's default values alone.
APISERVER_SHORT ?=
test-apiserver: ## have a Kubernetes API server admit the chart over the matrix of values (a minute)
	@tools/build.sh helm kube-apiserver kubectl
	ROPEWALK_TEST_APISERVER=1 ROPEWALK_REQUIRE_APISERVER=1 ROPEWALK_REQUIRE_HELM=1 \
		ROPEWALK_APISERVER_SHORT=$(APISERVER_SHORT) \
		go test -count 1 -run TestAPIServer -v ./deploy

# Needs root, for network namespaces; on Debian: apt-get install postgresql iproute2. Temporal's server is built into
# .tools once (four minutes). CLUSTER_SHORT=1 has each fault once and trains twelve steps (two or three minutes);
# CLUSTER_STEPS=85 trains the whole quickstart.
CLUSTER_SHORT ?=
CLUSTER_STEPS ?=
test-cluster: tools ## train on a cluster in miniature while processes, networks and servers fail (ten minutes; root)
	@tools/build.sh temporal-server temporal-sql-tool
	ROPEWALK_TEST_CLUSTER=1 ROPEWALK_REQUIRE_CLUSTER=1 ROPEWALK_CLUSTER_STEPS=$(CLUSTER_STEPS) \
		ROPEWALK_CLUSTER_SHORT=$(CLUSTER_SHORT) \
		go test -count 1 -timeout 60m -run TestCluster -v ./test/cluster

release: ## pack the commit that is checked out in .ropewalk/release: built twice and compared, with checksums
	@tools/release.sh

bench: bench-engine bench-rl bench-sandbox bench-quickstart ## run every benchmark; results are in .ropewalk/bench/

bench-quickstart: build tools ## train the quickstart with six seeds (20 minutes)
	@bin/ropewalk experiment run experiments/quickstart.yaml

# The model must be there: `make models`.
bench-smollm2: build tools ## train the published model of recipes/smollm2.yaml and compare before and after (minutes)
	@bin/ropewalk experiment run experiments/smollm2.yaml

# llama-server is compiled once (minutes); the model must be there: `make models`. vLLM is measured, too, where
# tools/vllm.sh has installed it (about 6 GB).
bench-serve: build ## compare `ropewalk serve` with llama.cpp's server and vLLM at 1, 4 and 16 streams (minutes)
	@go run ./internal/bench/cases serve -llama "$${ROPEWALK_LLAMA_SERVER:-$$(tools/llama-server.sh)}" \
		-vllm "$${ROPEWALK_VLLM:-.tools/vllm/bin/vllm}"

# TRL is installed into .tools/worlds once (40 MB). ROPEWALK_PYTHON names a Python with torch, transformers and
# accelerate; the model must be there: `make models`.
bench-peer: build tools ## compare training steps of recipes/smollm2.yaml with TRL's GRPOTrainer (half an hour)
	@PYTHONPATH=$$("$$(tools/worlds.sh trl)" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
		go run ./internal/bench/cases peer

bench-fleet: build ## kill one of three servers and slow another in mid-rollout, next to a static split (minutes)
	@go run ./internal/bench/cases fleet -llama "$${ROPEWALK_LLAMA_SERVER:-$$(tools/llama-server.sh)}"

bench-rollout: build tools ## compare rollouts with the limit of the machine, interleaved and staged (minutes)
	@go run ./internal/bench/cases rollout

bench-worlds: build tools ## train each world by GRPO and by its paper's method, three seeds each (at most 2.5 hours)
	@bin/ropewalk experiment run experiments/worlds.yaml

bench-trees: build tools ## compare AEPO's and ARPO's trees with GRPO on searchqa, three seeds each (half an hour)
	@bin/ropewalk experiment run experiments/trees.yaml

bench-pipelined: build tools ## compare the time of pipelined steps with that of others, on the main job (minutes)
	@go run ./internal/bench/cases pipelined

# PostgreSQL must be there (Debian: apt-get install postgresql); Temporal's production server is built once (minutes).
# LOADS chooses: RUNSxSHARDSxSECONDS, separated by commas.
bench-temporal: tools ## measure how many runs a Temporal server carries, on PostgreSQL and on SQLite (ten minutes)
	@tools/build.sh temporal-server temporal-sql-tool
	@go run ./internal/bench/cases temporal $(if $(LOADS),-loads $(LOADS))

# One of the peers is bubblewrap; on Debian: apt-get install bubblewrap.
bench-sandbox: build ## compare the sandbox with the limit of its design and with its peers (minutes)
	@tools/sandbox-python.sh
	@go run ./internal/bench/cases sandbox

SOAK ?= 30m
soak: ## load the sandbox with good and bad programs for SOAK (30m); fails if anything that it holds grows
	@tools/sandbox-python.sh || echo "going on without numpy and sympy"
	@go run ./internal/bench/cases soak -for $(SOAK)

bench-%: ## run one benchmark: bench-engine, bench-record, -rl, -simulate, -view
	@go run ./internal/bench/cases $*

tools: ## use the local servers on PATH; where they are missing, build pinned ones once into .tools/
	@tools/build.sh temporal versitygw

# Without paths and commits in it, the program of the checks is the same in every checkout, and so is what is cached.
lint-tools:
	@mkdir -p .tools
	@go -C tools/lint build -trimpath -buildvcs=false -o ../../.tools/ ./checks ./licences ./style

clean: ## remove what was built; keep .tools/ and the record in .ropewalk/
	rm -rf bin

help: ## print this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
