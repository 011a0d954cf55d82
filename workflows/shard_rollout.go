package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// shardRollout takes one shard from prompts to rewards.
type shardRollout struct {
	shard     int
	last      schema.Ref   // the manifest committed last, of a turn or of its tool calls
	turns     []schema.Ref // shard manifests of the rollout, one for each turn
	tools     []schema.Ref // shard manifests of the sandbox, one for each turn; zero after a summary
	grade     bool         // whether the recipe asks for symbolic grading
	judge     bool         // whether the recipe's reward asks a judge
	function  bool         // whether the recipe's reward is a user's function
	models    bool         // whether tool calls use the run's models
	assembled schema.Ref
	graded    schema.Ref // zero where no symbolic grading was requested
	judged    schema.Ref // zero where no judge is asked
	called    schema.Ref // zero where no function is called
	scored    api.Scored
	edited    string // files of the user's environment that were edited since the run was prepared
	timings   []api.Timing
	record    bool     // whether the shard records its measured times itself
	busy      api.Busy // when the activities ran whose times the shard has recorded
}

// rollout runs all shards of a round concurrently; their numbers start at first. A failed shard does not stop the
// others. If the step runs again, it adopts the work that they committed.
func (s *trainStep) rollout(ctx workflow.Context, first int, prompts schema.Ref) ([]shardRollout, error) {
	shards := make([]shardRollout, s.plan.Shards)
	failures := make([]error, len(shards))
	group := workflow.NewWaitGroup(ctx)
	open, record := workflow.NewSemaphore(ctx, openShards), shardsRecord(s.plan)
	for i := range shards {
		shards[i].shard, shards[i].grade = first+i, s.plan.Grade
		shards[i].judge, shards[i].function = s.plan.Judge, s.plan.Function
		shards[i].models = s.plan.Summaries
		if s.skipped(first + i) {
			continue
		}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			if !s.plan.Interleaved && fewActivities(s.plan) {
				failures[i] = shards[i].run(ctx, s.home, s.scope, prompts, s.sampling(), s.plan.MaxTurns)
				return
			}
			if failures[i] = open.Acquire(ctx, 1); failures[i] != nil {
				return
			}
			defer open.Release(1)
			if s.plan.Interleaved {
				failures[i] = s.episodes(ctx, &shards[i], prompts, record)
			} else {
				failures[i] = s.shardWorkflow(ctx, &shards[i], prompts, record)
			}
		})
	}
	group.Wait(ctx)
	for i := range shards {
		s.times.add(shards[i].timings...)
		s.times.elsewhere(shards[i].busy)
	}
	shards = slices.DeleteFunc(shards, func(r shardRollout) bool { return s.skipped(r.shard) })
	return shards, errors.Join(failures...)
}

func (s *trainStep) skipped(shard int) bool {
	return slices.ContainsFunc(s.in.Skip, func(e api.ExcludedShard) bool { return e.Shard == shard })
}

// at adds the shard's position to an error.
func (r *shardRollout) at(stage string, turn int, err error) error {
	return stageError{stage: stage, shard: r.shard, turn: turn, err: err}
}

// run alternates *generate turn* and *execute tool calls* until no trajectory of the shard waits for a tool. A summary
// calls nothing; the next turn follows it at once. Then it
// assembles the episodes, gets the verdicts on them that the recipe asks for, and scores them.
func (r *shardRollout) run(ctx workflow.Context, h *home, scope api.Scope, prompts schema.Ref, policy api.PolicyRef,
	maxTurns int) error {
	for turn := range maxTurns {
		generated, err := sample(ctx, h, scope, api.GenerateRollouts, fmt.Sprintf("shard %d, turn %d", r.shard, turn),
			api.GenerateInput{
				Scope: scope, Past: api.Past{Last: r.last}, Shard: r.shard, Turn: turn, Prompts: prompts,
				Policy: policy,
			}, (*api.Generated).Its)
		if err != nil {
			return r.at(api.StageRollout, turn, err)
		}
		r.last, r.turns = generated.Manifest, append(r.turns, generated.Manifest)
		r.timings = append(r.timings, generated.Timing)
		if generated.Calls == 0 && generated.Open > 0 { // the turn was a summary
			r.tools = append(r.tools, schema.Ref{})
			continue
		}
		if generated.Calls == 0 {
			break
		}
		if err := r.execute(ctx, h, scope, prompts, turn, generated.Calls); err != nil {
			return err
		}
	}
	return r.score(ctx, scope, prompts)
}

