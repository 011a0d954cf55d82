package main

import (
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/temporal"
)

// priorityOptions order a run's tasks among those of other runs in the same queues. They say nothing about what the run
// computes, so its record does not have them.
type priorityOptions struct {
	level  int
	key    string
	weight float32
}

func (o *priorityOptions) add(f *pflag.FlagSet) {
	f.IntVar(&o.level, "priority", 0, "priority of the run's tasks in the queues, from 1 (first) to 5 (default: 3)")
	f.StringVar(&o.key, "fairness-key", "", "team or project; runs of equal priority share a queue evenly between "+
		"keys, if the server has fairness turned on")
	f.Float32Var(&o.weight, "fairness-weight", 0, "share of the key, 0.001 to 1000 (default: 1)")
}

// Temporal's bounds.
const (
	mostPriority    = 5
	longestFairness = 64 // bytes
	leastWeight     = 0.001
	mostWeight      = 1000
)

func (o priorityOptions) priority() (temporal.Priority, error) {
	switch {
	case o.level < 0 || o.level > mostPriority:
		return temporal.Priority{}, badInput("--priority: must be 1 to %d, got %d", mostPriority, o.level)
	case len(o.key) > longestFairness:
		return temporal.Priority{}, badInput("--fairness-key: must have at most %d bytes, got %d", longestFairness,
			len(o.key))
	case o.weight != 0 && o.key == "":
		return temporal.Priority{}, badInput("--fairness-weight: belongs to --fairness-key")
	case o.weight != 0 && (o.weight < leastWeight || o.weight > mostWeight):
		return temporal.Priority{}, badInput("--fairness-weight: must be %v to %v, got %v", leastWeight, mostWeight,
			o.weight)
	}
	return temporal.Priority{PriorityKey: o.level, FairnessKey: o.key, FairnessWeight: o.weight}, nil
}
