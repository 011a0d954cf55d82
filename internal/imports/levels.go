package imports

// Level is a set of packages that depend on lower levels and not on each other.
type Level struct {
	Name string
	For  string // what the level is for
	// Sideways permits imports between packages of the level. Go still rejects a cycle.
	Sideways bool
	Packages []Package
}

// Package is a package of the tree, by its folder. A path that ends in /* is every package directly below a folder that
// has no line of its own, so that a new one of its kind needs none.
type Package struct {
	Path string
	Doc  string // what the package is for, in one line
}

// Levels lists every package of the Go tree, the lowest level first. A new package is one line here, in the lowest
// level that is above all its imports. DESIGN.md lists the levels (go test ./internal/imports -update).
//
// A package's tests may also import packages of the same level and packages below the package's own folder, and
// packages of internal/testing. testsReach lists the others.
func Levels() []Level { return levels }

var levels = []Level{
	{
		Name: "basics", For: "need no other package of the tree",
		Packages: []Package{
			{".", "embeds temporal.yaml: what is needed from Temporal"},
			{"analysis/report/chart", "draws figures as SVG"},
			{"gpu/device", "NVIDIA devices through NVML; the only package that uses go-nvml"},
			{"gpu/gang", "the hosts that share one model: which have joined, which are lost"},
			{"gpu/wire", "the codec of gpu/PROTOCOL.md"},
			{"internal/badinput", "marks errors that the caller of a command can correct"},
			{"internal/cause", "strips errors of the file or address that a message names itself"},
			{"internal/house", "measures the tree and holds the ceilings of its figures"},
			{"internal/hub", "fetches published models and data sets from a hub"},
			{"internal/imports", "this list, and the rules below it"},
			{"internal/keyed", "holds what belongs to an episode, one for each key, within a bound"},
			{"internal/logs", "the log: structured lines with run, step, stage, shard and attempt, without secrets"},
			{"internal/loopback", "tells a program's request on this machine from a web page's"},
			{"internal/python", "finds the Python interpreter, and hands programs to it"},
			{"internal/refusal", "marks errors that a retry cannot fix: a stage refuses its input"},
			{"internal/rescue", "turns panics into errors"},
			{"internal/secret", "resolves references to secrets, and keeps the secrets out of texts"},
			{"internal/seed", "derives every random stream of a run from its coordinates"},
			{"internal/spelling", "suggests the names that a misspelt word may mean"},
			{"internal/terminal", "writes texts of others so that they do not control a terminal"},
			{"internal/trace", "where the time of a run's steps goes, as spans over OTLP"},
			{"policy/cpu/sgemm", "matrix multiplication for AVX2"},
			{"policy/scheduler", "decides which engine of a rollout runs which episode, and when"},
			{"python/adapter", "the program that runs a user's own Python environments, embedded"},
			{"rl/choice", "how a choice of the method declares itself: a loss, an estimator, a reward, a schedule"},
			{"rl/internal/exact", "sums without rounding"},
			{"rl/optimizer", "the rules by which steps change parameters, and their declarations"},
			{"rl/words", "compares answers by their words: exact match and F1"},
			{"sandbox/syscalls", "which system calls code in the sandbox may make, and which signals it sends"},
			{"schema/foreign", "reads Parquet and Arrow files that other programs have written"},
			{"schema/parquet", "writes and reads Parquet files whose rows are Go structs"},
		},
	},
	{
		Name: "contracts", For: "define the terms that packages exchange, and what an implementation must do",
		Packages: []Package{
			{"env", "environments and their declarations"},
			{"gpu/engine", "the Python side of the PyTorch engine, embedded"},
			{"internal/bench", "what the benchmark programs share"},
			{"internal/dataset", "files of tasks: rows that are checked, split and put in a seeded order"},
			{"internal/temporalconf", "reads temporal.yaml"},
			{"policy", "engines: what samples and what trains"},
			{"policy/engines", "declares the kinds of engines that recipes can choose"},
			{"rl/schedule", "settings that depend on the step alone"},
			{"rollout/branch", "decides where a tree-shaped rollout branches"},
			{"sandbox", "the execution of code that a model wrote: calls, sessions, verdicts, tiers"},
			{"schema", "the record: tables, rows, manifests, heads, keys"},
			{"store", "the object store"},
			{"tool", "what a policy can call: calls, verdicts, keys, and calls that must not run twice"},
		},
	},
	{
		Name: "implementations", For: "hold one algorithm, environment, store or part of the sandbox each",
		Packages: []Package{
			{"analysis/status", "where a run is: running, paused, parked, interrupted, stopped early, done …"},
			{"env/*", "one environment each"},
			{"env/calc", "generated arithmetic with a Python tool"},
			{"env/code", "Python functions that tests decide: HumanEval's form, or generated"},
			{"env/household", "a house in text: ALFWorld's tasks, commands and texts"},
			{"env/math", "questions of mathematics from files"},
			{"env/mix", "several environments, drawn by weight"},
			{"env/openai", "imports conversations in OpenAI's chat format"},
			{"env/remote", "environments outside the program: the user's own Python, servers of OpenEnv's protocol"},
			{"env/searchqa", "questions about a library of generated documents, answered by searching"},
			{"env/shop", "search and click in a generated shop: WebShop's pages, actions and score"},
			{"env/sokoban", "pushing boxes: generated rooms, or levels from files"},
			{"gpu/lease", "leases devices to one holder at a time"},
			{"gpu/setup", "finds or makes a Python for the PyTorch engine, and checks its packages"},
			{"internal/commit", "the commit protocol over schema and store"},
			{"internal/download", "opens remote files of tasks: on the S3 server, or on the web"},
			{"internal/jinja", "renders the chat templates of published models"},
			{"internal/machine", "what determines a run's rounding and speed, apart from its inputs"},
			{"internal/openai", "asks servers that speak OpenAI's chat completions"},
			{"internal/signing", "signs manifests, heads and notes of pruning, and reads the keys of those who check"},
			{"internal/stack", "the local stack: real servers, supervised"},
			{"policy/checkpoint", "reads and writes a policy's folder"},
			{"rl/advantage", "advantage estimators"},
			{"rl/loss", "losses and their cotangents"},
			{"rl/reward", "rewards and the comparison of answers"},
			{"rollout/debate", "decides debates between agents"},
			{"rollout/toolcall", "the forms in which models write calls of tools"},
			{"sandbox/rpc", "the protocol of the sandbox service"},
			{"sandbox/session", "one session for each trajectory; rebuilds lost ones"},
			{"sandbox/zygote", "runs calls and sessions in children of warm interpreters"},
			{"schema/stages", "declares every stage of a run once"},
			{"store/folder", "reads a local server's bucket as plain files"},
			{"store/mem", "a store in memory"},
			{"store/s3", "a store on an S3 server; the only package that uses minio-go"},
			{"tool/mcp", "the tools of Model Context Protocol servers"},
		},
	},
	{
		Name: "engines", For: "combine implementations: engines, prompt formats, lists of what recipes can name",
		Packages: []Package{
			{"env/environments", "lists the environments"},
			{"gpu/inventory", "a host's devices, as `gpu` shows them and for Prometheus"},
			{"gpu/plan", "estimates memory and flops of a model"},
			{"gpu/torch", "the PyTorch engine: starts it, supervises it and talks to it"},
			{"internal/compaction", "merges a step's small shards into one file for each table"},
			{"internal/judge", "asks a language model to judge answers"},
			{"internal/setup", "compares your Temporal and store with what is needed, and creates what is missing"},
			{"internal/step/api", "the parameters and results of activities"},
			{"policy/*", "one engine or sampler each"},
			{"policy/cpu", "the CPU engine"},
			{"policy/gguf", "writes a policy as one GGUF file"},
			{"policy/learner", "the update loop: drives an engine with a loss"},
			{"policy/tokenizer", "text to token ids and back"},
			{"rl/diagnose", "statistics about a run"},
			{"rl/resample", "which trajectories enter the update, how often and with what weight"},
			{"rollout/protocol", "prompt formats behind one contract"},
			{"sandbox/probe", "finds out which isolation a machine offers"},
			{"sandbox/symbolic", "compares written answers by calls to sympy"},
			{"store/overlay", "reads through another store; writes stay in memory"},
			{"tool/tools", "lists the tools: python; search and browse over documents"},
		},
	},
	{
		Name: "steps", For: "say how one step runs and is computed, without a store",
		Packages: []Package{
			{"internal/bench/idle", "a run's activities without their work, for measuring Temporal"},
			{"internal/bench/work", "the work that engines are measured with"},
			{"internal/evaluation", "computes the figures of an evaluation from its rows"},
			{"internal/metrics", "counts what a process does, for Prometheus"},
			{"internal/offers", "computes what a world offers to the methods before training"},
			{"internal/pretrained", "reads published models: folders and GGUF files"},
			{"internal/step", "which stage of a step runs after which, whatever runs them"},
			{"policy/servers", "samples with inference servers over HTTP: vLLM, SGLang, llama-server, our own"},
			{"policy/tinker", "trains and samples at a server that speaks the Tinker API"},
			{"rl", "the glossary of the algorithms, and tests across them"},
			{"rl/method", "composes a method; recipes and docs/methods.md come from its slots"},
			{"rollout", "the agent loop"},
			{"sandbox/client", "runs calls in one or several sandbox services"},
			{"sandbox/programs", "decides whether a program passes its tests, by calls"},
			{"sandbox/service", "offers an executor over the network"},
		},
	},
	{
		Name: "runs", For: "describe a whole run: its recipe, and its record",
		Packages: []Package{
			{"analysis", "reads the record"},
			{"analysis/inspect", "shows one file of the record"},
			{"recipes", "parses, validates and resolves recipes"},
			{"workflows", "Temporal workflows: runs, their steps, and where stages run"},
		},
	},
	{
		Name: "stages", For: "do the work of the stages: compute what they commit from rows and the recipe",
		Sideways: true, // later stages use what earlier ones define
		Packages: []Package{
			{"experiment", "declares experiments, expands their trials and compares arms"},
			{"internal/batch", "makes the training batch"},
			{"internal/curation", "which training tasks a run draws, by the filters of a recipe"},
			{"internal/enginepool", "a worker's engines: leases them to stages, with models resident in them"},
			{"internal/forks", "makes runs that share the first steps of others"},
			{"internal/grading", "scores trajectories by the recipe's reward"},
			{"internal/planning", "plans processes, devices, memory, time and bytes of a run before it starts"},
			{"internal/preflight", "checks before a run begins what follows from its recipe and what that names"},
			{"internal/prompts", "which problems a step samples, and how its shards divide them"},
			{"internal/selection", "which trajectories the update learns from"},
			{"internal/training", "what an update minimises, and how it cuts the batch"},
		},
	},
	{
		Name: "topics", For: "hold the stages: fetch rows, compute, commit",
		Sideways: true, // the frame of stages serves all topics, and later topics use what earlier ones commit
		Packages: []Package{
			{"activities/*", "the stages of one topic each"},
			{"activities/early", "gets verdicts on answers before their stages ask for them"},
			{"activities/failure", "gives errors of activities their kinds"},
			{"activities/record", "finds what runs have committed"},
			{"activities/resolver", "reads recipes, and makes what follows from them"},
			{"activities/resource", "a worker's engines, sandbox and tools"},
			{"activities/stage", "the frame of every stage, and the runner within one activity"},
			{"activities/summary", "has a run's first policy sum up pages"},
		},
	},
	{
		Name: "services", For: "do what workers and commands are asked for",
		Packages: []Package{
			{"activities", "registers the stages of all topics"},
			{"analysis/compare", "compares runs: recipes, programs, figures, first difference; generations of a step"},
			{"analysis/export", "writes trajectories and checkpoints for other programs"},
			{"analysis/sql", "SQL over committed shards, by DuckDB"},
			{"analysis/verify", "says whether the record of a run is complete and sound"},
			{"internal/gc", "deletes data that no manifest names and that none can come to name"},
			{"internal/importing", "the files of other systems that `import` takes"},
			{"internal/runs", "connects to runs on the servers: start, follow, steer, resume, report"},
			{"internal/serve", "answers OpenAI's API with a model on an engine of the program"},
			{"recipes/smoke", "makes small recipes that train a method's choices within seconds"},
		},
	},
	{
		Name: "assemblies", For: "put services together for programs",
		Packages: []Package{
			{"analysis/metrics", "a run's metrics, and TensorBoard's files of them"},
			{"analysis/report", "reports of a run, or of several, as one HTML page"},
			{"internal/monitor", "asks the servers how runs and task queues are, for Prometheus"},
		},
	},
	{
		Name: "pages", For: "show people what assemblies make, while they look at it",
		Packages: []Package{
			{"analysis/view", "runs in the browser: their figures, trajectories and problems, live"},
			{"experiment/trials", "reads trials from the record, and shows what an experiment has found as a page"},
		},
	},
	{
		Name: "testing", For: "hold what tests share; the product imports none of them",
		Sideways: true,
		Packages: []Package{
			{"internal/testing/*", "something that tests share"},
		},
	},
	{
		Name: "measurements", For: "measure parts of the program next to their limits and peers",
		Packages: []Package{
			{"internal/bench/*", "one measurement each"},
		},
	},
	{
		Name: "programs", For: "parse flags, call a package and print; no package imports them",
		Packages: []Package{
			{"cmd/gpu-check", "measures and checks the PyTorch engine on a machine without DuckDB, S3 and servers"},
			{"cmd/ropewalk", "the program; one file per subcommand"},
			{"deploy", "units, containers, compose file and chart for your own machines"},
			{"internal/bench/cases", "runs one of the measurements"},
			{"test/cluster", "trains on a cluster in miniature while its parts fail; looks for tensors on a wire"},
			{"test/e2e", "tests the program as a user runs it, with real servers"},
		},
	},
}

// testsReach lists the imports of higher levels by a package's tests, beyond those that Levels permits.
var testsReach = map[string][]string{
	// compares a step with that of a real Tinker server
	"gpu/torch": {"policy/tinker"},
}
