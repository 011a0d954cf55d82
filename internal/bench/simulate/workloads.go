package main

import (
	"math"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// distribution is a random number that is cut to least and most.
type distribution struct {
	draw        func(*rand.Rand) float64
	least, most float64
}

// lognormal is the exponential of a normal number with mean ln(median).
func lognormal(median, sigma, most float64) distribution {
	return distribution{func(r *rand.Rand) float64 { return median * math.Exp(sigma*r.NormFloat64()) }, 0, most}
}

// geometric has the values 1, 2, 3, …
func geometric(mean, most float64) distribution {
	return distribution{func(r *rand.Rand) float64 {
		return 1 + math.Floor(math.Log(1-r.Float64())/math.Log(1-1/mean))
	}, 1, most}
}

// pareto has the tail P(x > t) = (least/t)^alpha.
func pareto(least, alpha, most float64) distribution {
	return distribution{func(r *rand.Rand) float64 { return least * math.Pow(1-r.Float64(), -1/alpha) }, 0, most}
}

func uniform(low, high float64) distribution {
	return distribution{func(r *rand.Rand) float64 { return low + (high-low)*r.Float64() }, low, high}
}

func constant(x float64) distribution {
	return distribution{func(*rand.Rand) float64 { return x }, x, x}
}

func (d distribution) of(r *rand.Rand) float64 { return min(max(d.draw(r), d.least), d.most) }

// endless is no limit.
const endless = 1e9

// task is how long the rollouts of a kind are. Seeds and lengths are of its own; they are estimates, not measurements.
type task struct {
	limit      int          // tokens that a rollout may hold; it ends there
	prompt     distribution // tokens
	turns      distribution
	tokens     distribution // that a turn generates
	result     distribution // tokens of a tool's answer
	tool       distribution // seconds
	difficulty float64      // sigma of a lognormal factor of the tokens that a group's rollouts share
}

var (
	mathematics = task{8192, lognormal(250, 0.4, 1024), geometric(2.5, 6), lognormal(500, 0.7, endless),
		lognormal(60, 0.8, 512), lognormal(0.3, 0.8, 10), 0.5}
	household = task{8192, lognormal(500, 0.2, 1024), geometric(15, 50), lognormal(60, 0.6, 512),
		lognormal(80, 0.4, 300), lognormal(0.1, 0.3, 1), 0.4}
	shopping = task{12288, lognormal(600, 0.2, 1024), geometric(8, 15), lognormal(90, 0.6, 512),
		lognormal(400, 0.4, 1200), lognormal(0.15, 0.4, 2), 0.3}
	searching = task{16384, lognormal(400, 0.3, 1024), geometric(6, 12), lognormal(150, 0.7, endless),
		lognormal(500, 0.5, 2000), lognormal(1.5, 0.7, 30), 0.3}
	browsing = task{32768, lognormal(800, 0.3, 2048), geometric(12, 30), lognormal(200, 0.7, endless),
		lognormal(900, 0.6, 4000), uniform(5, 30), 0.3}
	programs = task{12288, lognormal(600, 0.5, 2048), geometric(2, 4), lognormal(1100, 0.8, endless),
		lognormal(120, 0.8, 1024), lognormal(1, 1.2, 20).atLeast(0.1), 0.5}
	software = task{32768, lognormal(2500, 0.4, 6000), geometric(25, 60), lognormal(180, 0.8, endless),
		lognormal(350, 0.9, 4000), lognormal(1.5, 1.3, 30).atLeast(0.1), 0.3}
	reasoning = task{32768, lognormal(300, 0.4, 2048), constant(1), pareto(1500, 1.3, 30000), constant(0),
		constant(0), 0.3}
	// rStar2-Agent's first stage: 512 prompts with 32 rollouts each on 64 GPUs, at most 2.7 calls a rollout on average
	rstar2 = task{10240, lognormal(400, 0.4, 2048), geometric(3.7, 10), lognormal(650, 0.8, endless),
		lognormal(60, 1, 512), lognormal(0.12, 1.2, 10), 0.4}
)

func (d distribution) atLeast(x float64) distribution { d.least = x; return d }

// The change of a task: its tools, or its tokens.
func (t task) tools(d distribution) task  { t.tool = d; return t }
func (t task) length(d distribution) task { t.tokens = d; return t }
func (t task) upTo(limit int) task        { t.limit = limit; return t }

// Engines, estimated from published sizes and rates of hardware: a model in bfloat16, and the GPU's memory.
var (
	small1B  = model{940_000, 256, 0.005, 25e-6, 26e-9, 40_000}  // 1.5B, 40 GB
	qwen7B   = model{860_000, 256, 0.0085, 38e-6, 24e-9, 26_000} // 7B, 80 GB
	qwen7B40 = model{295_000, 256, 0.016, 122e-6, 53e-9, 8_000}  // 7B, 40 GB
	l40s     = model{171_000, 128, 0.028, 110e-6, 218e-9, 9_000} // 7B, 48 GB
	qwen14B  = model{760_000, 256, 0.010, 54e-6, 44e-9, 18_000}  // 14B, 192 GB
	qwen32B  = model{760_000, 256, 0.011, 45e-6, 28e-9, 22_000}  // 32B, four of 80 GB as one engine
)

// workload is engines, rollouts in groups of one prompt, and what happens to the engines.
type workload struct {
	name              string
	engines           int
	engine            model
	rollouts, group   int
	task              task
	failures          []failure
	others, evaluated int   // further engines, and the last rollouts, of the class evaluation in groups of one
	other             model // what the further engines are
}

func lost(at float64, engine int) failure { return failure{at, engine, 0} }
func back(at float64, engine int) failure { return failure{at, engine, 1} }
func slow(at float64, engine int) failure { return failure{at, engine, 0.1} }

// workloads are the rows of the table: up to 16 rollouts for each engine, then 64 to 1,024, then 4,096.
var workloads = []workload{
	{name: "cluster-256-few", engines: 256, engine: qwen14B, rollouts: 1024, group: 16, task: programs},
	{name: "cluster-256-lost", engines: 256, engine: qwen14B, rollouts: 2048, group: 16, task: programs,
		failures: []failure{lost(5, 17), lost(20, 101), lost(30, 102), lost(60, 200)}},
	{name: "lost-few", engines: 16, engine: qwen32B, rollouts: 128, group: 8, task: software,
		failures: []failure{lost(60, 3)}},
	{name: "math-few", engines: 64, engine: qwen7B, rollouts: 512, group: 8, task: mathematics},
	{name: "reasoning-few", engines: 64, engine: qwen14B, rollouts: 512, group: 8,
		task: reasoning.length(pareto(1500, 1.2, 30000))},
	{name: "search-few", engines: 16, engine: qwen7B, rollouts: 128, group: 8, task: searching},
	{name: "swe-few", engines: 16, engine: qwen32B, rollouts: 128, group: 8, task: software},
	{name: "webshop-few", engines: 16, engine: qwen7B, rollouts: 128, group: 16, task: shopping},
	{name: "alfworld-few", engines: 8, engine: small1B, rollouts: 128, group: 8, task: household},

	{name: "cluster-256-small", engines: 256, engine: qwen14B, rollouts: 16384, group: 32,
		task: rstar2.tools(lognormal(0.3, 1, 10))},
	{name: "browse-30s", engines: 32, engine: qwen7B, rollouts: 4096, group: 8, task: browsing},
	{name: "swe", engines: 16, engine: qwen32B, rollouts: 2048, group: 8, task: software},
	{name: "alfworld", engines: 8, engine: small1B, rollouts: 2048, group: 8, task: household},
	{name: "math-small", engines: 4, engine: qwen7B, rollouts: 1024, group: 16, task: mathematics},
	{name: "reasoning-tail", engines: 16, engine: qwen14B, rollouts: 4096, group: 16, task: reasoning},
	{name: "rstar2", engines: 64, engine: qwen14B, rollouts: 16384, group: 32, task: rstar2},
	{name: "rstar2-12k", engines: 64, engine: qwen14B, rollouts: 16384, group: 32,
		task: rstar2.length(lognormal(900, 0.8, endless)).upTo(14336)},
	{name: "cluster-256", engines: 256, engine: qwen14B, rollouts: 131072, group: 32,
		task: rstar2.tools(lognormal(0.3, 1, 10))},
	{name: "l40s", engines: 16, engine: l40s, rollouts: 8192, group: 16, task: func() task {
		t := mathematics.length(lognormal(300, 0.7, endless)).upTo(4096)
		t.difficulty = 0.4
		return t
	}()},
	{name: "math-memory", engines: 8, engine: qwen7B40, rollouts: 4096, group: 16,
		task: mathematics.length(lognormal(700, 0.8, endless))},
	{name: "mixed-gpus", engines: 8, engine: qwen7B, others: 8, other: qwen7B40, rollouts: 8192, group: 16,
		task: mathematics},
	{name: "search-slow", engines: 16, engine: qwen7B, rollouts: 8192, group: 8,
		task: searching.tools(lognormal(8, 0.7, 30))},
	{name: "webshop", engines: 16, engine: qwen7B, rollouts: 8192, group: 16, task: shopping},
	{name: "slow-and-lost", engines: 4, engine: qwen7B, rollouts: 4096, group: 8,
		task: searching.tools(lognormal(4, 0.7, 30)), failures: []failure{slow(1, 1), lost(60, 2)}},

	{name: "alfworld-large", engines: 16, engine: small1B, rollouts: 65536, group: 8, task: household},
	{name: "code-tests", engines: 32, engine: qwen14B, rollouts: 131072, group: 16, task: programs},
	{name: "evaluation-too", engines: 8, engine: qwen7B, rollouts: 32768, group: 16, task: mathematics,
		evaluated: 8192},
	{name: "lost-engines", engines: 16, engine: qwen7B, rollouts: 65536, group: 16, task: mathematics,
		failures: []failure{lost(40, 3), lost(70, 4), lost(90, 9), back(120, 4)}},
	{name: "math-1.5b", engines: 4, engine: small1B, rollouts: 16384, group: 16, task: mathematics},
	{name: "math-large", engines: 32, engine: qwen7B, rollouts: 131072, group: 16, task: mathematics},
	{name: "math-offpolicy", engines: 8, engine: qwen7B, rollouts: 32768, group: 8, task: mathematics},
	{name: "search", engines: 16, engine: qwen7B, rollouts: 65536, group: 8, task: searching},
	{name: "slow-engine", engines: 8, engine: qwen7B, rollouts: 32768, group: 16, task: mathematics,
		failures: []failure{slow(40, 2)}},
}

// turn is one turn of a rollout.
type turn struct {
	tokens int32   // that it generates, ≥ 1
	result int32   // tokens of the tools' answer; 0 after the last turn
	tool   float32 // seconds
}

// rollout is an episode with the lengths that it turns out to have.
type rollout struct {
	group, prompt, most int // most: tokens that it may come to hold
	class               scheduler.Class
	turns               []turn
}

// held is how many tokens the rollout holds in the end.
func (r *rollout) held() int {
	n := r.prompt
	for _, t := range r.turns {
		n += int(t.tokens) + int(t.result)
	}
	return n
}

// failure is a change of an engine's speed; 0 loses it, 1 is its own.
type failure struct {
	at     float64
	engine int
	speed  float64
}

// job is a drawn workload: all that a simulation needs.
type job struct {
	engines  []model
	rollouts []rollout
	failures []failure // in the order of time
}

// seed is that of every workload.
const seed = 1

// drawn draws the lengths and times. Every rollout has a stream of its own.
func (w *workload) drawn() *job {
	j := &job{failures: w.failures}
	for range w.engines {
		j.engines = append(j.engines, w.engine)
	}
	for range w.others {
		j.engines = append(j.engines, w.other)
	}
	trained := w.rollouts - w.evaluated
	for i := range w.rollouts {
		group, class := i/w.group, scheduler.Class(0)
		if i >= trained {
			group, class = (trained+w.group-1)/w.group+i-trained, scheduler.Evaluation
		}
		shared := rand.New(rand.NewPCG(seed, uint64(group)<<1|1))
		factor := lognormal(1, w.task.difficulty, endless).of(shared)
		r := w.task.rollout(rand.New(rand.NewPCG(seed, uint64(i)<<1)), factor)
		r.group, r.class = group, class
		j.rollouts = append(j.rollouts, r)
	}
	return j
}

// rollout draws one rollout. It ends where its limit is reached.
func (t *task) rollout(rng *rand.Rand, factor float64) rollout {
	r := rollout{most: t.limit, prompt: min(max(int(t.prompt.of(rng)), 1), t.limit-1)}
	turns, room := int(t.turns.of(rng)), t.limit-r.prompt
	for k := range turns {
		next := turn{tokens: int32(min(max(t.tokens.of(rng)*factor, 1), float64(room)))}
		room -= int(next.tokens)
		result, seconds := int(t.result.of(rng)), t.tool.of(rng)
		if k+1 == turns || room-result < 1 { // the answer; or the result does not fit any more
			return rollout{r.group, r.prompt, r.most, r.class, append(r.turns, next)}
		}
		room -= result
		next.result, next.tool = int32(result), float32(seconds)
		r.turns = append(r.turns, next)
	}
	return r
}

// meanHeld is the mean of the tokens that the rollouts hold in the end.
func (j *job) meanHeld() int {
	sum := 0
	for i := range j.rollouts {
		sum += j.rollouts[i].held()
	}
	return sum / len(j.rollouts)
}
