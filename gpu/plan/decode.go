package plan

import "fmt"

// Assumed are the shares of a device's data sheet that a plan counts on. They are assumptions and not measurements, so
// a plan states them.
type Assumed struct {
	// MFU is the share of the peak rate of flops in training and in reading prompts.
	MFU float64 `json:"mfu"`
	// MBU is the share of the peak bandwidth of memory in generating (model bandwidth utilisation).
	MBU float64 `json:"mbu"`
	// Fill is the share of a recipe's token budgets that trajectories use on average.
	Fill float64 `json:"fill"`
}

// UsualAssumptions returns the assumptions of a plan that is told nothing else: the engine's aim for MFU (gpu-check),
// six tenths of the bandwidth, and half of the budgets.
func UsualAssumptions() Assumed { return Assumed{MFU: 0.4, MBU: 0.6, Fill: 0.5} }

// Validate reports the first assumption that is no share.
func (a Assumed) Validate() error {
	for _, x := range []struct {
		name  string
		value float64
	}{{"mfu", a.MFU}, {"mbu", a.MBU}, {"fill", a.Fill}} {
		if !(x.value > 0 && x.value <= 1) {
			return fmt.Errorf("%s is a share: more than 0 and at most 1, got %v", x.name, x.value)
		}
	}
	return nil
}

// CacheBytes returns the bytes of a token's keys and values in all layers:
//
//	2 · layers · key and value heads · width of a head · bytes of a number
//
// (Pope et al. 2022, "Efficiently Scaling Transformer Inference", §2.1; grouped heads as in Ainslie et al. 2023).
func (m Model) CacheBytes(width int64) int64 {
	return 2 * int64(m.Layers) * int64(m.KVHeads) * int64(m.HeadDim) * width
}

// Speed is what a device that generates can do: data-sheet rates times the assumed shares.
type Speed struct{ Flops, Bandwidth float64 }

// SpeedOf returns a part's rates under the assumptions.
func SpeedOf(flops, bandwidth float64, a Assumed) Speed {
	return Speed{Flops: flops * a.MFU, Bandwidth: bandwidth * a.MBU}
}

// DecodeSeconds returns the time in which a device takes one token for each of the rows, whose contexts have context
// tokens on average. A step reads all weights once and the keys and values of all rows, and computes each row's flops;
// the slower of both decides (the roofline of Pope et al. 2022, §2.1 and §4.4):
//
//	max((weights + rows · context · CacheBytes) / bandwidth, rows · GenerateFlops(context) / flops)
//
// The embedding table of a model with its own head is looked up, and not read. width is the bytes of a number.
func (m Model) DecodeSeconds(rows, context float64, width int64, s Speed) float64 {
	read := float64(m.matmulParams()*width) + rows*context*float64(m.CacheBytes(width))
	return max(read/s.Bandwidth, rows*m.GenerateFlops(int(context))/s.Flops)
}

// ForwardFlops returns the model flops of one forward pass over rows of the given lengths: a third of TrainFlops (PaLM,
// appendix B). It is also the cost of reading prompts.
func (m Model) ForwardFlops(lengths ...int) float64 { return m.TrainFlops(lengths...) / 3 }

// Rollout is the work of generating one step's trajectories on equal devices.
type Rollout struct {
	Rows      int     // trajectories, or their turns where each is sampled from its own prompt
	Generated float64 // tokens that a row samples, on average
	Read      float64 // tokens that a row reads without sampling them, on average
	Devices   int     // that hold a copy of the model each
	AtOnce    int     // rows that a device samples together at most
	Width     int64   // bytes of a number of the weights and of the cache
}

// RolloutSeconds returns how long a rollout takes if its rows are shared out evenly and a row that ends is replaced at
// once. Reading takes its flops. Sampling takes as many steps as the rows need, rows · generated / (devices · at once),
// and never fewer than one row needs. In a step a row holds on average what it has read and half of what it samples.
// Tool calls, scheduling and the imbalance of lengths add to it.
func (m Model) RolloutSeconds(r Rollout, s Speed) float64 {
	if r.Rows == 0 || r.Devices == 0 {
		return 0
	}
	perDevice := float64(r.Rows) / float64(r.Devices)
	together := min(perDevice, float64(max(1, r.AtOnce)))
	steps := max(perDevice/together, 1) * r.Generated
	reading := perDevice * m.ForwardFlops(int(r.Read)) / s.Flops
	return reading + steps*m.DecodeSeconds(together, r.Read+r.Generated/2, r.Width, s)
}
