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
		out = append(out, bench.Of(names[i]+"train tok/s", train.rate[i]),
			bench.Of(names[i]+"generate tok/s", generate.rate[i]),
			bench.Of(names[i]+"peak MB", float64(peak)/1e6)) // of 10⁶ bytes
	}
	if len(peers) == 2 {
		out = append(out, bench.Of("train ÷ PyTorch", train.ratio), bench.Of("generate ÷ transformers", generate.ratio))
	}
	return out, nil
}

// comparison has the medians of tokens per second, by side, and the median of the ratios of the first side's rate to
// the second's.
type comparison struct {
	rate  []float64
	ratio float64
}

// compare has each side warm up once, then run the command in turns for the least time, both together.
func compare(ctx context.Context, peers []*bench.Peer, command string, tokens int, least time.Duration) (comparison,
	error) {
	var sides []bench.Side[float64]
	for _, p := range peers {
		side := bench.Side[float64]{Name: command, Measure: func(ctx context.Context) (rate float64, err error) {
			var seconds float64
			err = p.Ask(ctx, command, &seconds)
			return float64(tokens) / seconds, err
		}}
		if _, err := side.Measure(ctx); err != nil {
			return comparison{}, err
		}
		sides = append(sides, side)
	}
	rates, err := bench.TakeTurns(ctx, bench.AtLeast(leastTurns, least), sides...)
	if err != nil {
		return comparison{}, err
	}
	var out comparison
	for _, of := range rates {
		out.rate = append(out.rate, bench.Median(of))
	}
	if len(rates) == 2 {
		out.ratio = bench.Ratio(rates[0], rates[1])
	}
	return out, nil
}
