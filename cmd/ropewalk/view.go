package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

type viewOptions struct {
	address      string
	open, public bool
}

// viewAddress is where the page is served unless a flag says otherwise: always the same port, so that links last.
const viewAddress = workflows.ViewAddress

func viewCommand(con *console) *cobra.Command {
	o := viewOptions{}
	cmd := &cobra.Command{
		Use:   "view [RUN]",
		Short: "show runs in the browser: figures, all trajectories, tokens; live while a run goes on",
		Long: "view serves pages about runs until Ctrl-C: the report's figures after each step, all trajectories\n" +
			"with filters, sorting and SQL, and each trajectory turn by turn with its tokens coloured by\n" +
			"log-probability, entropy, ratio, advantage or mask, alone or next to the others of its group. Without\n" +
			"RUN it shows the list of runs, where several can be laid side by side, and how often each problem\n" +
			"was solved. The address of each page is a link that stays valid. The pages need the\n" +
			"token in the printed link, and are served to this machine alone. RUN is a run's name, or\n" +
			"s3://BUCKET/runs/run=NAME.",
		Example: "  ropewalk view\n" +
			"  ropewalk view quickstart-s1-20260102-030405\n" +
			"  ropewalk view quickstart-s1-20260102-030405 --address 127.0.0.1:0 --open\n" +
			"  ropewalk view s3://bucket/runs/run=quickstart-s1-20260102-030405",
		Args: orNone(exactly("RUN")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return viewRuns(cmd.Context(), con, strings.Join(args, ""), o)
		},
	}
	cmd.Flags().StringVar(&o.address, "address", viewAddress, "serve at this `HOST:PORT`; port 0 chooses a free one")
	cmd.Flags().BoolVar(&o.open, "open", false, "open the page in the browser")
	cmd.Flags().BoolVar(&o.public, "public", false, "accept an --address that other machines reach; the page and its "+
		"token then go over the network unencrypted")
	return cmd
}

// viewRuns serves the pages of a record. run is the one whose link it prints; "" for the list of runs.
func viewRuns(ctx context.Context, con *console, run string, o viewOptions) error {
	bucket, run, err := viewed(run)
	if err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(view.GCPercent))
	listener, err := listenTo(o)
	if err != nil {
		return err
	}
	defer listener.Close() // the server closes it first
	c := con.connector()
	s, err := c.ReadBucket(ctx, bucket)
	if err != nil {
		return err
	}
	defer s.Close()
	observe := func(ctx context.Context, named ...string) (analysis.Observed, error) {
		defer func() { c.Messages = io.Discard }() // a server that does not answer is reported once
		return c.Observe(ctx, s, named...)
	}
	record, err := openRecord(con, s)
	if err != nil {
		return err
	}
	options := view.Options{Record: record.WithGaps(nil), Messages: con.err, Observe: observe}
	if bucket == "" { // the runs of another bucket are not in this machine's Temporal
		options.Workflow = runs.WorkflowPage
	}
	home := view.NewHome(options)
	defer home.Close()
	if run != "" {
		if _, err := home.Viewer(ctx, run); err != nil {
			return runs.Missing(err)
		}
	}
	token, err := viewToken()
	if err != nil {
		return err
	}
	link := home.Link(listener.Addr(), run, token)
	fmt.Fprintln(con.out, link)
	fmt.Fprintln(con.err, "Ctrl-C ends it")
	if o.open {
		if err := openBrowser(link); err != nil {
			fmt.Fprintf(con.err, "no browser was opened: %v\n", err)
		}
	}
	return home.Serve(ctx, listener, token)
}

// viewed reads the argument: a run's name, or where its record lies.
func viewed(text string) (bucket, run string, err error) {
	run = text
	if rest, isS3 := strings.CutPrefix(text, "s3://"); isS3 {
		bucket, run, _ = strings.Cut(strings.TrimSuffix(rest, "/"), "/runs/run=")
		if bucket == "" || strings.Contains(bucket, "/") || run == "" {
			return "", "", badInput("%s: want s3://BUCKET/runs/run=NAME", text)
		}
	}
	if err := schema.CheckRunID(run); err != nil && run != "" {
		return "", "", badinput.Of(err)
	}
	return bucket, run, nil
}

// listenTo listens at the address that the flags give. If the usual port is taken, it takes a free one.
func listenTo(o viewOptions) (net.Listener, error) {
	host, _, err := net.SplitHostPort(o.address)
	if err != nil {
		return nil, badInput("--address: %q is not HOST:PORT", o.address)
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) && !o.public {
		return nil, badInput("--address: other machines may reach %s; add --public to serve the page to them",
			o.address)
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil && o.address == viewAddress {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, badInput("--address: %w", err)
	}
	return listener, nil
}

// viewToken returns the token of this user's links, which is drawn once, so that links and the browser's cookie last.
func viewToken() (string, error) {
	file := filepath.Join(stateFolder(), "view-token")
	text, err := os.ReadFile(file)
	if token := strings.TrimSpace(string(text)); err == nil && len(token) >= 32 {
		return token, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the token of links: %w", err)
	}
	token := view.NewToken()
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the token of links: %w", err)
	}
	return token, nil
}

// openBrowser opens a link in the user's browser.
func openBrowser(link string) error {
	program := map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS]
	if program == "" {
		program = "xdg-open"
	}
	return exec.Command(program, link).Start()
}
