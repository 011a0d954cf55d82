package experiment

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
)

// Outcome declares one number of a trial: a curve, and how it becomes a number.
type Outcome struct {
	Name, Doc string
	// Metric names the curve as package analysis/metrics declares it; SQL is another one, a query of one run that
	// returns the columns step and value.
	Metric, SQL string
	Reduce      string   // a name of reductions
	Below       *float64 // the outcome is 1 if the number is below this bound, else 0; nil: it is the number
	Share       bool     // people read it in per cent
}

// over fills what an outcome leaves out from another one.
func (o Outcome) over(base Outcome) Outcome {
	o.Doc, o.Reduce = cmp.Or(o.Doc, base.Doc), cmp.Or(o.Reduce, base.Reduce)
	if o.SQL == "" {
		o.Metric, o.SQL, o.Share = base.Metric, base.SQL, o.Share || base.Share
	}
	if o.Below == nil {
		o.Below = base.Below
	}
	return o
}

// tail is the part of a curve that the reductions tail and collapse read.
const tail = 0.2

// collapsed is the success below which the last fifth of a trial counts as collapsed.
const collapsed = 0.05

// builtins are the outcomes that a file can name.
var builtins = []Outcome{
	{Name: "success", Doc: "success on held-out problems at the end", Metric: "eval/success", Reduce: "last",
		Share: true},
	{Name: "auc", Doc: "mean success on held-out problems over the axis: the area under the curve",
		Metric: "eval/success", Reduce: "auc", Share: true},
	{Name: "greedy", Doc: "success on held-out problems at the end, decoded greedily", Metric: "eval/greedy_success",
		Reduce: "last", Share: true},
	{Name: "clone", Doc: "success on held-out problems before training", Metric: "eval/success", Reduce: "first",
		Share: true},
	{Name: "gain", Doc: "rise of success on held-out problems over the policy before training", Metric: "eval/success",
		Reduce: "gain", Share: true},
	{Name: "train_success", Doc: "success of rollouts in the last fifth", Metric: "train/success", Reduce: "tail",
		Share: true},
	{Name: "reward", Doc: "mean reward in the last fifth", Metric: "train/reward", Reduce: "tail"},
	{Name: "entropy", Doc: "entropy in nats in the last fifth", Metric: "update/entropy", Reduce: "tail"},
	{Name: "kl", Doc: "divergence of a step's updates from the policy that sampled, mean", Metric: "update/kl",
		Reduce: "mean"},
	{Name: "grad_norm", Doc: "norm of the gradient before clipping, mean", Metric: "update/grad_norm",
		Reduce: "mean"},
	{Name: "valid", Doc: "share of turns that act: a call that could be parsed, or an answer", Reduce: "mean",
		SQL: "select step, avg((coalesce(parsed_calls, 0) > 0 or answered)::int) as value from turns where excluded " +
			"is null and summary is null group by 1", Share: true},
	{Name: "failed_calls", Doc: "share of failed calls in successful trajectories, in the last fifth", Reduce: "tail",
		SQL: "select step, sum(tool_errors) / nullif(sum(tool_calls), 0) as value from rewards where success " +
			"group by 1", Share: true},
	{Name: "zero_advantage", Doc: "share of groups whose rewards are all equal, mean",
		Metric: "selection/equal_groups", Reduce: "mean", Share: true},
	{Name: "response_tokens", Doc: "tokens that the policy writes in a trajectory, in the last fifth",
		Metric: "train/response_tokens", Reduce: "tail"},
	{Name: "collapse", Doc: "1 if success of rollouts in the last fifth is below 5%", Metric: "train/success",
		Reduce: "tail", Below: new(collapsed), Share: true},
}

// builtin returns the outcome that a file can name so.
func builtin(name string) (Outcome, bool) {
	i := slices.IndexFunc(builtins, func(o Outcome) bool { return o.Name == name })
	if i < 0 {
		return Outcome{}, false
	}
	return builtins[i], true
}

