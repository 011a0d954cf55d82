// Package bench is the harness that every measurement shares: the commands below it and cmd/gpu-check. It depends on no
// server, no object store and no database.
//
// Glossary. A *side* is one of the things that are compared; sides take turns (TakeTurns), so that other load on the
// machine affects each of them alike. A *peer* is a side in a process of its own, which answers lines of JSON (Peer). A
// *part* is a set of figures that are measured together; a part that cannot be measured here is *skipped*, which is not
// a failure (RunPart, Skip). A *program* is a command whose work is measured as a whole (Program). Results are JSON
// files (Write). Package work, below this one, holds the work that engines are measured with.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

// Main runs a benchmark until it ends or is interrupted, and exits with 1 if it fails.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench %s: %v\n", name, err)
		os.Exit(1)
	}
}

// Write writes a result as indented JSON into a file, whose folder it makes. A reader finds either the file that was
// there before or the whole new one.
func Write(file string, result any) error {
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	half := fmt.Sprintf("%s.%d", file, os.Getpid())
	defer os.Remove(half) // after the rename there is nothing to remove
	if err = os.WriteFile(half, append(text, '\n'), 0o644); err == nil {
		err = os.Rename(half, file)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
