package main

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// leastTurns is how often each side takes its turn at least.
const leastTurns = 5

// measure gives both sides' rates at one size; without an interpreter only ours.
func measure(ctx context.Context, interpreter string, j job, least time.Duration) (row, error) {
	r := row{Params: j.Shape.Params()}
	self, err := startSelf(ctx, j)
	if err != nil {
		return row{}, err
	}
	sides := []*side{self}
	if interpreter != "" {
		peer, err := startPeer(ctx, interpreter, j)
		if err != nil {
			return row{}, err
		}
		sides = append(sides, peer)
	}
	train, err := takeTurns(sides, commandTrain, j.Train[0]*j.Train[1], least)
	if err != nil {
		return row{}, err
	}
	generate, err := takeTurns(sides, commandGenerate, j.Generate[0]*j.Generate[2], least)
	if err != nil {
		return row{}, err
	}
	r.Turns = train.turns
	r.Train, r.TrainCPU, r.Generate, r.GenerateCPU = train.rate[0], train.cpu[0], generate.rate[0], generate.cpu[0]
	if r.Peak, err = self.end(); err != nil || interpreter == "" {
		return r, err
	}
	r.TorchTrain, r.TorchTrainCPU, r.HFGenerate, r.HFGenerateCPU = train.rate[1], train.cpu[1], generate.rate[1], generate.cpu[1]
	r.TrainRatio, r.GenerateRatio = train.ratio, generate.ratio
	r.TorchPeak, err = sides[1].end()
	return r, err
}

// outcome is what turns gave: by side the medians of tokens per second and of processor microseconds per token, and
// the median of the first side's rate over the second's.
type outcome struct {
	turns     int
	rate, cpu []float64
	ratio     float64
}

// takeTurns has each side warm up once, then run the command in turns for the least time, both together.
func takeTurns(sides []*side, command string, tokens int, least time.Duration) (outcome, error) {
	for _, s := range sides {
		if _, err := s.do(command); err != nil {
			return outcome{}, err
		}
	}
	rates, cpus := make([][]float64, len(sides)), make([][]float64, len(sides))
	var ratios []float64
	o := outcome{}
	for began := time.Now(); o.turns < leastTurns || time.Since(began) < least; o.turns++ {
		for i, s := range sides {
			c, err := s.do(command)
			if err != nil {
				return outcome{}, err
			}
			rates[i] = append(rates[i], float64(tokens)/c.Seconds)
			cpus[i] = append(cpus[i], 1e6*c.CPU/float64(tokens))
		}
		if len(sides) == 2 {
			ratios = append(ratios, rates[0][o.turns]/rates[1][o.turns])
		}
	}
	for i := range sides {
		o.rate, o.cpu = append(o.rate, bench.Median(rates[i])), append(o.cpu, bench.Median(cpus[i]))
	}
	if len(ratios) > 0 {
		o.ratio = bench.Median(ratios)
	}
	return o, nil
}
