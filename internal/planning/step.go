package planning

import (
	"math"

	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/recipes"
)

// Step is one step of the run, by its recipe's largest stage. Numbers of tokens are averages under the assumed share of
// the budgets (plan.Assumed.Fill); Most* are the budgets themselves.
type Step struct {
	Trajectories int `json:"trajectories"` // sampled
	Learnt       int `json:"learnt"`       // of those, at most
	// RowsOf is how many rows a trajectory makes: its turns in layout turns, else 1.
	RowsOf      float64 `json:"rows_per_trajectory"`
	Sampled     float64 `json:"sampled_tokens"`
	Read        float64 `json:"read_tokens"`
	Trained     float64 `json:"trained_tokens"` // of one epoch
	MostSampled int64   `json:"most_sampled_tokens"`
	MostTrained int64   `json:"most_trained_tokens"`

	ScoringFlops  float64 `json:"scoring_flops"`
	TrainingFlops float64 `json:"training_flops"`
	// AtOnce is how many rows one copy of the model samples together.
	AtOnce int `json:"rows_at_once"`
	// Seconds are nil where the rates of the devices are not known.
	Rollout  *float64 `json:"rollout_seconds"`
	Scoring  *float64 `json:"scoring_seconds"`
	Training *float64 `json:"training_seconds"`
	// Copies is how many copies of the model generate.
	Copies int `json:"copies"`
}

// Seconds is the sum of the step's parts; ok is false if one of them is not known.
func (s Step) Seconds() (sum float64, ok bool) {
	for _, part := range []*float64{s.Rollout, s.Scoring, s.Training} {
		if part == nil {
			return 0, false
		}
		sum += *part
	}
	return sum, true
}

// row is one row that is sampled and learnt from, in tokens on average.
type row struct{ sampled, read float64 }

func (r row) whole() float64 { return r.sampled + r.read }

// rowOf returns an average row and how many a trajectory makes. A row is full at max_tokens; max_turn_tokens bounds
// what a turn samples of it. The rest are prompts and the results of tools.
func rowOf(r *recipes.Recipe, fill float64) (row, float64) {
	longest, turns := float64(longestRow(r)), float64(r.Rollout.MaxTurns)
	turn := min(float64(r.Rollout.MaxTurnTokens), longest)
	if r.Layout == "turns" {
		return row{sampled: fill * turn, read: fill * (longest - turn)}, max(1, fill*turns)
	}
	sampled := min(turns*turn, longest)
	return row{sampled: fill * sampled, read: fill * (longest - sampled)}, 1
}

// learnt returns how many of a step's trajectories can enter the update: RoC keeps some of a group, and low variance
// keeps some of the groups. Other rules drop what they find, or repeat what is left, so that all may count.
func learnt(r *recipes.Recipe) int {
	groups, each := r.Rollout.Prompts, r.Rollout.SamplesPerPrompt
	if l := r.Resample.LowVariance(); l != nil {
		groups = int(math.Floor(l.Keep * float64(groups)))
	}
	if roc := r.Resample.RoC(); roc != nil {
		each = min(each, roc.Keep)
	}
	return groups * each
}

// stepOf plans a step.
//
//	training flops = epochs · rows · TrainFlops(row), and once more for a critic, and for replayed rows
//	scoring flops  = rows · ForwardFlops(row) for each model that stage logprobs asks
//	seconds        = flops / (devices · peak flops · MFU)
//
// Rollouts follow Model.RolloutSeconds.
func stepOf(in Input, out *Plan, p placing) *Step {
	r, m, fill := in.Recipe, *in.Model, in.Assumed.Fill
	average, rows := rowOf(r, fill)
	most, mostRows := rowOf(r, 1)
	s := &Step{Trajectories: r.Rollout.Prompts * r.Rollout.SamplesPerPrompt, Learnt: learnt(r), RowsOf: rows}
	sampledRows := float64(s.Trajectories) * rows
	learntRows := float64(s.Learnt) * rows
	s.Sampled, s.Read, s.Trained = sampledRows*average.sampled, sampledRows*average.read, learntRows*average.whole()
	s.MostSampled = int64(float64(s.Trajectories) * mostRows * most.sampled)
	s.MostTrained = int64(float64(s.Learnt) * mostRows * most.whole())

	length := int(average.whole())
	s.TrainingFlops = float64(max(1, r.Optimizer.Epochs)) * learntRows * trainFlops(r, m, length)
	if r.Replay != nil {
		s.TrainingFlops *= 2
		out.note("replay: the step's time counts as many replayed rows as it has of its own, the most there can be")
	}
	s.ScoringFlops = float64(passes(r)) * learntRows * m.ForwardFlops(length)
	if d := r.Resample.Dynamic(); d != nil && d.Tries > 1 {
		out.note("resample.dynamic samples up to %d batches for a step; the rollout's time is that of one", d.Tries)
	}
	if r.Rollout.Tree != nil {
		out.note("the samples of a tree share their beginnings; the rollout's time counts them as if they did not")
	}
	out.note("times leave out tool calls, judges, evaluations, loading and saving, and devices that wait for the " +
		"longest trajectory")
	if flops, ok := rate(p.engine); ok {
		flops *= in.Assumed.MFU
		s.Scoring, s.Training = new(s.ScoringFlops/flops), new(s.TrainingFlops/flops)
	}
	s.rollout(in, p, sampledRows, average)
	return s
}

