package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
)

// badInput makes an error that the caller can mend; the command then exits with 2.
func badInput(format string, args ...any) error { return badinput.Errorf(format, args...) }

// console is where a command prints, and what it may ask there.
type console struct {
	out      io.Writer // results, as text or JSON
	data     io.Writer // results whose bytes count: CSV and files
	err      io.Writer // progress and messages
	verbose  bool
	terminal bool // standard error is a terminal: progress may redraw
	resident bool // standard output and input are a terminal: the stack may stay up
	asJSON   bool // --json
	logForm  string
	logLevel string
}

// What --json prints.
const (
	oneObject = "one JSON object"
	oneArray  = "one JSON array"
	atTheEnd  = oneObject + " at the end; progress goes to standard error"
)

// jsonFlag adds --json to a command that shows its result.
func (con *console) jsonFlag(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&con.asJSON, "json", false, "print "+what)
}

// setFlag adds --set.
func setFlag(f *pflag.FlagSet, set *[]string, when string) {
	f.StringArrayVar(set, "set", nil, when+"change a field of the recipe: `path=value` (repeatable)")
}

// show prints a result: as JSON if that is asked for, and else as the text that write writes.
func (con *console) show(result any, write func(io.Writer) error) error {
	if con.asJSON {
		return con.printJSON(result)
	}
	return write(con.out)
}

// render is show for a text of lines and tables.
func (con *console) render(result any, text func(*terminal.Printer)) error {
	return con.show(result, func(w io.Writer) error {
		p := terminal.NewPrinter(w)
		text(p)
		return p.Close()
	})
}

// connector opens connections to the servers, and prints what it does.
func (con *console) connector() runs.Connector {
	return runs.Connector{Messages: logs.Concealing(con.err), Confirm: con.agrees}
}

// printJSON prints one line of JSON.
func (con *console) printJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	_, err = fmt.Fprintf(con.out, "%s\n", text)
	return err
}

// agrees asks the user at the terminal; without a terminal the answer is no.
func (con *console) agrees(question string) bool {
	if !con.resident {
		return false
	}
	fmt.Fprintf(con.err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// readRecord opens the record for a command that only reads. The caller closes the session.
func readRecord(ctx context.Context, con *console) (*runs.Session, *analysis.Record, error) {
	s, err := con.connector().Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	record, err := openRecord(con, s)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, record, nil
}

// openRecord reads the session's store through the cache on the local disk. A run with missing heads is read with a
// warning.
func openRecord(con *console, s *runs.Session) (*analysis.Record, error) {
	files, err := analysis.OpenCache(cacheFolder())
	if err != nil {
		return nil, err
	}
	return analysis.New(s.Store).WithCache(files).WithGaps(warnOfGap(con)), nil
}

// warnOfGap prints each run's gap once, and lets reading go on.
func warnOfGap(con *console) func(*analysis.GapError) error {
	warned := map[string]bool{}
	return func(gap *analysis.GapError) error {
		if !warned[gap.Run] {
			warned[gap.Run] = true
			fmt.Fprintf(con.err, "warning: %v\n", gap)
		}
		return nil
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