// execute runs a turn's tool calls. If they use the run's models, they run where turns are generated.
func (r *shardRollout) execute(ctx workflow.Context, h *home, scope api.Scope, prompts schema.Ref,
	turn, calls int) error {
	summary := fmt.Sprintf("shard %d, turn %d, %d calls", r.shard, turn, calls)
	in := api.ToolsInput{Scope: scope, Past: api.Past{Last: r.last}, Shard: r.shard, Turn: turn, Prompts: prompts}
	var done api.ToolsDone
	var err error
	if r.models {
		done, err = sample(withModels(ctx), h, scope, api.ExecuteToolCalls, summary, in, (*api.ToolsDone).Its)
	} else {
		done, err = call[api.ToolsDone](ctx, api.ExecuteToolCalls, summary, in)
	}
	if err != nil {
		return r.at(api.StageSandbox, turn, err)
	}
	r.last, r.tools = done.Manifest, append(r.tools, done.Manifest)
	r.edited = cmp.Or(done.Edited, r.edited)
	r.timings = append(r.timings, done.Timing)
	return nil
}

func (r *shardRollout) score(ctx workflow.Context, scope api.Scope, prompts schema.Ref) error {
	assembled, err := call[api.Done](ctx, api.AssembleTrajectories, fmt.Sprintf("shard %d", r.shard),
		api.AssembleInput{
			Scope: scope, Past: api.Past{Last: r.last}, Shard: r.shard, Prompts: prompts,
		})
	if err != nil {
		return r.at(api.StageAssemble, -1, err)
	}
	r.assembled = assembled.Manifest
	r.timings = append(r.timings, assembled.Timing)
	recording := r.recordTimings(ctx, scope)
	if err := r.compare(ctx, scope); err != nil {
		return err
	}
	if err := r.ask(ctx, scope, prompts); err != nil {
		return err
	}
	if err := r.callFunction(ctx, scope, prompts); err != nil {
		return err
	}
	r.scored, err = call[api.Scored](ctx, api.ScoreRewards, fmt.Sprintf("shard %d", r.shard), api.ScoreInput{
		Scope: scope, Shard: r.shard, Trajectories: assembled.Manifest, Gradings: r.graded, Judgements: r.judged,
		Results: r.called,
	})
	if err != nil {
		return r.at(api.StageReward, -1, err)
	}
	r.scored.Edited = cmp.Or(r.scored.Edited, r.edited)
	r.timings = append(r.timings, r.scored.Timing)
	return recording()
}

// recordTimings records the shard's measured times so far if the shard records its own, while it continues. The
// returned function waits until they are recorded.
func (r *shardRollout) recordTimings(ctx workflow.Context, scope api.Scope) (wait func() error) {
	if !r.record {
		return func() error { return nil }
	}
	recording := start(ctx, api.RecordTimings, fmt.Sprintf("measured times of shard %d", r.shard),
		api.RecordTimingsInput{
			Scope: scope, Timings: r.timings, Part: "step", Shard: &r.shard,
		})
	r.busy, r.timings = api.BusyIn(r.timings), nil
	return func() error {
		if err := recording.Get(ctx, nil); err != nil {
			return r.at(api.StageTimings, -1, err)
		}
		return nil
	}
}

