package schema

import (
	"cmp"
	"fmt"
	"reflect"
)

// boundBatch fills in the least and greatest value of each column of the batch; for a list, of its elements. Arrow
// files hold no statistics, so the bounds come from the rows.
func boundBatch(columns []Column, rows []BatchRow) {
	for i := range columns {
		var b bounds
		for r := range rows {
			b.add(reflect.ValueOf(rows[r]).Field(i))
		}
		columns[i].Min, columns[i].Max = b.text(b.low), b.text(b.high)
	}
}

// bounds holds the least and greatest of values of one kind.
type bounds struct {
	some      bool
	low, high reflect.Value
}

func (b *bounds) add(v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if !v.IsNil() {
			b.add(v.Elem())
		}
		return
	}
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			b.add(v.Index(i))
		}
		return
	}
	if !b.some || compareValues(v, b.low) < 0 {
		b.low = v
	}
	if !b.some || compareValues(v, b.high) > 0 {
		b.high = v
	}
	b.some = true
}

func (b *bounds) text(v reflect.Value) *string {
	if !b.some {
		return nil
	}
	return new(fmt.Sprint(v.Interface()))
}

func compareValues(a, b reflect.Value) int {
	switch {
	case a.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	case a.CanFloat():
		return cmp.Compare(a.Float(), b.Float())
	}
	return cmp.Compare(a.String(), b.String())
}
