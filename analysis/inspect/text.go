package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/ropewalk/ropewalk/schema"
)

// longest is how many characters of a value the text shows; JSON has all of them.
const longest = 120

// WriteText prints the file's contents as text.
func (f File) WriteText(w io.Writer) error {
	p := &printer{w: w}
	p.line("file     %s", f.Name)
	p.line("kind     %s", f.Kind)
	p.line("bytes    %d", f.Bytes)
	p.line("digest   %s", f.Digest)
	switch {
	case f.Shard != nil:
		p.shard(*f.Shard)
	case f.Manifest != nil:
		p.manifest(*f.Manifest)
	case f.Head != nil:
		p.head(*f.Head)
	case f.Tensors != nil:
		p.tensors(*f.Tensors)
	case f.List != nil:
		p.line("items    %d", f.List.Items)
		for _, item := range f.List.First {
			p.document(item)
		}
	default:
		p.document(f.Document)
	}
	return p.err
}

// printer writes lines until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table prints rows in aligned columns.
func (p *printer) table(rows [][]string) {
	if p.err != nil {
		return
	}
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	p.err = t.Flush()
}

func (p *printer) shard(d schema.Description) {
	p.line("format   %s, table %s, schema version %d%s", d.Format, d.Table, d.SchemaVersion, writer(d.Writer))
	p.line("rows     %d in %d groups", d.Rows, len(d.Groups))
	for i, g := range d.Groups {
		p.line("  group %d: %d rows, %d bytes uncompressed", i, g.Rows, g.Bytes)
	}
	p.line("")
	rows := [][]string{{"column", "type", "null", "values", "nulls", "bytes", "of", "encodings", "min", "max"}}
	for _, c := range d.Columns {
		stored, null := "–", "no"
		if c.Compressed > 0 {
			stored = fmt.Sprint(c.Compressed)
		}
		if c.Nullable {
			null = "yes"
		}
		encodings := strings.TrimSpace(c.Compression + " " + strings.Join(c.Encodings, " "))
		if c.Bloom {
			encodings += " bloom"
		}
		rows = append(rows, []string{c.Name, c.Type, null, fmt.Sprint(c.Values), fmt.Sprint(c.Nulls), stored,
			fmt.Sprint(c.Uncompressed), orDash(encodings), bound(c.Min), bound(c.Max)})
	}
	p.table(rows)
	for i, row := range d.First {
		p.line("\nrow %d", i)
		for _, f := range row {
			p.line("  %-24s %s", f.Name, value(f.Value))
		}
	}
}

func writer(name string) string {
	if name == "" {
		return ""
	}
	return ", written by " + printable(name)
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// widestBound is how many characters of a smallest or largest value the table shows.
const widestBound = 24

func bound(s *string) string {
	if s == nil {
		return "–"
	}
	return cut(printable(*s), widestBound)
}

// value writes a value as JSON, which quotes texts, on one line.
func value(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return cut(printable(strings.TrimSpace(b.String())), longest)
}

func cut(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// printable replaces control characters, so that a file's contents cannot control a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '�'
		}
		return r
	}, s)
}

func (p *printer) manifest(m schema.Manifest) {
	p.line("place    %s", m.Place)
	p.line("code     %s", m.Code)
	p.line("config   %s", m.Config)
	p.line("version  %d, of the schema %d", m.Version, m.SchemaVersion)
	p.refs("input", m.Inputs)
	p.refs("part", m.Parts)
	for _, s := range m.Shards {
		p.line("shard    %s  %d rows, %d bytes, digest %s", s.Key, s.Rows, s.Bytes, s.Digest)
	}
	for _, c := range m.Checkpoints() {
		what := "checkpoint"
		if c == m.Critic {
			what = "critic"
		}
		p.line("%s %s  digest %s", what, c.Prefix, c.Digest)
		if c.Weights != "" {
			p.line("  weights %s", c.Weights)
		}
		for _, f := range c.Files {
			p.line("  %-24s %d bytes, digest %s", f.Name, f.Bytes, f.Digest)
		}
	}
	p.line("stats    %s", value(m.Stats))
	p.line("note     %s", value(m.Note))
}

func (p *printer) refs(what string, refs []schema.Ref) {
	for _, r := range refs {
		p.line("%-8s %s  digest %s", what, printable(r.Key), r.Digest)
	}
}

func (p *printer) head(h schema.Head) {
	p.line("run      %s, step %s", h.Run, h.Step)
	rows := [][]string{{"stage", "generation", "manifest", "digest"}}
	for _, stage := range sortedStages(h) {
		for _, r := range h.Stages[stage] {
			rows = append(rows, []string{stage, fmt.Sprint(h.Generations[stage]), printable(r.Key), r.Digest})
		}
	}
	p.table(rows)
}

func (p *printer) tensors(t Tensors) {
	p.line("numbers  %d in %d tensors", t.Numbers, len(t.Tensors))
	if len(t.Metadata) > 0 {
		p.line("metadata %s", value(t.Metadata))
	}
	p.line("")
	rows := [][]string{{"tensor", "dtype", "shape", "bytes", "min", "max", "not finite"}}
	for _, x := range t.Tensors {
		rows = append(rows, []string{printable(x.Name), x.Dtype, shape(x.Shape), fmt.Sprint(x.Bytes), number(x.Min),
			number(x.Max), fmt.Sprint(x.Odd)})
	}
	p.table(rows)
}

func shape(dims []int) string {
	words := make([]string, len(dims))
	for i, d := range dims {
		words[i] = fmt.Sprint(d)
	}
	return "[" + strings.Join(words, " × ") + "]"
}

func number(x *float32) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.4g", *x)
}

// document prints JSON indented.
func (p *printer) document(raw json.RawMessage) {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		p.err = err
		return
	}
	p.line("")
	for l := range strings.SplitSeq(strings.TrimSpace(b.String()), "\n") {
		p.line("%s", printable(l))
	}
}

func sortedStages(h schema.Head) []string { return slices.Sorted(maps.Keys(h.Stages)) }
