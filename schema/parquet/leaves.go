package parquet

import (
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
)

// Leaf holds the properties in which a file's leaf column must agree with a table's.
type Leaf struct {
	Kind     string
	Nullable bool
}

// String says of which kind the column is.
func (c Leaf) String() string {
	if c.Nullable {
		return "nullable " + c.Kind
	}
	return "required " + c.Kind
}

// knownTables holds the leaf columns of the tables of this version by their *parquet.Schema, of which the library keeps
// one for each type of row. They are asked for with every file.
var knownTables sync.Map

// KnownLeaves is Leaves for a table of this version. The caller must not change it.
func KnownLeaves(s *parquet.Schema) map[string]Leaf {
	if found, ok := knownTables.Load(s); ok {
		return found.(map[string]Leaf)
	}
	found, _ := knownTables.LoadOrStore(s, Leaves(s))
	return found.(map[string]Leaf)
}

// Leaves returns the leaf columns of a file or a table, by their names with dots.
func Leaves(s *parquet.Schema) map[string]Leaf {
	out := map[string]Leaf{}
	for _, path := range s.Columns() {
		leaf, ok := s.Lookup(path...)
		if !ok {
			continue
		}
		// The leaf of a list is repeated; that the list may be null takes one more definition level, and so does that
		// its elements may.
		lists, levels := leaf.MaxRepetitionLevel, leaf.MaxDefinitionLevel
		if lists > 0 && leaf.Node.Optional() {
			levels--
		}
		out[strings.Join(path, ".")] = Leaf{
			Kind:     leaf.Node.Type().String() + strings.Repeat(" list", lists),
			Nullable: levels > lists,
		}
	}
	return out
}
