package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/parquet-go/parquet-go"
)

// Rows are read column by column: a page's values are decoded together, and then each is put into its row's field.
// Reading row by row boxes every value and takes three to five times as long.

// cell is what a field of a row holds, apart from null and lists.
type cell interface {
	bool | int32 | int64 | float32 | float64 | string
}

// Field is one field of a row type, which is one leaf column of its files.
type Field struct {
	Name     string // of the leaf column, with dots
	offset   uintptr
	size     int  // of the field itself
	element  int  // size of a list's element; 0 if it is not a list
	text     bool // string or *string
	optional bool // a pointer
	read     reading
	holes    Holes
}

// Holes says which elements of a list are null in a file, and 0 in a row: the tag holes names the column that tells.
// Context tokens have no log-probability, and 0 would be one.
type Holes struct {
	Any  bool
	list bool // the column is a mask, whose 0 is a hole; otherwise it is the number of the first elements that are
	from int  // bytes from the list's field to the column's
}

// HolesOf returns the holes of a field of a row type.
func HolesOf(row reflect.Type, f reflect.StructField) Holes {
	name := f.Tag.Get("holes")
	for i := range row.NumField() {
		if tells := row.Field(i); name != "" && columnName(tells) == name {
			return Holes{Any: true, list: tells.Type.Kind() == reflect.Slice, from: int(tells.Offset) - int(f.Offset)}
		}
	}
	return Holes{}
}

// Run returns where the elements of a list end that are null, or are not, like the one at an index.
func (h Holes) Run(field unsafe.Pointer, at, n int) (end int, null bool) {
	if !h.Any {
		return n, false
	}
	tells := unsafe.Add(field, h.from)
	if !h.list {
		if first := min(int(*(*int32)(tells)), n); at < first {
			return first, true
		}
		return n, false
	}
	mask := *(*[]int32)(tells)
	if mask == nil { // of an earlier version
		return n, false
	}
	for end = at + 1; end < n && (mask[end] == 0) == (mask[at] == 0); end++ {
	}
	return end, mask[at] == 0
}

// at returns the address of a row's field, which is of type T.
func at[T, R any](row *R, f *Field) *T { return (*T)(unsafe.Add(unsafe.Pointer(row), f.offset)) }

// reading sets a field of every row of a row group and returns how many rows there are. at returns the address of the
// field in a row.
type reading func(c *chunk, at func(row int) unsafe.Pointer) (rows int, err error)

// chunk is one column of a row group while it is read.
type chunk struct {
	pages  parquet.Pages
	full   byte               // the definition level of a value that is there
	holes  bool               // elements of lists may be null
	grow   func(rows int)     // called before a page is set, with how many rows it brings the group to
	dict   parquet.Dictionary // the last one
	values any                // its values, a []T
}

var plans sync.Map // reflect.Type of a row → []Field

// PlanOf returns the fields of a row type in the order of its columns.
func PlanOf[R any]() []Field {
	t := reflect.TypeFor[R]()
	if plan, ok := plans.Load(t); ok {
		return plan.([]Field)
	}
	columns := parquet.SchemaOf(new(R)).Columns()
	plan := make([]Field, t.NumField())
	for i := range plan {
		f := t.Field(i)
		plan[i] = Field{Name: strings.Join(columns[i], "."), offset: f.Offset, size: int(f.Type.Size()),
			text: f.Type.Kind() == reflect.String, optional: f.Type.Kind() == reflect.Pointer, read: readingOf(f.Type),
			holes: HolesOf(t, f)}
		switch f.Type.Kind() {
		case reflect.Slice:
			plan[i].element = int(f.Type.Elem().Size())
		case reflect.Pointer:
			plan[i].text = f.Type.Elem().Kind() == reflect.String
		}
	}
	plans.Store(t, plan)
	return plan
}

// readingOf returns how a field of a type is read. Rows have no fields of other types.
func readingOf(t reflect.Type) reading {
	switch t.Kind() {
	case reflect.Pointer:
		return byKind[reading](t.Elem(), readOptional[bool], readOptional[int32], readOptional[int64],
			readOptional[float32], readOptional[float64], readOptional[string])
	case reflect.Slice:
		return byKind[reading](t.Elem(), readLists[bool], readLists[int32], readLists[int64], readLists[float32],
			readLists[float64], readLists[string])
	}
	return byKind[reading](t, readRequired[bool], readRequired[int32], readRequired[int64], readRequired[float32],
		readRequired[float64], readRequired[string])
}

// byKind returns what handles a field, or the elements of a list, of a type.
func byKind[F any](t reflect.Type, boolean, i32, i64, f32, f64, text F) F {
	switch t.Kind() {
	case reflect.Bool:
		return boolean
	case reflect.Int32:
		return i32
	case reflect.Int64:
		return i64
	case reflect.Float32:
		return f32
	case reflect.Float64:
		return f64
	case reflect.String:
		return text
	}
	panic(fmt.Sprintf("parquet: rows with fields of type %s can be neither read nor written", t))
}

