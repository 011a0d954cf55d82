package tinker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Convention says how a server turns numbers for each token into a gradient. The API's documents sum over all tokens of
// all sequences; some servers divide.
//
// A step of AdamW whose epsilon is far greater than any gradient moves the weights by lr/epsilon times the gradient. So
// a token's log-probability moves by
//
//	Δ = (lr/epsilon) · coefficient · |d(logp)/d(weights)|² / what the server divides by
//
// to first order, and quotients of two Δ show what it divides by.
type Convention struct {
	// Loss is the loss that carries the cotangents: cross_entropy with weights −c if the server does not divide by the
	// sum of the weights, otherwise importance_sampling with advantages −c at the log-probabilities of its own forward
	// pass, where every ratio is 1.
	Loss string `json:"loss"`
	// PerToken: a sequence's gradient is divided by the number of its targets.
	PerToken bool `json:"per_token"`
	// PerSequence says by which number of sequences the gradient is divided.
	PerSequence Division `json:"per_sequence"`
	// Scale is the gradient that the server takes for a gradient of 1, after undoing the divisions, as the downloaded
	// adapters show it; 0 if it offers no downloads.
	Scale float64 `json:"scale,omitempty"`
	// Clips: a step's grad_clip_norm is obeyed.
	Clips bool `json:"clips"`
	// Norm is the name under which a step returns the gradient's norm; "" = it does not.
	Norm string `json:"norm,omitempty"`
}

// Division says by which number of sequences a server divides.
type Division string

// The divisions that are known.
const (
	ByNothing Division = "nothing"
	ByRequest Division = "request" // the sequences of each forward_backward
	ByStep    Division = "step"    // the sequences of all forward_backward since the last step
)

// factor is what a cotangent is multiplied with, for a sequence of n targets, in a request of r and a step of b
// sequences.
func (c Convention) factor(n, r, b int) float32 {
	f := float32(1)
	if c.PerToken {
		f *= float32(n)
	}
	switch c.PerSequence {
	case ByRequest:
		f *= float32(r)
	case ByStep:
		f *= float32(b)
	}
	return f
}

// numbers are those of a datum whose targets have the cotangents c, which begins at the first target.
func (c Convention) numbers(cotangents, logProbs []float32, factor float32) map[string][]float32 {
	scaled := make([]float32, len(cotangents))
	for i, v := range cotangents {
		scaled[i] = -v * factor
	}
	if c.Loss == crossEntropy {
		return map[string][]float32{"weights": scaled}
	}
	return map[string][]float32{"advantages": scaled, "logprobs": logProbs}
}

// String describes the convention in one line.
func (c Convention) String() string {
	out := c.Loss + ", gradients "
	switch {
	case !c.PerToken && c.PerSequence == ByNothing:
		out += "summed"
	default:
		var by []string
		if c.PerToken {
			by = append(by, "the tokens of a sequence")
		}
		if c.PerSequence != ByNothing {
			by = append(by, "the sequences of a "+string(c.PerSequence))
		}
		out += "divided by " + strings.Join(by, " and by ")
	}
	if c.Scale > 0 {
		out += fmt.Sprintf(", scale %.3g", c.Scale)
	}
	if !c.Clips {
		out += ", no clipping"
	}
	return out
}

// probeTokens are the tokens of the sequence with which conventions are found out. probed is one of its targets.
const (
	probeTokens = 17
	probed      = 3
)

// prober finds out a convention. It works on an adapter of its own.
type prober struct {
	*session
	shape     checkpoint.Shape
	m         *model
	begin     string // path of the adapter's first state
	loadFirst bool   // loads are taken by new adapters alone
	ids       []int32
	before    []float32 // log-probabilities of ids at the begin
	far       float64   // how far a coefficient of 1 moves the log-probability, about
	rate      float64   // lr/epsilon with which it does
	metrics   map[string]*float64
}

// epsilon of the probe's steps.
const probeEpsilon = 1e4

// moves are how far the probe's steps move a log-probability, about: the first is far beyond the rounding of float32,
// and so short that the move is proportional to the gradient; the others are for servers that round to fewer digits.
var moves = []float64{0.01, 0.04, 0.16}

// convention finds out how the server turns numbers into gradients. What no convention explains with short moves is
// tried with longer ones.
func (s *session) convention(ctx context.Context, shape checkpoint.Shape) (c Convention, loadFirst bool, err error) {
	p := &prober{session: s, shape: shape, ids: probeIDs(shape.Vocab)}
	defer func() { p.unload(context.WithoutCancel(ctx), p.m) }()
	if err := p.start(ctx); err != nil {
		return c, false, err
	}
	for _, p.far = range moves {
		found, failed := p.find(ctx)
		if failed == nil || !errors.As(failed, new(*unexplained)) {
			return found, p.loadFirst, failed
		}
		if err == nil { // the shortest moves say best what is wrong
			err = failed
		}
	}
	return c, false, err
}

