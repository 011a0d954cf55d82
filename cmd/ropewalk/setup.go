package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/setup"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/store/s3"
)

// setupWithin bounds one set-up; servers show some changes only after seconds.
const setupWithin = 2 * time.Minute

type setupOptions struct {
	dry         bool
	keepDeleted int // days; of the store
	lock        int // days; of the store
	policy      string
}

func (o *setupOptions) add(con *console, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "change nothing; exit with 1 if something is missing")
	con.jsonFlag(cmd, oneObject)
}

func setupCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "prepare your own Temporal or store",
		Long: "setup compares a server with what is needed, prints the difference and creates what is missing. It\n" +
			"never lowers, replaces or deletes what is there. The local stack needs none of this.",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(setupTemporalCommand(con), setupStoreCommand(con))
	return cmd
}

func setupTemporalCommand(con *console) *cobra.Command {
	o := setupOptions{}
	cmd := &cobra.Command{
		Use:   "temporal",
		Short: "create the namespace and its search attributes, raise its retention",
		Long: "temporal compares the server that TEMPORAL_ADDRESS or temporal.toml names with temporal.yaml: the\n" +
			"namespace (that of temporal.yaml unless TEMPORAL_NAMESPACE names another), its retention and its\n" +
			"search attributes, and which queues workers poll. It creates what is missing and raises a shorter\n" +
			"retention. TLS, client certificates and API keys come from the same configuration. It exits with 1 if\n" +
			"a search attribute has another type.",
		Example: "  TEMPORAL_ADDRESS=temporal.example.org:7233 ropewalk setup temporal --dry-run\n" +
			"  ropewalk setup temporal --json",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.temporal(cmd.Context(), con) },
	}
	o.add(con, cmd)
	return cmd
}

func setupStoreCommand(con *console) *cobra.Command {
	o := setupOptions{}
	cmd := &cobra.Command{
		Use:   "store",
		Short: "create the bucket, try conditional puts, set lifecycle rules",
		Long: "store looks at the bucket that ROPEWALK_S3_BUCKET and the AWS_* variables name. It creates the\n" +
			"bucket, checks that exactly one of several conditional puts wins, and, if the server has lifecycle\n" +
			"rules, ends unfinished uploads after 7 days. With --keep-deleted it turns versioning on, so that\n" +
			"deleted and replaced objects can be restored for that many days. With --lock no one can delete a\n" +
			"version within that many days. It exits with 1 if conditional puts are not honoured, or if a lifecycle\n" +
			"rule deletes current objects, and so the record.",
		Example: "  ropewalk setup store --dry-run\n  ropewalk setup store --keep-deleted 30\n" +
			"  deploy/roles/bucket-policy.py worker=KEY reader=KEY >policy.json\n" +
			"  ropewalk setup store --policy policy.json",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.store(cmd.Context(), con) },
	}
	o.add(con, cmd)
	cmd.Flags().IntVar(&o.keepDeleted, "keep-deleted", 0, "days for which the bucket keeps what is deleted or "+
		"replaced; 0: versioning is left as it is")
	cmd.Flags().IntVar(&o.lock, "lock", 0, "days for which no one may delete a version (object lock, mode "+
		"GOVERNANCE); turns versioning on; 0: locks are left as they are")
	cmd.Flags().StringVar(&o.policy, "policy", "", "file of the bucket policy that says who may do what "+
		"(deploy/roles); an existing policy is not replaced")
	return cmd
}

func (o setupOptions) temporal(ctx context.Context, con *console) error {
	ctx, cancel := context.WithTimeout(ctx, setupWithin)
	defer cancel()
	conf, err := temporalconf.Load("")
	if err != nil {
		return badinput.Of(err)
	}
	options, err := temporalOptions(conf)
	if err != nil {
		return err
	}
	options.Logger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return stack.Unanswered(ctx, options.HostPort, err)
	}
	defer c.Close()
	compare := func() (setup.Findings, error) {
		have, err := stack.InspectTemporal(ctx, c, options, conf)
		if err != nil {
			return nil, err
		}
		return setup.OfTemporal(conf, options.Namespace, have), nil
	}
	return o.carryOut(con, "Temporal at "+options.HostPort, compare, compare,
		func() error { return stack.PrepareTemporal(ctx, c, options, conf) })
}

func (o setupOptions) store(ctx context.Context, con *console) error {
	ctx, cancel := context.WithTimeout(ctx, setupWithin)
	defer cancel()
	if o.keepDeleted < 0 {
		return badInput("--keep-deleted is %d, it must be at least 0", o.keepDeleted)
	}
	if o.lock < 0 {
		return badInput("--lock is %d, it must be at least 0", o.lock)
	}
	options, err := s3.FromEnv()
	if err != nil {
		return badinput.Of(err)
	}
	objects, err := s3.New(options)
	if err != nil {
		return badinput.Of(err)
	}
	want := setup.StoreOptions{KeepDeleted: o.keepDeleted, LockDays: o.lock}
	if o.policy != "" {
		text, err := os.ReadFile(o.policy)
		if err != nil {
			return badInput("--policy: %w", err)
		}
		if !json.Valid(text) {
			return badInput("--policy %s: is not JSON", o.policy)
		}
		want.Policy = string(text)
	}
	before := func() (setup.Findings, error) { return setup.OfStore(ctx, objects, want) }
	after := func() (setup.Findings, error) {
		want.Probe = true
		return setup.OfStore(ctx, objects, want)
	}
	return o.carryOut(con, objects.String(), before, after,
		func() error { return setup.CreateStore(ctx, objects, want) })
}

// setupResult is what --json prints: the comparison before anything was changed, and the one after.
type setupResult struct {
	Server string         `json:"server"`
	Before setup.Findings `json:"before"`
	After  setup.Findings `json:"after,omitempty"` // null with --dry-run
	Ready  bool           `json:"ready"`
}

// carryOut compares, creates what is missing, and compares again, so that what it prints has been read back.
func (o setupOptions) carryOut(con *console, server string, before, after func() (setup.Findings, error),
	create func() error) (err error) {
	r := setupResult{Server: server}
	if r.Before, err = before(); err != nil {
		return err
	}
	now := r.Before
	if !o.dry {
		if r.Before.Has(setup.Missing) && !r.Before.Has(setup.Conflict) {
			if err := create(); err != nil {
				return err
			}
		}
		if r.After, err = after(); err != nil {
			return err
		}
		now = r.After
	}
	r.Ready = !now.Has(setup.Missing, setup.Conflict)
	err = con.render(r, r.print)
	if err == nil && !r.Ready {
		return fmt.Errorf("%s is not ready: see above", server)
	}
	return err
}

func (r setupResult) print(p *terminal.Printer) {
	now := r.After
	if now == nil {
		now = r.Before
	}
	p.Line("%s", r.Server)
	p.Row("what", "needed", "found", "state")
	missing := map[string]bool{}
	for _, f := range r.Before {
		missing[f.What] = f.State == setup.Missing
	}
	for _, f := range now {
		state := string(f.State)
		if r.After != nil && f.State == setup.OK && missing[f.What] {
			state = "created"
		}
		if f.Advice != "" {
			state += ": " + f.Advice
		}
		p.Row(f.What, f.Need, f.Have, state)
	}
}
