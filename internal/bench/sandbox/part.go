package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// benchmark measures parts and puts their figures into the result.
type benchmark struct {
	options
	subject
	result *result
}

// part is what is measured together; keys are the figures of the JSON result that it gives.
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

// missingError says what would have to be there for a figure; nothing has failed.
type missingError struct{ why string }

func (e missingError) Error() string { return e.why }

func missing(format string, args ...any) error { return missingError{fmt.Sprintf(format, args...)} }

// measure runs the chosen parts. A part that fails leaves the others to go on; its figures are absent.
func (b *benchmark) measure(ctx context.Context) (faults []error) {
	for _, p := range parts() {
		if !slices.Contains(b.chosen(), p.name) {
			b.result.lack(missing("not asked for"), p.keys...)
			continue
		}
		fmt.Printf("measuring %s…\n", p.name)
		err := p.measure(b, ctx)
		if err == nil {
			continue
		}
		b.result.lack(err, p.keys...)
		if !errors.As(err, new(missingError)) {
			faults = append(faults, fmt.Errorf("measure %s: %w", p.name, err))
		}
	}
	return faults
}
