package engine

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// leastTurns is the least number of turns of each side.
const leastTurns = 5

// measure returns both sides' figures at one size. Without an interpreter it measures only ours.
func measure(ctx context.Context, interpreter string, j job, least time.Duration) (out []bench.Figure, err error) {
	self, err := startSelf(ctx, j)
	if err != nil {
		return nil, err
	}
	defer self.Kill()
	peers, names := []*bench.Peer{self}, []string{"", "PyTorch: "}
	if interpreter != "" {
		peer, err := startPeer(ctx, interpreter, j)
		if err != nil {
			return nil, err
		}
		defer peer.Kill()
		peers = append(peers, peer)
	}
	train, err := compare(ctx, peers, commandTrain, j.Train[0]*j.Train[1], least)
	if err != nil {
		return nil, err
	}
	generate, err := compare(ctx, peers, commandGenerate, j.Generate[0]*j.Generate[2], least)
	if err != nil {
		return nil, err
	}
	for i, p := range peers {
		peak, err := p.Close()
		if err != nil {
			return nil, err
		}
		out = append(out, bench.Of(names[i]+"train tok/s", train.rate[i]), bench.Of("CPU µs/tok", train.cpu[i]),
			bench.Of(names[i]+"generate tok/s", generate.rate[i]), bench.Of("CPU µs/tok", generate.cpu[i]),
			bench.Of(names[i]+"peak MB", float64(peak)/1e6)) // of 10⁶ bytes
	}
	if len(peers) == 2 {
		out = append(out, bench.Of("train ÷ PyTorch", train.ratio), bench.Of("generate ÷ transformers", generate.ratio))
	}
	return out, nil
}

// comparison has, by side, the medians of tokens per second and of processor microseconds per token, and the median of
// the ratios of the first side's rate to the second's.
type comparison struct {
	rate, cpu []float64
	ratio     float64
}

// compare has each side warm up once, then run the command in turns for the least time, both together.
func compare(ctx context.Context, peers []*bench.Peer, command string, tokens int, least time.Duration) (comparison,
	error) {
	var sides []bench.Side[cost]
	for _, p := range peers {
		side := bench.Side[cost]{Name: command, Measure: func(ctx context.Context) (c cost, err error) {
			err = p.Ask(ctx, command, &c)
			return c, err
		}}
		if _, err := side.Measure(ctx); err != nil {
			return comparison{}, err
		}
		sides = append(sides, side)
	}
	costs, err := bench.TakeTurns(ctx, bench.AtLeast(leastTurns, least), sides...)
	if err != nil {
		return comparison{}, err
	}
	var out comparison
	var rates [][]float64
	for _, of := range costs {
		rate := bench.Column(of, func(c cost) float64 { return float64(tokens) / c.Seconds })
		cpu := bench.Column(of, func(c cost) float64 { return 1e6 * c.CPU / float64(tokens) })
		out.rate, out.cpu, rates = append(out.rate, bench.Median(rate)), append(out.cpu, bench.Median(cpu)),
			append(rates, rate)
	}
	if len(rates) == 2 {
		out.ratio = bench.Ratio(rates[0], rates[1])
	}
	return out, nil
}