// named is builtin for a name that is there.
func named(name string) Outcome {
	o, _ := builtin(name)
	return o
}

// outcomeNames lists the outcomes that a file can name.
func outcomeNames() []string {
	out := make([]string, len(builtins))
	for i, o := range builtins {
		out[i] = o.Name
	}
	return out
}

// value is the outcome of a curve over an axis up to an end. ok is false if the curve says nothing before the end.
func (o Outcome) value(over Curve, end float64) (value float64, ok bool) {
	c := over.until(end)
	if len(c) == 0 {
		return 0, false
	}
	value = reductions[o.Reduce](c)
	if o.Below != nil {
		return number(value < *o.Below), true
	}
	return value, !math.IsNaN(value)
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// reductions make a number of a curve, which has a point.
var reductions = map[string]func(Curve) float64{
	"first": func(c Curve) float64 { return c[0].Y },
	"last":  func(c Curve) float64 { return c[len(c)-1].Y },
	"gain":  func(c Curve) float64 { return c[len(c)-1].Y - c[0].Y },
	"mean":  Curve.mean,
	"max":   func(c Curve) float64 { return slices.MaxFunc(c, byY).Y },
	"min":   func(c Curve) float64 { return slices.MinFunc(c, byY).Y },
	"sum":   func(c Curve) float64 { return c.mean() * float64(len(c)) },
	"tail":  Curve.tail,
	"auc":   Curve.area,
}

func reductionNames() []string { return slices.Sorted(maps.Keys(reductions)) }

func byY(a, b XY) int { return cmp.Compare(a.Y, b.Y) }

// XY is a point of a curve. In JSON it is a pair.
type XY struct{ X, Y float64 }

// MarshalJSON implements json.Marshaler.
func (p XY) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64{p.X, p.Y}) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *XY) UnmarshalJSON(text []byte) error {
	var pair [2]float64
	err := json.Unmarshal(text, &pair)
	p.X, p.Y = pair[0], pair[1]
	return err
}

// Curve is a row of points whose x grows.
type Curve []XY

// until cuts a curve at an end, where it has the value between its two neighbours.
func (c Curve) until(end float64) Curve {
	i := slices.IndexFunc(c, func(p XY) bool { return p.X > end })
	if i < 0 {
		return c
	}
	out := slices.Clone(c[:i])
	if i > 0 && c[i-1].X < end {
		share := (end - c[i-1].X) / (c[i].X - c[i-1].X)
		out = append(out, XY{end, c[i-1].Y + share*(c[i].Y-c[i-1].Y)})
	}
	return out
}

func (c Curve) mean() float64 {
	sum := 0.0
	for _, p := range c {
		sum += p.Y
	}
	return sum / float64(len(c))
}

// tail is the mean of the points in the last fifth of the axis, at least of the last one.
func (c Curve) tail() float64 {
	first, last := c[0].X, c[len(c)-1].X
	i := slices.IndexFunc(c, func(p XY) bool { return p.X > last-tail*(last-first) })
	return c[max(i, 0):].mean()
}

// area is the area under the curve divided by its length on the axis; the value of a single point.
func (c Curve) area() float64 {
	first, last := c[0], c[len(c)-1]
	if last.X == first.X {
		return c.mean()
	}
	sum := 0.0
	for i := range c[1:] {
		sum += (c[i+1].X - c[i].X) * (c[i+1].Y + c[i].Y) / 2
	}
	return sum / (last.X - first.X)
}

// over puts a curve over steps onto an axis: spent is what each step has spent, added up.
func (c Curve) over(spent Curve) Curve {
	out, amount, i := make(Curve, len(c)), 0.0, 0
	for j, p := range c {
		for i < len(spent) && spent[i].X <= p.X {
			amount, i = spent[i].Y, i+1
		}
		out[j] = XY{amount, p.Y}
	}
	return out
}