// find finds out a convention with moves of one length.
func (p *prober) find(ctx context.Context) (c Convention, err error) {
	for _, find := range []func(context.Context, *Convention) error{p.weights, p.signs, p.tokens, p.sequences,
		p.clipping, p.scale} {
		if err := find(ctx, &c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// unexplained says that what a server does to numbers fits no convention.
type unexplained struct{ *Fault }

func (p *prober) unlike(format string, args ...any) error {
	return &unexplained{&Fault{Server: p.Name(), Text: fmt.Sprintf(format, args...)}}
}

// probeIDs are the same tokens for the same vocabulary, each another one if there are enough.
func probeIDs(vocab int) []int32 {
	n := min(vocab, 256)
	out := make([]int32, probeTokens)
	for i := range out {
		out[i] = int32((7*i + 3) % n)
	}
	return out
}

// start makes the adapter, keeps its first state and finds the rate.
func (p *prober) start(ctx context.Context) (err error) {
	if p.m, err = p.create(ctx); err != nil {
		return err
	}
	if p.begin, err = p.save(ctx, p.m); err != nil {
		return err
	}
	// Gradients that somebody else has left in the adapter's place are dropped.
	if err := p.flush(ctx, p.m); err != nil && !refused(err) {
		return err
	}
	if err := p.load(ctx, p.m, p.begin); err != nil {
		if !refused(err) && !isFault(err) {
			return err
		}
		p.loadFirst = true
	}
	if err := p.reset(ctx); err != nil {
		return err
	}
	out, err := p.forward(ctx, p.m, [][]int32{p.ids})
	if err != nil {
		return err
	}
	p.before = out[0]
	return nil
}

func isFault(err error) bool {
	var f *Fault
	return errors.As(err, &f)
}

// reset puts the first state back.
func (p *prober) reset(ctx context.Context) error {
	if !p.loadFirst {
		return p.load(ctx, p.m, p.begin)
	}
	p.unload(ctx, p.m)
	m, err := p.create(ctx)
	if err != nil {
		return err
	}
	p.m = m
	return p.load(ctx, m, p.begin)
}

// request is the data of one forward_backward: sequences with a coefficient at the probed target.
type request []probeRow

type probeRow struct {
	targets     int // of the probe's; the probed one is among them
	coefficient float32
}

// moved is how far the probed log-probability moves from the first state by a step on the requests.
func (p *prober) moved(ctx context.Context, c Convention, clip float64, requests ...request) (float64, error) {
	if err := p.reset(ctx); err != nil {
		return 0, err
	}
	return p.move(ctx, c, clip, requests...)
}

func (p *prober) move(ctx context.Context, c Convention, clip float64, requests ...request) (float64, error) {
	for _, r := range requests {
		var data []any
		for _, row := range r {
			cotangents := make([]float32, row.targets)
			cotangents[probed] = -row.coefficient
			numbers := c.numbers(cotangents, p.before[1:1+row.targets], 1)
			data = append(data, datum(p.ids[:row.targets+1], numbers))
		}
		if err := p.backward(ctx, p.m, c.Loss, data); err != nil {
			return 0, err
		}
	}
	var err error
	p.metrics, err = p.step(ctx, p.m, adam{LR: p.rate * probeEpsilon, Beta1: 0.9, Beta2: 0.95, Eps: probeEpsilon,
		Clip: clip})
	if err != nil {
		return 0, err
	}
	out, err := p.forward(ctx, p.m, [][]int32{p.ids})
	if err != nil {
		return 0, err
	}
	return float64(out[0][1+probed]) - float64(p.before[1+probed]), nil
}

const whole = probeTokens - 1

// weights chooses the loss: it finds out whether twice the weight moves twice as far.
func (p *prober) weights(ctx context.Context, c *Convention) error {
	c.Loss = crossEntropy
	single, err := p.tune(ctx, *c)
	if err != nil {
		return err
	}
	twice, err := p.moved(ctx, *c, 0, request{{whole, 2}})
	if err != nil {
		return err
	}
	switch q := twice / single; {
	case near(q, 2):
		return nil
	case near(q, 1):
		c.Loss = importanceSampling
		_, err = p.tune(ctx, *c)
		return err
	default:
		return p.unlike("twice the weight in cross_entropy gives %.3g times the gradient, neither twice nor the "+
			"same", q)
	}
}

// leastRate moves nothing too far. The rate grows from there, so that no move is beyond the straight line.
const leastRate = 1e-6

// tune finds the rate with which a coefficient of 1 moves the log-probability by a good amount, and returns the move.
func (p *prober) tune(ctx context.Context, c Convention) (float64, error) {
	p.rate = leastRate
	for range 12 {
		moved, err := p.moved(ctx, c, 0, request{{whole, 1}})
		if err != nil {
			return 0, err
		}
		size := math.Abs(moved)
		if size < p.far/2 || size > 2*p.far {
			p.rate *= min(max(p.far/max(size, 1e-9), 1e-3), 1e3)
			continue
		}
		if moved < 0 {
			return 0, p.unlike("a coefficient of 1 in %s lowers a log-probability, by %.3g", c.Loss, size)
		}
		return moved, nil
	}
	return 0, p.unlike("its optimiser does not follow gradients: no multiple of the gradient of %s moves a "+
		"log-probability by about %.2g", c.Loss, p.far)
}

// near compares a quotient that curvature and rounding have changed a little.
func near(q, want float64) bool { return math.Abs(q-want) < 0.3*math.Abs(want) }

// signs checks that a negative coefficient gives the negative gradient.
func (p *prober) signs(ctx context.Context, c *Convention) error {
	plus, err := p.moved(ctx, *c, 0, request{{whole, 1}})
	if err != nil {
		return err
	}
	minus, err := p.moved(ctx, *c, 0, request{{whole, -1}})
	if err != nil {
		return err
	}
	if plus <= 0 || !near(minus/plus, -1) {
		return p.unlike("in %s a coefficient of 1 moves a log-probability by %.3g, and one of −1 by %.3g", c.Loss, plus,
			minus)
	}
	c.Norm = normIn(p.metrics)
	return nil
}

// tokens finds out whether a sequence's gradient is divided by the number of its targets.
func (p *prober) tokens(ctx context.Context, c *Convention) error {
	q, err := p.quotient(ctx, *c, []request{{{whole / 2, 1}}}, []request{{{whole, 1}}})
	switch {
	case err != nil:
		return err
	case near(q, 1):
	case near(q, 2):
		c.PerToken = true
	default:
		return p.unlike("in %s a sequence of half the length has %.3g times the gradient, neither the same nor twice",
			c.Loss, q)
	}
	return nil
}

// sequences finds out which number of sequences the gradient is divided by.
func (p *prober) sequences(ctx context.Context, c *Convention) error {
	one := request{{whole, 1}}
	inOne, err := p.quotient(ctx, *c, []request{slices.Concat(one, one)}, []request{one})
	if err != nil {
		return err
	}
	step, err := p.quotient(ctx, *c, []request{one, one}, []request{one})
	if err != nil {
		return err
	}
	switch {
	case near(inOne, 2) && near(step, 2):
		c.PerSequence = ByNothing
	case near(inOne, 1) && near(step, 2):
		c.PerSequence = ByRequest
	case near(inOne, 1) && near(step, 1):
		c.PerSequence = ByStep
	default:
		return p.unlike("in %s a sequence twice gives %.3g times the gradient in one request and %.3g times in two",
			c.Loss, inOne, step)
	}
	return nil
}

func (p *prober) quotient(ctx context.Context, c Convention, of, to []request) (float64, error) {
	a, err := p.moved(ctx, c, 0, of...)
	if err != nil {
		return 0, err
	}
	b, err := p.moved(ctx, c, 0, to...)
	if err != nil {
		return 0, err
	}
	if b == 0 {
		return 0, p.unlike("in %s a coefficient of 1 moves nothing", c.Loss)
	}
	return a / b, nil
}

// clipping finds out whether grad_clip_norm is obeyed: a bound far below the gradient's norm leaves next to nothing.
func (p *prober) clipping(ctx context.Context, c *Convention) error {
	free, err := p.moved(ctx, *c, 0, request{{whole, 1}})
	if err != nil {
		return err
	}
	bound, err := p.moved(ctx, *c, 1e-9, request{{whole, 1}})
	if refused(err) { // a server that does not know the field
		return nil
	}
	if err != nil {
		return err
	}
	switch q := bound / free; {
	case math.Abs(q) < 0.1:
		c.Clips = true
	case !near(q, 1):
		return p.unlike("grad_clip_norm 1e-9 leaves %.3g of a step", q)
	}
	return nil
}

// scale measures the gradient itself. A move of Δ by weights that have moved by D says that (lr/epsilon) times the
// gradient is |D|²/Δ for every coefficient, whatever |d(logp)/d(weights)| is.
func (p *prober) scale(ctx context.Context, c *Convention) error {
	if err := p.reset(ctx); err != nil {
		return err
	}
	first, err := p.fetch(ctx)
	if errors.Is(err, errNoDownload) {
		return nil
	}
	if err != nil {
		return err
	}
	factor := c.factor(whole, 1, 1) // the gradient is to be 1
	p.rate /= float64(factor)
	moved, err := p.move(ctx, *c, 0, request{{whole, factor}})
	if err != nil {
		return err
	}
	then, err := p.fetch(ctx)
	if err != nil {
		return err
	}
	c.Scale = then.norm2(first) / (p.rate * moved)
	if !near(c.Scale, 1) {
		return p.unlike("in %s a gradient of 1 is taken for one of %.3g, which no division by tokens or sequences "+
			"explains", c.Loss, c.Scale)
	}
	return nil
}

func (p *prober) fetch(ctx context.Context) (*adapter, error) {
	path, err := p.publish(ctx, p.m)
	if err != nil {
		return nil, err
	}
	return p.download(ctx, path, p.shape)
}

// normIn finds the norm of the gradient among what a step returns.
func normIn(metrics map[string]*float64) string {
	var names []string
	for name := range metrics {
		low := strings.ToLower(name)
		if strings.Contains(low, "grad_norm") || strings.Contains(low, "grad_l2") ||
			strings.Contains(low, "gradient_norm") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, "/grad_norm") || name == "grad_norm" {
			return name
		}
	}
	return names[0]
}
