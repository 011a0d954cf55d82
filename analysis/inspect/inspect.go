package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/schema"
)

// ErrDamaged marks errors about damaged files.
var ErrDamaged = errors.New("file is damaged")

// ErrUnknown marks errors about files of a kind that the record does not have.
var ErrUnknown = errors.New("not a file of the record")

// The kinds of files.
const (
	KindShard    = "shard"
	KindManifest = "manifest"
	KindHead     = "head"
	KindDocument = "document" // any other JSON object
	KindList     = "list"     // a JSON list or JSON lines, such as an uploaded file
	KindTensors  = "tensors"
)

// File describes a file's contents; one of the fields after Digest is set.
type File struct {
	Name     string              `json:"name"`
	Kind     string              `json:"kind"`
	Bytes    int64               `json:"bytes"`
	Digest   string              `json:"digest"`
	Shard    *schema.Description `json:"shard,omitempty"`
	Manifest *schema.Manifest    `json:"manifest,omitempty"`
	Head     *schema.Head        `json:"head,omitempty"`
	Document json.RawMessage     `json:"document,omitempty"`
	List     *List               `json:"list,omitempty"`
	Tensors  *Tensors            `json:"tensors,omitempty"`

	text json.RawMessage // of a JSON object
}

// Inspect reads a file of the record; name is its path or key. For a shard it decodes that many first rows.
func Inspect(name string, data []byte, rows int) (File, error) {
	f := File{Name: name, Bytes: int64(len(data)), Digest: schema.Digest(data)}
	if err := f.checkName(data); err != nil {
		return f, err
	}
	var err error
	switch kindOf(name, data) {
	case "parquet", "arrow":
		err = f.readShard(data, rows)
	case "json":
		err = f.readJSON(data, rows)
	case "safetensors":
		f.Kind = KindTensors
		f.Tensors, err = readTensors(data)
	default:
		if fault := badinput.Compressed(data); fault != "" {
			return f, fmt.Errorf("%s: %w: it %s", name, ErrUnknown, fault)
		}
		return f, fmt.Errorf("%s: %w: neither its name nor its first bytes indicate Parquet, Arrow, JSON or "+
			"safetensors", name, ErrUnknown)
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w: %w", name, ErrDamaged, err)
	}
	return f, nil
}

// checkName compares the bytes with the digest in a shard's name.
func (f File) checkName(data []byte) error {
	parts, err := schema.ParseDataKey(strings.TrimPrefix(f.Name, "/"))
	if err != nil || strings.HasPrefix(f.Digest, parts.Digest16) {
		return nil
	}
	return fmt.Errorf("%s: %w: its %d bytes have the digest %s, but its name says %s…", f.Name, ErrDamaged, len(data),
		f.Digest, parts.Digest16)
}

// kindOf returns the format that the name, or else the first bytes, indicate.
func kindOf(name string, data []byte) string {
	if badinput.Compressed(data) != "" {
		return ""
	}
	switch ext := strings.TrimPrefix(path.Ext(name), "."); ext {
	case "parquet", "arrow", "json", "safetensors":
		return ext
	case "jsonl":
		return "json"
	case "state": // training state: a safetensors file whose name differs from that of weights
		return "safetensors"
	}
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	switch {
	case bytes.HasPrefix(data, []byte("PAR1")):
		return "parquet"
	case bytes.HasPrefix(data, []byte("ARROW1")):
		return "arrow"
	case bytes.HasPrefix(trimmed, []byte("{")), bytes.HasPrefix(trimmed, []byte("[")):
		return "json"
	case len(data) > 8 && data[8] == '{':
		return "safetensors"
	}
	return ""
}

func (f *File) readShard(data []byte, rows int) error {
	d, err := schema.Describe(data, rows)
	if err != nil {
		return err
	}
	f.Kind, f.Shard = KindShard, &d
	return nil
}

func (f *File) readJSON(data []byte, rows int) error {
	if !strings.Contains(f.Name, "/manifests/") && !strings.Contains(f.Name, "/heads/") {
		list, err := readList(data, rows)
		if err != nil || list != nil {
			f.Kind, f.List = KindList, list
			return err
		}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("is neither a JSON object nor a list: %w", err)
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if fields[n] == nil {
				return false
			}
		}
		return true
	}
	f.text = data
	switch {
	case has("stage", "shards", "inputs") || strings.Contains(f.Name, "/manifests/"):
		m, err := schema.DecodeManifest(data)
		f.Kind, f.Manifest = KindManifest, &m
		return err
	case has("generations", "stages") || strings.Contains(f.Name, "/heads/"):
		h, err := schema.DecodeHead(data)
		f.Kind, f.Head = KindHead, &h
		return err
	}
	f.Kind, f.Document = KindDocument, data
	return nil
}

// Tensors describes the tensors of a safetensors file.
type Tensors struct {
	Metadata map[string]string `json:"metadata"`
	Numbers  int64             `json:"numbers"` // over all tensors
	Tensors  []Tensor          `json:"tensors"`
}

// Tensor is one tensor with its smallest and largest value; null for an empty one.
type Tensor struct {
	Name  string   `json:"name"`
	Dtype string   `json:"dtype"`
	Shape []int    `json:"shape"`
	Bytes int64    `json:"bytes"`
	Min   *float32 `json:"min"`
	Max   *float32 `json:"max"`
	Odd   int64    `json:"not_finite"` // NaN and infinities, which the extremes ignore
}

func readTensors(data []byte) (*Tensors, error) {
	layout, metadata, err := checkpoint.Layout(data)
	if err != nil {
		return nil, err
	}
	decoded, err := checkpoint.DecodeSafetensors(data)
	if err != nil {
		return nil, err
	}
	out := &Tensors{Metadata: metadata}
	for i, l := range layout {
		t := Tensor{Name: l.Name, Dtype: l.Dtype, Shape: l.Dims, Bytes: l.Bytes}
		for _, x := range decoded.Tensors[i].Data {
			t.add(x)
		}
		out.Numbers += int64(len(decoded.Tensors[i].Data))
		out.Tensors = append(out.Tensors, t)
	}
	return out, nil
}

func (t *Tensor) add(x float32) {
	if x-x != 0 { // NaN or infinite
		t.Odd++
		return
	}
	if t.Min == nil || x < *t.Min {
		t.Min = &x
	}
	if t.Max == nil || x > *t.Max {
		t.Max = &x
	}
}

// WriteJSON writes the file's content as one JSON object.
func (f File) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(f)
}