// ReadGroup appends a row group's rows, with the fields of a plan. A null column that the file does not have stays
// null.
func ReadGroup[R any](rows []R, plan []Field, file *parquet.File, group parquet.RowGroup) ([]R, error) {
	start := len(rows)
	for i, f := range plan {
		leaf, ok := file.Schema().Lookup(strings.Split(f.Name, ".")...)
		if !ok {
			continue
		}
		pages := group.ColumnChunks()[leaf.ColumnIndex].Pages()
		c := &chunk{pages: pages, full: byte(leaf.MaxDefinitionLevel), holes: leaf.Node.Optional(), grow: func(n int) {
			// Rows are made as the pages of the first column are read, so that a wrong count allocates nothing.
			if i == 0 {
				rows = append(rows, make([]R, start+n-len(rows))...)
			}
		}}
		n, err := f.read(c, func(row int) unsafe.Pointer {
			return unsafe.Add(unsafe.Pointer(&rows[start+row]), f.offset)
		})
		if err == nil && start+n != len(rows) {
			err = fmt.Errorf("holds %d rows, but the first column %d", n, len(rows)-start)
		}
		if err = errors.Join(err, pages.Close()); err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
	}
	return rows, nil
}

// each calls read with every page of the column and the number of rows before it, and returns the number of all rows.
// Read returns how many rows begin on the page.
func (c *chunk) each(read func(page parquet.Page, before int) (rows int, err error)) (rows int, err error) {
	for {
		page, err := c.pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		c.grow(rows + int(page.NumRows()))
		n, err := read(page, rows)
		parquet.Release(page)
		if err != nil {
			return rows, err
		}
		rows += n
	}
}

func readRequired[T cell](c *chunk, at func(int) unsafe.Pointer) (int, error) {
	return c.each(func(page parquet.Page, before int) (int, error) {
		values, err := present[T](c, page)
		for i, v := range values {
			*(*T)(at(before + i)) = v
		}
		return len(values), err
	})
}

func readOptional[T cell](c *chunk, at func(int) unsafe.Pointer) (int, error) {
	return c.each(func(page parquet.Page, before int) (int, error) {
		values, err := present[T](c, page)
		if err != nil {
			return 0, err
		}
		levels := page.DefinitionLevels()
		used := 0
		for i, level := range levels {
			if level == c.full {
				*(**T)(at(before + i)) = &values[used]
				used++
			}
		}
		return len(levels), checkUsed(used, len(values))
	})
}

// readLists gives each row its part of its page's values.
func readLists[T cell](c *chunk, at func(int) unsafe.Pointer) (int, error) {
	return c.each(func(page parquet.Page, before int) (int, error) {
		values, err := present[T](c, page)
		if err != nil {
			return 0, err
		}
		starts, levels := page.RepetitionLevels(), page.DefinitionLevels()
		empty := c.full - 1 // the level of an empty list; a list that is null is below
		if c.holes {
			empty--
			if values, err = filled(values, levels, c.full); err != nil {
				return 0, err
			}
		}
		used, rows := 0, 0
		for i, end := 0, 0; i < len(starts); i = end {
			end = listEnd(starts, i)
			list := values[used:used:used]
			if levels[i] > empty {
				list = values[used : used+end-i : used+end-i]
			}
			if levels[i] > empty || c.holes { // with holes, each level has its place
				used += end - i
			}
			switch {
			case starts[i] != 0: // other writers may continue a list on the next page
				last := (*[]T)(at(before + rows - 1))
				*last = append(*last, list...)
				continue
			case levels[i] >= empty:
				*(*[]T)(at(before + rows)) = list
			}
			rows++
		}
		return rows, checkUsed(used, len(values))
	})
}

// filled puts the values of a page at the places of their levels, with 0 where there is none.
func filled[T cell](values []T, levels []byte, full byte) ([]T, error) {
	out, used := make([]T, len(levels)), 0
	for i := 0; i < len(levels); {
		if levels[i] != full {
			i++
			continue
		}
		end := i
		for end < len(levels) && levels[end] == full {
			end++
		}
		used += copy(out[i:end], values[min(used, len(values)):])
		i = end
	}
	return out, checkUsed(bytes.Count(levels, []byte{full}), len(values))
}

// listEnd returns where the list ends whose first repetition level is at i.
func listEnd(starts []byte, i int) int {
	if next := bytes.IndexByte(starts[i+1:], 0); next >= 0 {
		return i + 1 + next
	}
	return len(starts)
}

func checkUsed(used, values int) error {
	if used != values {
		return fmt.Errorf("a page holds %d values, but its levels say %d", values, used)
	}
	return nil
}
