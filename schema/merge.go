package schema

import (
	"fmt"
	"reflect"
	"slices"
)

// Merge returns one shard with the rows of several shards of a Parquet table, in canonical order, and their number.
// Rows that repeat are an error.
func Merge(table Table, shards [][]byte) (data []byte, rows int, err error) {
	k, ok := kindOf(table)
	if !ok {
		return nil, 0, fmt.Errorf("table %q: has no Parquet shards to merge", string(table))
	}
	return k.merge(shards)
}

// CheckMerged returns an error, which names the first row that differs, unless merged holds the rows of the shards, in
// canonical order. It compares rows, because another version of the program may have written other bytes.
func CheckMerged(table Table, merged []byte, shards [][]byte) error {
	k, ok := kindOf(table)
	if !ok {
		return fmt.Errorf("table %q: has no Parquet shards to compare", string(table))
	}
	return k.equal(merged, shards)
}

func (k *rowsOf[R, F]) merge(shards [][]byte) ([]byte, int, error) {
	rows, err := joined[R](shards)
	if err != nil {
		return nil, 0, err
	}
	data, err := Encode(rows)
	return data, len(rows), err
}

func joined[R Row](shards [][]byte) ([]R, error) {
	var rows []R
	for _, data := range shards {
		some, err := Decode[R](data)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	Sort(rows)
	return rows, nil
}

func (k *rowsOf[R, F]) equal(merged []byte, shards [][]byte) error {
	want, err := joined[R](shards)
	if err != nil {
		return err
	}
	n := 0
	for got, err := range Groups[R](merged) {
		if err != nil {
			return err
		}
		part := want[min(n, len(want)):min(n+len(got), len(want))]
		if !slices.EqualFunc(got, part, func(a, b R) bool { return reflect.DeepEqual(a, b) }) {
			i := 0
			for i < len(part) && reflect.DeepEqual(got[i], part[i]) {
				i++
			}
			return fmt.Errorf("table %s row %d: differs from the shards that were merged", TableOf[R](), n+i)
		}
		n += len(got)
	}
	if n != len(want) {
		return fmt.Errorf("table %s: holds %d rows, but the shards that were merged hold %d", TableOf[R](), n,
			len(want))
	}
	return nil
}
