package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// node is a column of a Parquet file, or what it consists of. A file stores only the leaves of nested columns. Each
// value of a leaf has two levels: the definition level says how many of its optional and repeated parents are there,
// and the repetition level which list it continues.
type node struct {
	name               string
	optional, repeated bool
	leaf               int // number of the first leaf
	children           []*node
	// whole means that the node is the only child of a list, or the item of one, and adds nothing to its child.
	whole bool
	text  func(parquet.Value) (string, error) // of a leaf
	plain bool                                // the text is a JSON value
	bad   error                               // why a leaf's values cannot be read
}

// listNames are the names that writers give to the repeated child of a list.
var listNames = []string{"list", "array", "bag"}

// nodeOf reads a schema. leaf counts the leaves before the node.
func nodeOf(f parquet.Field, leaf *int) *node {
	n := &node{name: f.Name(), optional: f.Optional(), repeated: f.Repeated(), leaf: *leaf}
	if f.Leaf() {
		*leaf++
		n.text, n.bad = reading(f.Type())
		meaning := f.Type().LogicalType()
		n.plain = slices.Contains([]parquet.Kind{parquet.Boolean, parquet.Int32, parquet.Int64, parquet.Float,
			parquet.Double}, f.Type().Kind()) && (meaning == nil || !timed(meaning.Value))
		return n
	}
	for _, child := range f.Fields() {
		n.children = append(n.children, nodeOf(child, leaf))
	}
	if len(n.children) == 1 && !n.repeated {
		list := n.children[0]
		if n.whole = list.repeated && slices.Contains(listNames, list.name); n.whole {
			list.whole = len(list.children) == 1
		}
	}
	return n
}

// errLevels is the error for values whose levels do not fit the schema.
var errLevels = errors.New("has levels that do not fit the file's schema")

// read returns the value of a column in a row, whose leaves have these values.
func (n *node) read(leaves [][]parquet.Value) any {
	if len(n.children) > 0 || n.repeated {
		last := n
		for len(last.children) > 0 {
			last = last.children[len(last.children)-1]
		}
		in := slices.Clone(leaves[:last.leaf+1])
		out, err := n.append(nil, in, 0, 0)
		switch {
		case err != nil:
			return fmt.Errorf("%s %w", n.name, err)
		case string(out) == "null":
			return nil
		}
		return json.RawMessage(out)
	}
	of := leaves[n.leaf]
	if len(of) == 0 || of[0].IsNull() {
		return nil
	}
	if n.bad != nil {
		return fmt.Errorf("%s holds %w", n.name, n.bad)
	}
	text, err := n.text(of[0])
	if err != nil {
		return fmt.Errorf("%s %w", n.name, err)
	}
	return text
}

// append appends the next value of the node as JSON. repetition and definition are the levels of its parent.
func (n *node) append(to []byte, in [][]parquet.Value, repetition, definition int) ([]byte, error) {
	if !n.optional && !n.repeated {
		return n.value(to, in, repetition, definition)
	}
	definition++
	if len(in[n.leaf]) == 0 {
		return nil, errLevels
	}
	there := in[n.leaf][0].DefinitionLevel() >= definition
	if !there {
		n.skip(in)
	}
	switch {
	case !n.repeated && there:
		return n.value(to, in, repetition, definition)
	case !n.repeated:
		return append(to, "null"...), nil
	case !there:
		return append(to, "[]"...), nil
	}
	repetition++
	for first := true; ; first = false {
		to = append(to, map[bool]byte{true: '[', false: ','}[first])
		var err error
		if to, err = n.value(to, in, repetition, definition); err != nil {
			return nil, err
		}
		if len(in[n.leaf]) == 0 || in[n.leaf][0].RepetitionLevel() < repetition {
			return append(to, ']'), nil
		}
	}
}

// skip takes the one value by which each leaf says that the node is not there.
func (n *node) skip(in [][]parquet.Value) {
	if len(n.children) == 0 && len(in[n.leaf]) > 0 {
		in[n.leaf] = in[n.leaf][1:]
	}
	for _, child := range n.children {
		child.skip(in)
	}
}

func (n *node) value(to []byte, in [][]parquet.Value, repetition, definition int) (_ []byte, err error) {
	switch {
	case len(n.children) == 0:
		return n.appendLeaf(to, in)
	case n.whole:
		return n.children[0].append(to, in, repetition, definition)
	}
	for i, child := range n.children {
		to = append(to, map[bool]byte{true: '{', false: ','}[i == 0])
		to = append(quoted(to, child.name), ':')
		if to, err = child.append(to, in, repetition, definition); err != nil {
			return nil, err
		}
	}
	return append(to, '}'), nil
}

func (n *node) appendLeaf(to []byte, in [][]parquet.Value) ([]byte, error) {
	switch {
	case n.bad != nil:
		return nil, fmt.Errorf("holds %w in %s", n.bad, n.name)
	case len(in[n.leaf]) == 0:
		return nil, errLevels
	}
	text, err := n.text(in[n.leaf][0])
	in[n.leaf] = in[n.leaf][1:]
	switch {
	case err != nil:
		return nil, err
	case n.plain:
		return append(to, text...), nil
	case !utf8.ValidString(text):
		return nil, fmt.Errorf("holds a text that is not UTF-8 in %s", n.name)
	}
	return quoted(to, text), nil
}

// quoted appends a text as JSON.
func quoted(to []byte, text string) []byte {
	out, _ := json.Marshal(text) // of a text: no error
	return append(to, out...)
}

// Size is how many bytes a value holds.
func Size(value any) int64 {
	switch v := value.(type) {
	case string:
		return int64(len(v))
	case json.RawMessage:
		return int64(len(v))
	}
	return 0
}
