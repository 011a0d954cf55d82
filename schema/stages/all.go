package stages

import (
	"time"

	"github.com/ropewalk/ropewalk/schema"
)

// Needs are what a recipe asks of the stages that not every recipe has. They travel with a run's plan.
type Needs struct {
	// Grade: symbolic verdicts on answers.
	Grade bool `json:"grade,omitempty"`
	// Judge: a language model's judgements of answers.
	Judge bool `json:"judge,omitempty"`
	// Function: results of a user's reward function.
	Function bool `json:"function,omitempty"`
	// Logprobs: outputs of models for each kept token that the rollout does not give.
	Logprobs bool `json:"forward,omitempty"`
	// ReplayBuffer: earlier trajectories are kept and learnt from again.
	ReplayBuffer bool `json:"replay,omitempty"`
	// Data: the training tasks are filtered before the first step.
	Data bool `json:"data,omitempty"`
	// Difficulty: a given model answers the training tasks before that.
	Difficulty bool `json:"difficulty,omitempty"`
	// Initial: the policy before the warm start is evaluated too.
	Initial bool `json:"initial,omitempty"`
}

// measured are the tables that an evaluation commits, of whatever policy.
var measured = []schema.Table{schema.Evaluations, schema.EvaluationPrompts, schema.EvaluationTurns,
	schema.EvaluationToolCalls, schema.EvaluationTransitions, schema.EvaluationTrajectories,
	schema.EvaluationJudgements, schema.EvaluationDebates}

// Why stages cannot be replayed, where several say the same.
const (
	needsEngine = "needs the engine; run the recipe again with the same seed: ropewalk run RECIPE --seed N"
	sameSeed    = "run the recipe again with the same seed: ropewalk run RECIPE --seed N"
)

