package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
)

type quotaOptions struct{ rate, keyRate string }

func quotaCommand(con *console) *cobra.Command {
	o := quotaOptions{}
	cmd := &cobra.Command{
		Use:   "quota [QUEUE]",
		Short: "show or set how many activities of a task queue may start in a second",
		Long: "quota shows the rate limits of the task queues, which the Temporal server keeps, or sets those of\n" +
			"QUEUE. --rate limits the whole queue, over all workers. --key-rate limits each fairness key (`ropewalk\n" +
			"run --fairness-key`) and is multiplied by the key's weight. Runs without a key share one. --rate 0\n" +
			"stops the queue; activities that have started continue. All activities of a second may start at once.\n" +
			"When a key has reached its rate, tasks behind its next task in the queue wait too. Tasks of a lower\n" +
			"priority (`ropewalk run --priority`) wait as long as the key has tasks.",
		Example: "  ropewalk quota\n  ropewalk quota gpu --key-rate 0.5\n  ropewalk quota gpu --key-rate none",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && o.rate == "" && o.keyRate == "" {
				return nil
			}
			return exactly("QUEUE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), con, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.rate, "rate", "", "activities of the queue a second, or none")
	f.StringVar(&o.keyRate, "key-rate", "", "activities of each fairness key a second, or none")
	con.jsonFlag(cmd, oneArray)
	return cmd
}

func (o quotaOptions) run(ctx context.Context, con *console, queues []string) error {
	rate, err := parseRate("--rate", o.rate, 0)
	if err != nil {
		return err
	}
	keyRate, err := parseRate("--key-rate", o.keyRate, leastKeyRate)
	if err != nil {
		return fmt.Errorf("%w; --rate 0 stops the queue", err)
	}
	s, err := con.connector().Join(ctx, runs.NeedTemporal)
	if err != nil {
		return err
	}
	defer s.Close()
	if rate != nil || keyRate != nil {
		q, err := s.SetQuota(ctx, queues[0], rate, keyRate)
		if err != nil {
			return err
		}
		return printQuotas(con, []runs.Quota{q})
	}
	all, err := s.Quotas(ctx, queues...)
	if err != nil {
		return err
	}
	return printQuotas(con, all)
}

// leastKeyRate is the least rate of keys. Temporal 1.29 takes a rate of 0 (to it, 1e-9 and less) for no limit of keys,
// where a queue's rate of 0 stops the queue. At this rate, the time between two tasks of a key of the least weight
// fits Temporal's 64 bits of nanoseconds.
const leastKeyRate = 1e-6

// parseRate reads a flag; nil if it is not set.
func parseRate(flag, text string, least float64) (*runs.RateChange, error) {
	switch text {
	case "":
		return nil, nil
	case "none":
		return &runs.RateChange{Remove: true}, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < least || n > math.MaxInt32 || math.IsNaN(n) {
		return nil, badInput("%s: must be a number ≥ %g or none, got %q", flag, least, text)
	}
	return &runs.RateChange{PerSecond: n}, nil
}

func printQuotas(con *console, all []runs.Quota) error {
	return con.render(all, func(p *terminal.Printer) {
		p.Row("queue", "activities/s", "of each key/s")
		for _, q := range all {
			p.Row(q.Queue, shownRate(q.Rate), shownRate(q.KeyRate))
		}
	})
}

func shownRate(r *runs.Rate) string {
	if r == nil {
		return "no limit"
	}
	return fmt.Sprintf("%g (%s, %s)", r.PerSecond, r.By, r.At.UTC().Format(time.RFC3339))
}
