package main

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// leastTurns is the least number of turns of each side.
const leastTurns = 5

// measure returns both sides' rates at one size. Without an interpreter it measures only ours.
func measure(ctx context.Context, interpreter string, j job, least time.Duration) (row, error) {
	r := row{Params: j.Shape.Params()}
	self, err := startSelf(ctx, j)
	if err != nil {
		return row{}, err
	}
	defer self.Kill()
	peers := []*bench.Peer{self}
	if interpreter != "" {
		peer, err := startPeer(ctx, interpreter, j)
		if err != nil {
			return row{}, err
		}
		defer peer.Kill()
		peers = append(peers, peer)
	}
	train, err := compare(ctx, peers, commandTrain, j.Train[0]*j.Train[1], least)
	if err != nil {
		return row{}, err
	}
	generate, err := compare(ctx, peers, commandGenerate, j.Generate[0]*j.Generate[2], least)
	if err != nil {
		return row{}, err
	}
	r.Turns = train.turns
	r.Train, r.TrainCPU, r.Generate, r.GenerateCPU = train.rate[0], train.cpu[0], generate.rate[0], generate.cpu[0]
	if r.Peak, err = peakOf(self); err != nil || interpreter == "" {
		return r, err
	}
	r.TorchTrain, r.TorchTrainCPU, r.TrainRatio = train.rate[1], train.cpu[1], train.ratio
	r.HFGenerate, r.HFGenerateCPU, r.GenerateRatio = generate.rate[1], generate.cpu[1], generate.ratio
	r.TorchPeak, err = peakOf(peers[1])
	return r, err
}

// peakOf ends a peer and returns the most memory that was resident in it, in MB of 10⁶ bytes.
func peakOf(p *bench.Peer) (float64, error) {
	bytes, err := p.Close()
	return float64(bytes) / 1e6, err
}

// comparison has, by side, the medians of tokens per second and of processor microseconds per token, and the median of
// the ratios of the first side's rate to the second's.
type comparison struct {
	turns     int
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
	out := comparison{turns: len(costs[0])}
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
