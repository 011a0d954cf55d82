package simulate

import (
	"math"
	"math/rand/v2"
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

// Engines, estimated from published sizes and rates of hardware: a model in bfloat16, and the GPU's memory.
var (
	small1B  = model{940_000, 256, 0.005, 25e-6, 26e-9, 40_000}  // 1.5B, 40 GB
	qwen7B   = model{860_000, 256, 0.0085, 38e-6, 24e-9, 26_000} // 7B, 80 GB
	qwen7B40 = model{295_000, 256, 0.016, 122e-6, 53e-9, 8_000}  // 7B, 40 GB
	qwen14B  = model{760_000, 256, 0.010, 54e-6, 44e-9, 18_000}  // 14B, 192 GB
	qwen32B  = model{760_000, 256, 0.011, 45e-6, 28e-9, 22_000}  // 32B, four of 80 GB as one engine
)

// workload is engines, and rollouts in groups of one prompt.
type workload struct {
	name            string
	engines         int
	engine          model
	rollouts, group int
	task            task
}

// workloads are the rows of the table: up to 16 rollouts for each engine, then 64 to 1,024, then 4,096.
var workloads = []workload{
	{"cluster-256-few", 256, qwen14B, 1024, 16, programs},
	{"math-few", 64, qwen7B, 512, 8, mathematics},
	{"reasoning-few", 64, qwen14B, 512, 8, reasoning},
	{"search-few", 16, qwen7B, 128, 8, searching},
	{"webshop-few", 16, qwen7B, 128, 16, shopping},
	{"browse-30s", 32, qwen7B, 4096, 8, browsing},
	{"swe", 16, qwen32B, 2048, 8, software},
	{"alfworld", 8, small1B, 2048, 8, household},
	{"reasoning-tail", 16, qwen14B, 4096, 16, reasoning},
	{"rstar2", 64, qwen14B, 16384, 32, rstar2},
	{"cluster-256", 256, qwen14B, 131072, 32, rstar2},
	{"math-memory", 8, qwen7B40, 4096, 16, mathematics},
	{"webshop", 16, qwen7B, 8192, 16, shopping},
	{"alfworld-large", 16, small1B, 65536, 8, household},
	{"code-tests", 32, qwen14B, 131072, 16, programs},
	{"math-1.5b", 4, small1B, 16384, 16, mathematics},
	{"math-large", 32, qwen7B, 131072, 16, mathematics},
	{"search", 16, qwen7B, 65536, 8, searching},
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

// job is a drawn workload: all that a simulation needs.
type job struct {
	engines  int
	engine   model
	rollouts []rollout
}

// seed is that of every workload.
const seed = 1

// drawn draws the lengths and times. Every rollout has a stream of its own.
func (w *workload) drawn() *job {
	j := &job{engines: w.engines, engine: w.engine}
	for i := range w.rollouts {
		group := i / w.group
		shared := rand.New(rand.NewPCG(seed, uint64(group)<<1|1))
		factor := lognormal(1, w.task.difficulty, endless).of(shared)
		r := w.task.rollout(rand.New(rand.NewPCG(seed, uint64(i)<<1)), factor)
		r.group = group
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
			r.turns = append(r.turns, next)
			return r
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
