package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
)

type restoreOptions struct {
	within time.Duration
	dry    bool
}

func restoreCommand(con *console) *cobra.Command {
	o := restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore [RUN]",
		Short: "bring back objects of the record that were deleted, from a bucket with versioning",
		Long: "restore brings back objects that were deleted recently (--within): those of one run or of the whole\n" +
			"record, with the notes of runs' states and the audit log. If the newest version of an object is a\n" +
			"deletion, it restores the version before. Checkpoints that pruning deleted stay deleted. Versioning\n" +
			"must have been on when the objects were deleted (`ropewalk setup store --keep-deleted`), and the\n" +
			"credentials must allow deleting versions. Check the run afterwards with `ropewalk verify`.",
		Example: "  ropewalk restore --within 2h --dry-run\n" +
			"  ropewalk restore quickstart-s1-20260102-030405 --within 30m",
		Args: orNone(oneRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), con, strings.Join(args, ""))
		},
	}
	cmd.Flags().DurationVar(&o.within, "within", time.Hour, "restore what was deleted within this `DURATION`")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "list what would be restored, and restore nothing")
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func (o restoreOptions) run(ctx context.Context, con *console, run string) error {
	if o.within <= 0 {
		return badInput("--within: must be > 0, got %s", o.within)
	}
	s, err := con.connector().Join(ctx, runs.NeedStore)
	if err != nil {
		return err
	}
	defer s.Close()
	objects, ok := s.Store.(*s3.Store)
	if !ok {
		return badInput("%s keeps no versions", s.Store)
	}
	switch b, err := objects.Bucket(ctx); {
	case err != nil:
		return err
	case b.Versioning != s3.VersioningEnabled && b.Versioning != s3.VersioningSuspended:
		return badInput("%s has no versioning, so that what was deleted is lost; `ropewalk setup store --keep-deleted "+
			"30` turns it on for the future", s.Store)
	}
	prefixes := append(schema.RecordPrefixes(), schema.StatesPrefix, schema.DeedsPrefix)
	if run != "" {
		prefixes = []string{schema.RunPrefix(run), schema.CatalogueKey(run), schema.StatesPrefix + run + "/",
			schema.DeedsPrefix + run + "/"}
	}
	if !o.dry {
		of := cmp.Or(run, schema.NoRun)
		if err := s.Note(ctx, of, "restore", map[string]any{"within": o.within.String()}); err != nil {
			return err
		}
	}
	since := time.Now().Add(-o.within)
	restored := []string{}
	for _, prefix := range prefixes {
		deleted, err := objects.Deleted(ctx, prefix, since)
		if err != nil {
			return err
		}
		coming := map[string]bool{} // keys that come back
		for _, d := range deleted {
			coming[d.Key] = true
		}
		for _, d := range deleted {
			switch gone, err := pruned(ctx, objects, d.Key, coming); {
			case err != nil:
				return err
			case gone:
				continue
			}
			if !o.dry {
				if err := objects.Restore(ctx, d); err != nil {
					return fmt.Errorf("%w; %d objects were restored before", err, len(restored))
				}
			}
			restored = append(restored, d.Key)
		}
	}
	return o.print(con, restored)
}

func (o restoreOptions) print(con *console, restored []string) error {
	if con.asJSON {
		return con.printJSON(map[string]any{"dry_run": o.dry, "restored": restored})
	}
	for _, key := range restored {
		fmt.Fprintln(con.out, key)
	}
	what := "restored"
	if o.dry {
		what = "to restore"
	}
	_, err := fmt.Fprintf(con.err, "%d objects %s\n", len(restored), what)
	return err
}

// pruned reports whether a key is a file of a checkpoint that pruning has deleted. The note that says so may be one of
// the objects that come back.
func pruned(ctx context.Context, objects store.Store, key string, coming map[string]bool) (bool, error) {
	folder, _, ok := strings.Cut(key, "/checkpoints/")
	if !ok {
		return false, nil
	}
	version, file, _ := strings.Cut(key[len(folder)+len("/checkpoints/"):], "/")
	if file == schema.PrunedFile {
		return false, nil
	}
	note := folder + "/checkpoints/" + version + "/" + schema.PrunedFile
	if coming[note] {
		return true, nil
	}
	_, err := objects.Get(ctx, note)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
