package main

import (
	"context"

	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/internal/runs"
)

// diffRuns compares whole runs.
func diffRuns(ctx context.Context, con *console, names []string, asJSON bool) error {
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := compare.Read(ctx, record, names)
	if err != nil {
		return runs.Missing(err)
	}
	if asJSON {
		return con.printJSON(c)
	}
	return c.Write(con.out)
}
