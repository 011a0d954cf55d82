package peer

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/optimizer"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// recipe is what both sides train.
const recipe = "smollm2"

// changes are what the recipe is measured with: every group is kept, and evaluations are short.
var changes = []string{"resample.reject_equal=false", "evaluation.problems=1"}

// sizes are the micro-batches that are tried, in rows, on a few prompts of each step.
var sizes = []int{6, 12, 24, 48}

const triedPrompts = 4

// rewardName is the reward that grade gives TRL's responses.
const rewardName = "last_number"

//go:embed peer.py
var script string

// contest is what is compared.
type contest struct {
	program            bench.Program
	interpreter, model string
	steps              int
	report             *bench.Report
	settings           map[string]any  // of GRPOConfig
	prompts, samples   int             // of a step
	rows               int             // of a micro-batch; 0 before sizes are tried
	tasks              json.RawMessage // the tokens and the gold of each prompt of the last run
}

// read reads the recipe and writes it as settings of GRPOConfig.
func (c *contest) read() error {
	resolved, err := recipes.Resolve(recipe, "", changes, nil, nil)
	if err != nil {
		return err
	}
	r := resolved.Recipe
	surrogate, err := loss.New(r.Loss.Name, r.Loss.Params)
	if err != nil {
		return err
	}
	rule, err := r.Optimizer.Rule()
	if err != nil {
		return err
	}
	clip, clips := surrogate.(loss.PPOClip)
	adam, adapts := rule.(optimizer.AdamW)
	if !clips || !adapts || clip.Dual != 0 || r.Loss.Aggregation != string(loss.TokenMean) ||
		r.Advantage.Name != "grpo" || r.Reward.Name != rewardName {
		return fmt.Errorf("recipe %s: TRL is compared with %s, grpo, ppo_clip without dual_clip, token-mean and adamw",
			recipe, rewardName)
	}
	c.prompts, c.samples = r.Rollout.Prompts, r.Rollout.SamplesPerPrompt
	c.settings = map[string]any{"num_generations": c.samples, "max_completion_length": r.Rollout.MaxTurnTokens,
		"temperature": r.Rollout.Temperature, "epsilon": clip.Low, "epsilon_high": clip.High,
		"learning_rate": r.Optimizer.LR, "max_grad_norm": r.Optimizer.ClipNorm, "adam_beta1": adam.Beta1,
		"adam_beta2": adam.Beta2, "adam_epsilon": adam.Epsilon, "weight_decay": adam.WeightDecay}
	return nil
}

// ours trains with the program and reads its times and prompts from the record.
func (c *contest) ours(ctx context.Context) ([]step, error) {
	var ran struct {
		Run string `json:"run_id"`
	}
	set := append([]string{"steps=" + strconv.Itoa(c.steps+1)}, changes...)
	if err := c.program.Train(ctx, &ran, recipe, set...); err != nil {
		return nil, err
	}
	if err := c.program.Query(ctx, &c.tasks, fmt.Sprintf(`select token_ids, answer from prompts where run = '%s'
		order by step, group_id`, ran.Run)); err != nil {
		return nil, err
	}
	var rows [][5]float64
	if err := c.program.Query(ctx, &rows, fmt.Sprintf(`with t as (select step, stage, tokens, end_micros / 1e6 as done,
		(end_micros - start_micros) / 1e6 as s from timings where run = '%s' and kind = 'activity' and step > 0
		and stage in ('rollout', 'reward', 'update', 'publish'))
		select max(done) filter (where stage = 'publish'), sum(s) filter (where stage = 'rollout'),
		sum(s) filter (where stage = 'reward'), sum(s) filter (where stage = 'update'),
		sum(tokens::double) filter (where stage = 'rollout')
		from t group by step having count(distinct stage) = 4 order by step`, ran.Run)); err != nil {
		return nil, err
	}
	if len(rows) != c.steps+1 {
		return nil, fmt.Errorf("run %s: its record has all times of %d steps, want %d", ran.Run, len(rows), c.steps+1)
	}
	return between(rows), nil
}

// between are the steps after the first. A row has the time at which a step ended, the seconds of sampling, reward and
// update, and the sampled tokens.
func between(rows [][5]float64) (out []step) {
	for i, r := range rows[1:] {
		out = append(out, step{Seconds: r[0] - rows[i][0], Sampling: r[1], Reward: r[2], Update: r[3], Tokens: r[4]})
	}
	return out
}

// theirs trains with TRL on the prompts of our last run.
func (c *contest) theirs(ctx context.Context) ([]step, error) {
	if c.rows == 0 {
		if err := c.try(ctx); err != nil {
			return nil, err
		}
	}
	return c.train(ctx, c.rows, c.prompts, c.steps)
}

// try finds TRL's fastest micro-batch.
func (c *contest) try(ctx context.Context) error {
	least := math.Inf(1)
	for _, rows := range sizes {
		tried, err := c.train(ctx, rows, triedPrompts, 1)
		if err != nil {
			return fmt.Errorf("micro-batches of %d rows: %w", rows, err)
		}
		ms := 1000 * tried[0].Update / tried[0].Tokens
		c.report.Add(fmt.Sprintf("TRL, micro-batches of %d rows", rows), bench.Of("ms of update a token", ms))
		if ms < least {
			least, c.rows = ms, rows
		}
	}
	return nil
}

// train trains with TRL and answers what it asks about rewards.
func (c *contest) train(ctx context.Context, rows, prompts, steps int) ([]step, error) {
	settings := maps.Clone(c.settings)
	settings["per_device_train_batch_size"] = rows
	settings["gradient_accumulation_steps"] = prompts * c.samples / rows
	settings["max_steps"] = steps + 1
	job, err := json.Marshal(map[string]any{"model": c.model, "threads": runtime.NumCPU(), "prompts": c.tasks,
		"settings": settings})
	if err != nil {
		return nil, err
	}
	p, err := bench.StartScript(ctx, "TRL", exec.Command(c.interpreter), script, string(job))
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	var said struct {
		Responses, Golds []string
		Steps            []step
	}
	for err = p.Hear(ctx, &said); err == nil && said.Steps == nil; {
		err = p.Ask(ctx, grade(said.Responses, said.Golds), &said)
	}
	if err == nil {
		_, err = p.Close()
	}
	if err == nil && len(said.Steps) != steps {
		err = fmt.Errorf("TRL has timed %d steps, want %d", len(said.Steps), steps)
	}
	return said.Steps, err
}

// grade returns the recipe's rewards of responses. The template of the recipe's model is ChatML, as that of the zero
// protocol is.
func grade(responses, golds []string) []float64 {
	d, _ := reward.Declared(rewardName) // a test grades by it
	out := make([]float64, len(responses))
	for i, text := range responses {
		read := protocol.Chat{}.Parse(text, nil)
		out[i] = d.Outcome(reward.Trajectory{Answer: read.Answer, Answered: read.HasAnswer, Gold: golds[i]},
			reward.Options{Literal: true}).Reward
	}
	return out
}
