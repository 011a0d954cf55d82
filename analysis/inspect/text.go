package inspect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

// longest is how many characters of a value the text shows; JSON has all of them.
const longest = 120

// WriteText prints the file's contents as text.
func (f File) WriteText(w io.Writer) error {
	p := terminal.NewPrinter(w)
	p.Line("file     %s", f.Name)
	p.Line("kind     %s", f.Kind)
	p.Line("bytes    %d", f.Bytes)
	p.Line("digest   %s", f.Digest)
	switch {
	case f.Shard != nil:
		printShard(p, *f.Shard)
	case f.Tensors != nil:
		printTensors(p, *f.Tensors)
	case f.List != nil:
		p.Line("items    %d", f.List.Items)
		for _, item := range f.List.First {
			printDocument(p, item)
		}
	default:
		printDocument(p, f.text)
	}
	return p.Close()
}

func printShard(p *terminal.Printer, d schema.Description) {
	p.Line("format   %s, table %s, schema version %d%s", d.Format, d.Table, d.SchemaVersion, writer(d.Writer))
	p.Line("rows     %d in %d groups", d.Rows, len(d.Groups))
	for i, g := range d.Groups {
		p.Line("  group %d: %d rows, %d bytes uncompressed", i, g.Rows, g.Bytes)
	}
	p.Line("")
	p.Row("column", "type", "null", "values", "nulls", "bytes", "of", "encodings", "min", "max")
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
		p.Row(c.Name, c.Type, null, c.Values, c.Nulls, stored, c.Uncompressed, cmp.Or(encodings, "–"), bound(c.Min),
			bound(c.Max))
	}
	for i, row := range d.First {
		p.Line("\nrow %d", i)
		for _, f := range row {
			p.Line("  %-24s %s", f.Name, value(f.Value))
		}
	}
}

func writer(name string) string {
	if name == "" {
		return ""
	}
	return ", written by " + terminal.Line(name)
}

// widestBound is how many characters of a smallest or largest value the table shows.
const widestBound = 24

func bound(s *string) string {
	if s == nil {
		return "–"
	}
	return cut(terminal.Line(*s), widestBound)
}

// value writes a value as JSON, which quotes texts, on one line.
func value(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return cut(terminal.Line(strings.TrimSpace(b.String())), longest)
}

func cut(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

func printTensors(p *terminal.Printer, t Tensors) {
	p.Line("numbers  %d in %d tensors", t.Numbers, len(t.Tensors))
	if len(t.Metadata) > 0 {
		p.Line("metadata %s", value(t.Metadata))
	}
	p.Line("")
	p.Row("tensor", "dtype", "shape", "bytes", "min", "max", "not finite")
	for _, x := range t.Tensors {
		p.Row(terminal.Line(x.Name), x.Dtype, shape(x.Shape), x.Bytes, number(x.Min), number(x.Max), x.Odd)
	}
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
func printDocument(p *terminal.Printer, raw json.RawMessage) {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		p.Line("%s", terminal.Line(string(raw))) // it has been parsed before
		return
	}
	p.Line("")
	for l := range strings.SplitSeq(strings.TrimSpace(b.String()), "\n") {
		p.Line("%s", terminal.Line(l))
	}
}
