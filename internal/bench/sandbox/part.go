package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// benchmark measures parts and adds their figures to the result.
type benchmark struct {
	options
	subject
	result *result
}

// part is a set of figures that are measured together. keys are their names in the JSON result.
type part struct {
	name    string
	keys    []string
	measure func(*benchmark, context.Context) error
}

func parts() []part {
	return []part{
		{"speed", []string{"stateless_calls_per_s", "limit_calls_per_s", "peers"}, (*benchmark).speed},
		{"latency", []string{"latency_2_ms", "latency_64_ms"}, (*benchmark).latency},
		{"sessions", []string{"session_execs_per_s"}, (*benchmark).sessions},
		{"stuck", []string{"stuck_loss"}, (*benchmark).stuck},
		{"cold", []string{"cold_start_ms"}, (*benchmark).cold},
		{"burst", []string{"burst"}, (*benchmark).burstThrough},
		{"recovery", []string{"recovery_ms"}, (*benchmark).recover},
	}
}

func names() []string {
	var all []string
	for _, p := range parts() {
		all = append(all, p.name)
	}
	return all
}

// measure runs the chosen parts. If a part fails, its figures are absent, and the others continue.
func (b *benchmark) measure(ctx context.Context) (faults []error) {
	for _, p := range parts() {
		if !slices.Contains(b.chosen, p.name) {
			b.result.lack("not asked for", p.keys...)
			continue
		}
		fmt.Printf("measuring %s…\n", p.name)
		out, err := bench.RunPart(ctx, 0, func(ctx context.Context) error { return p.measure(b, ctx) })
		if out.Why != "" {
			b.result.lack(out.Why, p.keys...)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("measure %s: %w", p.name, err))
		}
	}
	return faults
}