// all is the list: a new stage is an entry here, its activity, and a call in the workflow.
var all = []Stage{
	{
		Name: schema.StagePrepare, Phase: Init,
		Doc: "resolves the recipe, settles the engine and fetches the model that the recipe starts from",
		// A model may have to be downloaded. A worker that died is noticed by its heartbeats.
		Activities: []Activity{on(CPU, "PrepareRun", 6*time.Hour)},
		Also:       "the recipe given", Commits: "the resolved recipe, the code's digest",
		Writes: []schema.Table{schema.Documents},
		Instead: "commits the recipe that all of a run follows from; run another recipe: " +
			"ropewalk run RECIPE --set path=value",
		Waiting: "preparing: recipe resolved and committed",
	},
	{
		Name: schema.StageAmend, Phase: Init,
		Doc:        "changes the recipe of a run that waits for a person",
		Activities: []Activity{on(CPU, "AmendRecipe", time.Minute)},
		Also:       "the recipe as it is", Commits: "the recipe as a person changed it during the run",
		Writes: []schema.Table{schema.Documents},
	},
	{
		Name: schema.StageWarmStart, Phase: Init,
		Doc:        "makes the first policy by cloning a teacher",
		Activities: []Activity{on(GPU, "WarmStart", time.Hour)},
		Also:       "the recipe",
		Commits: "a checkpoint, outside the run, under the digest of all that it follows from: recipe fields, " +
			"versions of the program's parts, machine",
		Instead: "trains a policy, which needs the engine; run the recipe again: ropewalk run RECIPE",
		Waiting: "warm start: cloning the teacher's demonstrations (about a minute; an earlier one is reused)",
	},
	{
		Name: schema.StageInitial, Phase: Init,
		Doc:        "measures the policy before the warm start on held-out problems",
		When:       func(n Needs) bool { return n.Initial },
		If:         "the warm start clones the form of calls alone (`warm_start.demonstrations.form`)",
		Activities: []Activity{on(Rollout, "EvaluateInitial", time.Hour)},
		Also:       "the checkpoint before the warm start",
		Writes:     measured,
		Commits:    "the rows of an evaluation; `show` and the report compare them with those after the warm start",
		Instead:    needsEngine,
		Waiting:    "evaluating the policy before the warm start",
	},
	{
		Name: schema.StageCandidates, Phase: Init,
		Doc:        "decides which training tasks a given model answers, by the filters that need no model",
		When:       func(n Needs) bool { return n.Difficulty },
		If:         "the recipe has `data.difficulty`",
		Activities: []Activity{on(CPU, "SelectCandidates", time.Hour)},
		Also: "the environment's files, evaluation sets, the prompts and rewards of another run; the model's " +
			"checkpoint or folder",
		Writes:  []schema.Table{schema.Tasks},
		Commits: "the model: a checkpoint of its own if the model is a folder",
		Instead: "reads files and the model; run the recipe with another data section: " +
			"ropewalk run RECIPE --set data.…=value",
		Waiting: "preparing data: choosing the tasks that the model answers",
	},
	{
		Name: schema.StageAnswers, Phase: Init, Parts: Shards,
		Doc:        "has the given model answer training tasks, and grades its answers",
		When:       func(n Needs) bool { return n.Difficulty },
		If:         "the recipe has `data.difficulty`",
		Activities: []Activity{on(Rollout, "AnswerTasks", 4*time.Hour)},
		Reads:      []Read{from(schema.StageCandidates, schema.Tasks)},
		Also:       "the model",
		Writes:     []schema.Table{schema.TaskAnswers},
		Instead:    needsEngine,
		Waiting:    "preparing data: the model answers the training tasks",
	},
	{
		Name: schema.StageData, Phase: Init,
		Doc:        "decides which training tasks are drawn, and why others are dropped",
		When:       func(n Needs) bool { return n.Data },
		If:         "the recipe has `data`",
		Activities: []Activity{on(CPU, "PrepareData", time.Hour)},
		Reads: []Read{from(schema.StageCandidates, schema.Tasks),
			from(schema.StageAnswers, schema.TaskAnswers)},
		Also:    "the environment's files, evaluation sets, the prompts and rewards of another run",
		Writes:  []schema.Table{schema.Tasks},
		Commits: "the digests of the evaluation sets",
		Instead: "decides from files which tasks the steps draw; run the recipe with another data section: " +
			"ropewalk run RECIPE --set data.…=value",
		Waiting: "preparing data: filtering the training tasks",
	},
	{
		Name: schema.StageImport, Phase: Init,
		Doc:        "turns an uploaded file into trajectories",
		Activities: []Activity{on(CPU, "ImportTrajectories", 10*time.Minute)},
		Also:       "the uploaded file", Commits: "the imported trajectories, as the rollout of step 1",
		Writes:  []schema.Table{schema.Prompts, schema.Turns, schema.Imported},
		Instead: "reads the uploaded file; import the file again: ropewalk import FORMAT FILE",
	},
	{
		Name: schema.StagePrompts, Phase: Step,
		Doc: "draws the step's problems, a round where dynamic sampling has several",
		// It reads all earlier steps, where problems are those not solved yet.
		Activities: []Activity{on(CPU, "SelectPrompts", 30*time.Minute)},
		Also:       "the recipe; in a stage of unsolved problems the prompts and rewards of the steps before",
		Writes:     []schema.Table{schema.Prompts}, Commits: "the note of the ledger's range",
		Instead: "follows from recipe and seed alone; for other prompts run the recipe with another seed: " +
			"ropewalk run RECIPE --seed N",
	},
	{
		Name: schema.StageRollout, Phase: Step, Parts: Turns, Column: "rollout",
		Doc: "has the policy generate",
		Activities: []Activity{
			on(Rollout, "GenerateRollouts", 30*time.Minute),
			joint(Rollout, "RunEpisodes"),
		},
		Reads:   []Read{from(schema.StagePrompts, schema.Prompts)},
		Also:    "earlier turns and their tool calls, the policy",
		Writes:  []schema.Table{schema.Turns, schema.Branches, schema.Imported},
		Commits: "`imported` in an import; `branches` with `rollout.tree`",
		Instead: "needs the engine and the environment; " + sameSeed,
	},
	{
		Name: schema.StageSandbox, Phase: Step, Parts: Turns, Column: "sandbox",
		Doc:        "runs the tool calls of the turn, or applies its actions to an interactive environment",
		Activities: []Activity{on(Sandbox, "ExecuteToolCalls", 30*time.Minute)},
		Reads:      []Read{from(schema.StageRollout, schema.Turns, schema.Branches)},
		Also:       "the run's first policy where it sums up pages, on the queue `rollout` then",
		Writes:     []schema.Table{schema.ToolCalls, schema.Transitions},
		Commits:    "`transitions` instead of tool calls in an interactive environment",
		Instead:    "executes the policy's code, which needs the sandbox; " + sameSeed,
	},
	{
		Name: schema.StageAssemble, Phase: Step, Parts: Shards, Column: "reward",
		Doc:        "joins turns and tool results to trajectories",
		Activities: []Activity{on(CPU, "AssembleTrajectories", 5*time.Minute)},
		Reads: []Read{from(schema.StageRollout, schema.Turns, schema.Branches),
			from(schema.StageSandbox, schema.ToolCalls, schema.Transitions)},
		Writes: []schema.Table{schema.Trajectories},
		Instead: "joins turns and tool results by the environment's rules; " +
			"replay from reward, which reads what it made",
	},
	{
		Name: schema.StageGrade, Phase: Step, Parts: Shards, Column: "reward",
		Doc: "has sympy compare the answers that strings, values and lists find different from their gold, or runs " +
			"programs with their tests",
		When:       func(n Needs) bool { return n.Grade },
		If:         "the recipe asks for it (`reward.symbolic`, or the reward `unit_tests`)",
		Activities: []Activity{on(Sandbox, "GradeAnswers", 30*time.Minute)},
		Reads:      []Read{from(schema.StageAssemble, schema.Trajectories)},
		Writes:     []schema.Table{schema.Gradings},
		Instead:    "asks the sandbox; replay from reward, which reads its verdicts",
	},
	{
		Name: schema.StageJudge, Phase: Step, Parts: Shards, Column: "reward",
		Doc:        "asks a language model about the answers that the reward has judged",
		When:       func(n Needs) bool { return n.Judge },
		If:         "the reward asks a judge (`reward.judge: server`, or `judged`)",
		Activities: []Activity{on(CPU, "JudgeAnswers", 2*time.Hour)},
		Reads:      []Read{from(schema.StageAssemble, schema.Trajectories)},
		Also:       "the prompts, and the judge's server",
		Writes:     []schema.Table{schema.Judgements},
		Instead:    "asks a server; replay from reward, which reads its verdicts",
	},
	{
		Name: schema.StageFunction, Phase: Step, Parts: Shards, Column: "reward",
		Doc:        "calls the user's reward function in Python",
		When:       func(n Needs) bool { return n.Function },
		If:         "the reward is `python`",
		Activities: []Activity{on(Sandbox, "CallFunction", 2*time.Hour)},
		Reads: []Read{from(schema.StageAssemble, schema.Trajectories),
			from(schema.StageSandbox, schema.Transitions)},
		Also:    "the prompts",
		Writes:  []schema.Table{schema.FunctionScores},
		Instead: "calls a function of the user's; replay from reward, which reads its results",
	},
	{
		Name: schema.StageReward, Phase: Step, Parts: Shards, Column: "reward",
		Doc:        "scores trajectories",
		Activities: []Activity{on(CPU, "ScoreRewards", 10*time.Minute)},
		Reads: []Read{
			from(schema.StageAssemble, schema.Trajectories),
			{Stage: schema.StageGrade, Tables: []schema.Table{schema.Gradings}, Spared: true},
			{Stage: schema.StageJudge, Tables: []schema.Table{schema.Judgements}, Spared: true},
			{Stage: schema.StageFunction, Tables: []schema.Table{schema.FunctionScores}, Spared: true},
			from(schema.StageSandbox, schema.Transitions),
		},
		Writes:  []schema.Table{schema.Rewards, schema.Selection},
		Commits: "RoC's penalties with the rewards; `selection` lists the trajectories without a reward",
		Pure:    true, Recipe: []string{"reward", "schedule.mu_horizon"},
	},
	{
		Name: Commit, Phase: Step, Unread: true,
		Doc: "commits the stage manifests of all sharded stages of the step",
		Activities: []Activity{
			on(CPU, "CommitStages", 30*time.Minute), // It reads every turn of every shard.
			joint(CPU, "MakeBatch"),
		},
		Also: "shard manifests",
	},
	{
		Name: schema.StageResample, Phase: Step,
		Doc:        "decides which trajectory is kept, how often, and why not; and which is masked",
		Activities: []Activity{on(CPU, "Resample", 5*time.Minute)},
		Reads:      []Read{from(schema.StageReward, schema.Rewards)},
		Also: "trajectories and turns where a filter looks at them, or mixed groups are dropped; prompts where " +
			"shards were skipped; in step 1 the trajectories' turns and transitions",
		Writes: []schema.Table{schema.Selection}, Commits: "in step 1 what the world offers before training",
		Pure: true, Recipe: []string{"resample", "filters", "pipeline.mixed_groups", "seed"}, // the seed of its draws
	},
	{
		Name: schema.StageLogprobs, Phase: Step, Parts: Shards,
		Doc: "asks the models about each kept token that is not masked: its log-probability before the update, " +
			"its entropy, the reference's log-probability, the critic's value",
		When:       func(n Needs) bool { return n.Logprobs },
		If:         "the method, or the recipe's `token_outputs`, needs it",
		Activities: []Activity{on(GPU, "ComputeTokenOutputs", time.Hour)},
		Reads: []Read{from(schema.StageRollout, schema.Turns, schema.Branches),
			from(schema.StageResample, schema.Selection)},
		Also:    "checkpoints",
		Writes:  []schema.Table{schema.TokenOutputs, schema.Behaviour},
		Commits: "the digest of the checkpoint behind each value",
		Instead: needsEngine,
	},
	{
		Name: schema.StageAdvantage, Phase: Step,
		Doc:        "makes the training batch",
		Activities: []Activity{on(CPU, "ComputeAdvantages", 10*time.Minute)},
		Reads: []Read{
			from(schema.StageRollout, schema.Turns, schema.Branches), from(schema.StageReward, schema.Rewards),
			from(schema.StageResample, schema.Selection), from(schema.StageLogprobs, schema.TokenOutputs),
			from(schema.StageSandbox, schema.Transitions),
		},
		Writes: []schema.Table{schema.Batch},
		Pure:   true, Recipe: []string{"advantage", "layout"},
	},
	{
		Name: schema.StageBuffer, Phase: Step,
		Doc:        "takes the replay buffer through the step",
		When:       func(n Needs) bool { return n.ReplayBuffer },
		If:         "the recipe has `replay`",
		Activities: []Activity{on(CPU, "UpdateReplayBuffer", 10*time.Minute)},
		Reads:      []Read{from(schema.StageReward, schema.Rewards), from(schema.StageAdvantage, schema.Batch)},
		Continues:  "the replay buffer",
		Also:       "the buffer after the step before",
		Writes:     []schema.Table{schema.Replay, schema.Baselines, schema.ReplayBatch},
		Commits:    "`replay_batch` holds the rows of a full buffer that are learnt from again",
		Pure:       true, Recipe: []string{"replay"},
	},
	{
		Name: schema.StageUpdate, Phase: Step, Column: "update",
		Doc: "trains the policy, and its critic where there is one",
		Activities: []Activity{
			on(GPU, "UpdatePolicy", time.Hour),
			joint(GPU, "UpdateAndPublish"),
		},
		Reads:  []Read{from(schema.StageAdvantage, schema.Batch), from(schema.StageBuffer, schema.ReplayBatch)},
		Also:   "the checkpoint before the step",
		Writes: []schema.Table{schema.Updates}, Commits: "a checkpoint, its critic's where there is one",
		Recipe: []string{"optimizer", "loss", "replay", "schedule.gamma_horizon"},
	},
	{
		Name: schema.StagePublish, Phase: Step,
		Doc:        "has the rollout engine load the policy",
		Activities: []Activity{on(Rollout, "PublishPolicy", 10*time.Minute)},
		Reads:      []Read{from(schema.StageUpdate)},
		Also:       "the checkpoint; it names the evaluation before the step",
		Commits:    "the step's head",
		Instead:    "serves a policy to the engine and leaves no data; nothing of it can be made again",
	},
	{
		Name: Prune, Phase: Alongside, Unread: true,
		Doc: "deletes checkpoints that the recipe does not keep, alongside the next step",
		// It may do so for many steps at once, where a run was resumed.
		Activities: []Activity{on(CPU, "PruneCheckpoints", 30*time.Minute)},
		Also:       "two steps' manifests",
	},
	{
		Name: schema.StageCompact, Phase: Alongside, Unread: true,
		Doc:        "merges copies of the step's small shards for readers, alongside the next step",
		Activities: []Activity{on(CPU, "CompactStep", 30*time.Minute)},
		Also:       "the step's shards, if the recipe asks for `record.compact`",
		Commits:    "a file for each table of which the step has several",
	},
	{
		Name: schema.StageEvaluate, Phase: Alongside,
		Doc: "measures the policy on held-out problems",
		Activities: []Activity{
			on(Rollout, "Evaluate", time.Hour),
			// Shards on one worker wait for its engine in turn.
			on(Rollout, "EvaluateShard", 4*time.Hour),
		},
		Also:    "the checkpoint",
		Writes:  measured,
		Commits: "a row for each held-out episode, and its turns, calls and transitions",
		Instead: needsEngine,
		Waiting: "evaluating on held-out problems",
	},
	{
		Name: Timings, Phase: Alongside, Unread: true,
		Doc:        "records the measured times of a step alongside the next one",
		Activities: []Activity{on(CPU, "RecordTimings", time.Minute)},
		Writes:     []schema.Table{schema.Timings},
	},
	{
		Name: schema.StageReplay, Phase: Again,
		Doc: "claims a generation for a replay, or plans and makes a check",
		Activities: []Activity{
			on(CPU, "PrepareReplay", 10*time.Minute), on(CPU, "PrepareCheck", time.Minute),
			on(CPU, "CheckReplay", 10*time.Minute),
		},
		Also:    "what the replayed stages read",
		Writes:  []schema.Table{schema.Documents},
		Commits: "the claim of a generation, with the recipe that it is made under",
	},
	{
		Name: schema.StageContrast, Phase: Again,
		Doc:        "estimates how far the policy of a replay is from the run's own after the same step",
		Activities: []Activity{on(GPU, "ContrastPolicies", time.Hour)},
		Reads:      []Read{from(schema.StageUpdate)},
		Also:       "both checkpoints; the step's turns",
		Commits:    "the divergence of the policies, as a statistic",
	},
	{
		Name: schema.StageFactual, Phase: Again,
		Doc:        "measures the run's own policy after the step on held-out problems, if the run has not",
		Activities: []Activity{on(Rollout, "EvaluateFactual", time.Hour)},
		Also:       "the run's own checkpoint after the step",
		Writes:     measured,
		Commits:    "the rows of an evaluation, with which a replay compares its policy",
	},
	{
		Name: Compare, Phase: Again, Unread: true,
		Doc:        "compares digests before and after a replay",
		Activities: []Activity{on(CPU, "CompareReplay", time.Minute)},
	},
}

// apart are the activities that belong to no stage: they note a run's state, look after its queues, and find and hold
// the hosts of an engine.
var apart = []Activity{
	{Name: "NoteState", Doc: "notes that a run is paused, parked, failed …, for listings", Queue: CPU,
		Limit: 10 * time.Second},
	{Name: "NoteDeed", Doc: "notes that a schedule starts a run, for the audit log", Queue: CPU, Limit: time.Minute},
	{Name: "PlanExperiment", Doc: "lists the trials of an experiment, and which are done", Queue: CPU,
		Limit: 10 * time.Minute},
	{Name: "JudgeTrials", Doc: "applies an experiment's stop rule to what its trials have committed", Queue: CPU,
		Limit: 30 * time.Minute},
	{Name: "FindHome", Doc: "with `engine.hosts`, names the host that leads", Queue: GPU, Limit: time.Minute},
	// An engine that is used goes on under its next stage.
	{
		Name: "ServeRanks", Doc: "with `engine.hosts`, runs a host's ranks of an engine",
		Queue: GPU, Limit: 30 * 24 * time.Hour, Retry: WhileWanted,
	},
}
