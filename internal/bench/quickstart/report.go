package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// The requirements of the quickstart on two cores: success in shares, time in seconds, memory in MiB.
const (
	leastFinal    = 0.75
	leastRise     = 0.45
	leastRiseEach = 0.35
	leastWarm     = 0.15
	leastGreedy   = 0.20 // rise
	leastUnseen   = 0.40 // level 4, which no demonstration shows
	mostRLSeconds = 300
	mostWarmStart = 90
	mostMemory    = 6 * 1024
	unseenLevel   = "4"
)

// mean is the outcome over all seeds.
type mean struct {
	Warm        float64 `json:"warm_start"`
	Final       float64 `json:"final"`
	WarmGreedy  float64 `json:"warm_start_greedy"`
	FinalGreedy float64 `json:"final_greedy"`
	Unseen      float64 `json:"level_4"`
	WarmErrors  float64 `json:"warm_start_tool_errors"`
	FinalErrors float64 `json:"final_tool_errors"`
}

func means(all []outcome) mean {
	var m mean
	n := float64(len(all))
	for _, o := range all {
		m.Warm += o.Warm.Success / n
		m.Final += o.Final.Success / n
		m.WarmGreedy += o.Warm.Greedy / n
		m.FinalGreedy += o.Final.Greedy / n
		m.Unseen += o.Final.ByLevel[unseenLevel].Success / n
		m.WarmErrors += o.Warm.ToolErrors / n
		m.FinalErrors += o.Final.ToolErrors / n
	}
	return m
}

// failed lists the requirements that the runs miss.
func failed(all []outcome) []string {
	missed := []string{}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			missed = append(missed, fmt.Sprintf(format, args...))
		}
	}
	m := means(all)
	check(m.Final >= leastFinal, "mean final success %.3f < %.2f", m.Final, leastFinal)
	check(m.Final-m.Warm >= leastRise, "mean rise %.3f < %.2f", m.Final-m.Warm, leastRise)
	check(m.Warm >= leastWarm, "mean warm start %.3f < %.2f", m.Warm, leastWarm)
	check(m.FinalGreedy-m.WarmGreedy >= leastGreedy, "mean greedy rise %.3f < %.2f", m.FinalGreedy-m.WarmGreedy,
		leastGreedy)
	check(m.Unseen >= leastUnseen, "mean success at level 4 %.3f < %.2f", m.Unseen, leastUnseen)
	check(m.FinalErrors < m.WarmErrors, "tool errors in positives rose from %.3f to %.3f", m.WarmErrors, m.FinalErrors)
	for _, o := range all {
		check(o.Final.Success-o.Warm.Success >= leastRiseEach, "seed %d rises by %.3f < %.2f", o.Seed,
			o.Final.Success-o.Warm.Success, leastRiseEach)
		check(o.RLSeconds <= mostRLSeconds, "seed %d takes %.0f s of reinforcement learning > %d", o.Seed, o.RLSeconds,
			mostRLSeconds)
		check(o.WarmStartSeconds <= mostWarmStart, "seed %d takes %.0f s of warm start > %d", o.Seed,
			o.WarmStartSeconds, mostWarmStart)
		check(o.PeakMB <= mostMemory, "seed %d takes %.0f MiB > %d", o.Seed, o.PeakMB, mostMemory)
		for _, level := range slices.Sorted(maps.Keys(o.Final.ByLevel)) {
			check(o.Final.ByLevel[level].High >= o.Warm.ByLevel[level].Low,
				"seed %d: level %s fell below its warm start", o.Seed, level)
		}
	}
	return missed
}

func print(all []outcome) {
	fmt.Println("| seed | warm start | final | greedy | level 2 | level 3 | level 4 | tool errors in positives | " +
		"warm start s | RL s | evaluation s | orchestration | peak MiB |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, o := range all {
		fmt.Printf("| %d | %.1f%% | %.1f%% [%.1f, %.1f] | %.1f → %.1f%%", o.Seed, 100*o.Warm.Success,
			100*o.Final.Success, 100*o.Final.Low, 100*o.Final.High, 100*o.Warm.Greedy, 100*o.Final.Greedy)
		for _, level := range slices.Sorted(maps.Keys(o.Final.ByLevel)) {
			fmt.Printf(" | %.1f → %.1f%%", 100*o.Warm.ByLevel[level].Success, 100*o.Final.ByLevel[level].Success)
		}
		fmt.Printf(" | %.1f → %.1f%% | %.0f | %.0f | %.0f | %.1f%% | %.0f |\n", 100*o.Warm.ToolErrors,
			100*o.Final.ToolErrors,
			o.WarmStartSeconds, o.RLSeconds, o.EvalSeconds, 100*o.Orchestration, o.PeakMB)
	}
	m := means(all)
	fmt.Printf("mean: %.1f%% → %.1f%%, greedy %.1f%% → %.1f%%, level 4 at %.1f%%\n", 100*m.Warm, 100*m.Final,
		100*m.WarmGreedy, 100*m.FinalGreedy, 100*m.Unseen)
	for _, o := range all {
		fmt.Printf("seed %d, success by step: %s\ncheckpoint %s\n", o.Seed, sparkline(o.Curve), o.Digest)
	}
	for _, text := range failed(all) {
		fmt.Println("missed:", text)
	}
}

// sparkline draws a curve in eight heights, averaged over windows so that it fits a line.
func sparkline(curve []float64) string {
	var b bytes.Buffer
	for _, x := range windows(curve, 65) {
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[min(7, int(8*x))])
	}
	return b.String()
}

// windows averages a curve into at most n points.
func windows(curve []float64, n int) []float64 {
	n = min(n, len(curve))
	out := make([]float64, n)
	for i := range out {
		from, to := i*len(curve)/n, (i+1)*len(curve)/n
		for _, x := range curve[from:to] {
			out[i] += x / float64(to-from)
		}
	}
	return out
}

// draw plots the smoothed curves as an SVG: success of the step's rollouts over steps.
func draw(all []outcome) []byte {
	const width, height, left, bottom = 640.0, 320.0, 48.0, 36.0
	colours := []string{"#1b6ca8", "#c8553d", "#588157", "#7b2d8b"}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="white"/>`+"\n", width, height)
	for i := range 6 {
		y := height - bottom - float64(i)/5*(height-bottom-16)
		fmt.Fprintf(&b, `<line x1="%g" y1="%.1f" x2="%g" y2="%.1f" stroke="#ddd"/>`+
			`<text x="8" y="%.1f">%d%%</text>`+"\n", left, y, width-8, y, y+4, 20*i)
	}
	for i, o := range all {
		smooth := windows(o.Curve, max(1, len(o.Curve)/3))
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colours[i%len(colours)])
		for j, x := range smooth {
			fmt.Fprintf(&b, "%.1f,%.1f ", left+(float64(j)+0.5)/float64(len(smooth))*(width-8-left),
				height-bottom-x*(height-bottom-16))
		}
		fmt.Fprintf(&b, `"/><text x="%g" y="%g" fill="%s">seed %d</text>`+"\n", left+8+float64(i)*64, 28.0,
			colours[i%len(colours)], o.Seed)
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g">training step (mean of three), success of its rollouts</text></svg>`+"\n",
		left, height-8)
	return b.Bytes()
}