func trainFlops(r *recipes.Recipe, m plan.Model, length int) float64 {
	one := m.TrainFlops(length)
	if a := Adapter(r.Engine); a != nil {
		one = m.AdapterTrainFlops(*a, length)
	}
	if r.Outputs().Values {
		one *= 2
	}
	return one
}

// passes counts the forward passes over a row between sampling and updating. Log-probabilities and entropies of the
// policy come from one pass.
func passes(r *recipes.Recipe) int {
	o, n := r.Outputs(), 0
	for _, asked := range []bool{o.OldLogProbs || o.Entropies, o.Reference, o.Values} {
		if asked {
			n++
		}
	}
	return n
}

// rate is the sum of the devices' peak rates; ok is false if there is none, or one is not known.
func rate(devices []plan.Device) (flops float64, ok bool) {
	for _, d := range devices {
		if d.Flops == 0 {
			return 0, false
		}
		flops += d.Flops
	}
	return flops, len(devices) > 0
}

// rollout plans the rollout on the servers that have devices, or on the engine's devices, of which each has a copy.
// Where copies differ, all count as the slowest.
func (s *Step) rollout(in Input, p placing, rows float64, average row) {
	m, r := *in.Model, in.Recipe
	work := plan.Rollout{Rows: int(math.Ceil(rows)), Generated: average.sampled, Read: average.read}
	slowest := plan.Speed{Flops: math.Inf(1), Bandwidth: math.Inf(1)}
	add := func(d plan.Device, n, atOnce int, width int64) {
		speed := plan.SpeedOf(d.Flops*float64(n), d.Bandwidth*float64(n), in.Assumed)
		slowest = plan.Speed{Flops: min(slowest.Flops, speed.Flops), Bandwidth: min(slowest.Bandwidth, speed.Bandwidth)}
		if work.Devices == 0 || atOnce < work.AtOnce {
			work.AtOnce = atOnce
		}
		work.Devices, work.Width = work.Devices+1, max(work.Width, width)
	}
	for _, one := range p.served {
		if n := len(one.devices); n > 0 {
			fits := float64(one.memory.Tokens) / max(1, average.whole())
			add(one.speed, n, max(1, min(one.server.Parallel, int(fits))), serverWidth(one.server))
		}
	}
	if len(r.Engine.Servers) == 0 {
		for _, d := range p.engine {
			add(d, 1, engineRows(in, d), engineWidth(r))
		}
	} else if work.Devices < len(r.Engine.Servers) {
		return // some generate elsewhere
	}
	s.Copies, s.AtOnce = work.Devices, work.AtOnce
	if work.Devices == 0 || slowest.Flops == 0 || slowest.Bandwidth == 0 {
		return
	}
	s.Rollout = new(m.RolloutSeconds(work, slowest))
}

func engineWidth(r *recipes.Recipe) int64 {
	if r.Engine.Dtype == "float32" {
		return 4
	}
	return 2
}

// waveShare is the share of the free memory that the engine gives to the cache of a wave (gpu/engine, generate.py).
const waveShare = 0.6

// engineRows is how many rows of the greatest length the engine samples together on a device: a wave reserves each
// row's whole length.
func engineRows(in Input, d plan.Device) int {
	m := engineMemory(in.Recipe, *in.Model, in.Kind, in.Threads)
	resident := m.Context + m.Policy.Weights + m.Policy.Optimizer + m.Reference + m.Critic + m.Sampling.Whole
	free := waveShare * float64(d.Memory-resident)
	return max(1, int(free/float64(max(1, m.Sampling.RowCache))))
}
