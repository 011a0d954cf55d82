package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/activities/replay"
	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/workflows"
)

// checkReplay makes the pure stages again in this process: it starts no server and writes nothing.
func checkReplay(ctx context.Context, con *console, run string) error {
	s, reader, err := openReader(ctx, con, run)
	if err != nil {
		return err
	}
	defer s.Close()
	line := newProgressLine(con)
	plan, checked, err := reader.CheckRun(ctx, run, func(done, total int) {
		line.show("%d of %d steps checked", done, total)
	})
	line.clear()
	if err != nil {
		return runs.Failure(err)
	}
	state := workflows.CheckState{Steps: plan.Steps, Code: plan.Code}
	for _, step := range checked {
		state.Add(step)
	}
	report, err := runs.CheckedShards(ctx, s.Store, state, run)
	if err != nil {
		return err
	}
	err = con.render(report, func(p *terminal.Printer) { printCheck(p, report) })
	if err == nil && report.Differs > 0 {
		return silentError{exitFailed}
	}
	return err
}

// openReader opens the record of a run, and what reads it for a replay. The caller closes the session.
func openReader(ctx context.Context, con *console, run string) (_ *runs.Session, _ replay.Reader, err error) {
	s, err := con.connector().Read(ctx)
	if err != nil {
		return nil, replay.Reader{}, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if _, err := analysis.New(s.Store).Prepared(ctx, run); err != nil {
		return nil, replay.Reader{}, runs.Missing(err)
	}
	code, err := codeDigest()
	if err != nil {
		return nil, replay.Reader{}, err
	}
	reader, err := replay.NewReader(s.Store, code)
	return s, reader, err
}

func printCheck(p *terminal.Printer, r runs.ReplayCheck) {
	p.Line("  step  stage      shard  digest            made again")
	for _, s := range r.Shards {
		shard, outcome := "all", "same"
		if s.Shard >= 0 {
			shard = fmt.Sprint(s.Shard)
		}
		if !s.Same {
			outcome = "differs: " + cmp.Or(s.Now, "nothing")
		}
		p.Line("%6d  %-9s  %5s  %s  %s", s.Step, s.Stage, shard, shortDigest(s.Digest), outcome)
	}
	if len(r.RunCode) > 0 {
		p.Line("checked by another program (%s) than the run was made by (%s)", shortDigest(r.Code),
			strings.Join(shortDigests(r.RunCode), ", "))
	}
	p.Line("run %s: %d shards made again, %d differ; nothing was committed", r.Run, r.Checked, r.Differs)
}

func shortDigests(digests []string) []string {
	out := make([]string, len(digests))
	for i, d := range digests {
		out[i] = shortDigest(d)
	}
	return out
}
