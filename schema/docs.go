package schema

import (
	"reflect"
	"strconv"
	"strings"
)

// TableDoc describes a table for people who write a reader.
type TableDoc struct {
	Table   Table       `json:"table"`
	Format  string      `json:"format"` // parquet | arrow
	Doc     string      `json:"doc"`
	Since   int         `json:"since"`   // the minor version that added it
	Version int         `json:"version"` // the minor version in its shards' metadata
	Columns []ColumnDoc `json:"columns"`
}

// ColumnDoc describes a column.
type ColumnDoc struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // Arrow's name
	Nullable bool   `json:"nullable"`
	Unit     string `json:"unit,omitempty"`
	Since    int    `json:"since"` // the minor version that added it
	Doc      string `json:"doc"`
}

// TableDocs describes every table of rows.
func TableDocs() []TableDoc {
	out := make([]TableDoc, len(tables))
	for i, t := range tables {
		d := t.about()
		out[i] = TableDoc{Table: d.table, Format: d.table.Ext(), Doc: d.doc, Since: d.since,
			Version: versionOf(d.table), Columns: Columns(d.table)}
	}
	return out
}

// Columns describes the columns of a table of rows, in their order in its shards; nil for any other table.
func Columns(table Table) []ColumnDoc {
	row := rowOf(table)
	if row == nil {
		return nil
	}
	out := make([]ColumnDoc, row.NumField())
	for i := range out {
		out[i] = columnDoc(row.Field(i), describedAs(table).since)
	}
	return out
}

// arrowNames are Arrow's names of the types of fields.
var arrowNames = map[string]string{
	"string": "string", "bool": "bool", "int32": "int32", "int64": "int64", "float64": "double",
	"[]int32": "list<int32>", "[]float32": "list<float>",
}

func columnDoc(f reflect.StructField, since int) ColumnDoc {
	out := ColumnDoc{
		Name: fieldName(f), Type: arrowNames[strings.TrimPrefix(f.Type.String(), "*")], Nullable: nullable(f),
		Unit: f.Tag.Get("unit"), Since: since, Doc: f.Tag.Get("doc"),
	}
	if f.Tag.Get("holes") != "" {
		out.Type = "list<float?>"
	}
	if n, err := strconv.Atoi(f.Tag.Get("since")); err == nil {
		out.Since = max(since, n)
	}
	return out
}

func nullable(f reflect.StructField) bool {
	tag, ok := f.Tag.Lookup("parquet")
	if !ok {
		return batchSchema().Field(f.Index[0]).Nullable
	}
	_, options, _ := strings.Cut(tag, ",")
	return strings.Contains(","+options+",", ",optional,")
}
