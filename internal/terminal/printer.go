package terminal

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Printer writes lines of text and tables until one write fails. The caller closes it.
type Printer struct {
	w     io.Writer
	table *tabwriter.Writer // of the rows since the last line; nil without any
	err   error
}

// NewPrinter makes a printer to w.
func NewPrinter(w io.Writer) *Printer { return &Printer{w: w} }

// Line writes a line. It ends a table.
func (p *Printer) Line(format string, args ...any) {
	if p.Close() == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// Row writes cells in columns, each as wide as its widest cell in the table: the rows from one line to the next.
func (p *Printer) Row(cells ...any) {
	if p.table == nil {
		p.table = tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	}
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = fmt.Sprint(c)
	}
	fmt.Fprintln(p.table, strings.Join(texts, "\t"))
}

// Close ends the last table and returns the first error.
func (p *Printer) Close() error {
	if p.table != nil && p.err == nil {
		p.err = p.table.Flush()
	}
	p.table = nil
	return p.err
}