// compare grades the answers symbolically if the recipe asks for it.
func (r *shardRollout) compare(ctx workflow.Context, scope api.Scope) error {
	if !r.grade {
		return nil
	}
	graded, err := call[api.Graded](ctx, api.GradeAnswers, fmt.Sprintf("shard %d", r.shard), api.GradeInput{
		Scope: scope, Shard: r.shard, Trajectories: r.assembled,
	})
	if err != nil {
		return r.at(api.StageGrade, -1, err)
	}
	r.graded = graded.Manifest
	r.timings = append(r.timings, graded.Timing)
	return nil
}

// ask has a judge look at the answers if the reward depends on it.
func (r *shardRollout) ask(ctx workflow.Context, scope api.Scope, prompts schema.Ref) error {
	if !r.judge {
		return nil
	}
	judged, err := call[api.Judged](ctx, api.JudgeAnswers, fmt.Sprintf("shard %d", r.shard), api.JudgeInput{
		Scope: scope, Shard: r.shard, Trajectories: r.assembled, Prompts: prompts,
	})
	if err != nil {
		return r.at(api.StageJudge, -1, err)
	}
	r.judged = judged.Manifest
	r.timings = append(r.timings, judged.Timing)
	return nil
}

// callFunction calls the user's reward function if the reward is one.
func (r *shardRollout) callFunction(ctx workflow.Context, scope api.Scope, prompts schema.Ref) error {
	if !r.function {
		return nil
	}
	called, err := call[api.Called](ctx, api.CallFunction, fmt.Sprintf("shard %d", r.shard), api.FunctionInput{
		Scope: scope, Shard: r.shard, Trajectories: r.assembled, Prompts: prompts,
	})
	if err != nil {
		return r.at(api.StageFunction, -1, err)
	}
	r.called = called.Manifest
	r.timings = append(r.timings, called.Timing)
	return nil
}

// stageParts lists the shard manifests of all shards, stage by stage and turn by turn. A shard that finished earlier
// than others has no part in their later turns.
func stageParts(shards []shardRollout) []api.StageParts {
	var out []api.StageParts
	for turn := 0; ; turn++ {
		rollout := api.StageParts{Stage: api.StageRollout, Turn: turn}
		sandbox := api.StageParts{Stage: api.StageSandbox, Turn: turn}
		for _, r := range shards {
			if turn < len(r.turns) {
				rollout.Parts = append(rollout.Parts, r.turns[turn])
			}
			if turn < len(r.tools) && r.tools[turn] != (schema.Ref{}) {
				sandbox.Parts = append(sandbox.Parts, r.tools[turn])
			}
		}
		if len(rollout.Parts) == 0 {
			break
		}
		out = append(out, rollout)
		if len(sandbox.Parts) > 0 {
			out = append(out, sandbox)
		}
	}
	assemble := api.StageParts{Stage: api.StageAssemble, Turn: -1}
	grade := api.StageParts{Stage: api.StageGrade, Turn: -1}
	judge := api.StageParts{Stage: api.StageJudge, Turn: -1}
	function := api.StageParts{Stage: api.StageFunction, Turn: -1}
	reward := api.StageParts{Stage: api.StageReward, Turn: -1}
	for _, r := range shards {
		assemble.Parts = append(assemble.Parts, r.assembled)
		if r.grade {
			grade.Parts = append(grade.Parts, r.graded)
		}
		if r.judge {
			judge.Parts = append(judge.Parts, r.judged)
		}
		if r.function {
			function.Parts = append(function.Parts, r.called)
		}
		reward.Parts = append(reward.Parts, r.scored.Manifest)
	}
	if out = append(out, assemble); len(grade.Parts) > 0 {
		out = append(out, grade)
	}
	if len(judge.Parts) > 0 {
		out = append(out, judge)
	}
	if len(function.Parts) > 0 {
		out = append(out, function)
	}
	return append(out, reward)
}
