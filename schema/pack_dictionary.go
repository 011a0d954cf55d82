package schema

import "slices"

// directNumbers bounds the numbers that a dictionary finds in a table of its own; token ids are below it.
const directNumbers = 1 << 18

// numbering numbers the distinct values of a column in the order of their first use.
type numbering[T cell] struct {
	values  []T
	numbers map[T]int32
	// direct also holds the number, plus one, of some integers: those from 0 below its length that are not 0 there.
	direct  []int32
	indices []int32
}

// clear begins another dictionary. The memory of values is not used again.
func (d *numbering[T]) clear() {
	d.values = nil
	clear(d.numbers)
	clear(d.direct)
}

// indicesOf returns the numbers of the values, whose least and greatest are low and high. It may write them over the
// values, and the next call may write over them.
func (d *numbering[T]) indicesOf(values []T, low, high T) []int32 {
	if numbers, ok := any(values).([]int32); ok {
		if high := any(high).(int32); any(low).(int32) >= 0 && high < directNumbers {
			d.lookUpDirectly(numbers, high)
			return numbers
		}
	}
	d.indices = slices.Grow(d.indices[:0], len(values))[:len(values)]
	for i, v := range values {
		if i > 0 && v == values[i-1] {
			d.indices[i] = d.indices[i-1] // the rows of a group follow each other
		} else {
			d.indices[i] = d.numberOf(v)
		}
	}
	return d.indices
}

func (d *numbering[T]) numberOf(v T) int32 {
	n, ok := d.numbers[v]
	if !ok {
		if d.numbers == nil {
			d.numbers = map[T]int32{}
		}
		n = int32(len(d.values))
		d.numbers[v] = n
		d.values = append(d.values, v)
	}
	return n
}

// lookUpDirectly replaces values, which are not negative and at most high, by their numbers.
func (d *numbering[T]) lookUpDirectly(values []int32, high int32) {
	if grow := int(high) + 1 - len(d.direct); grow > 0 {
		d.direct = append(d.direct, make([]int32, grow)...)
	}
	direct := d.direct
	for i, v := range values {
		n := direct[v]
		if n == 0 {
			n = d.numberOf(any(v).(T)) + 1
			direct[v] = n
		}
		values[i] = n - 1
	}
}

// extremes returns the least and the greatest of values, of which there is one at least.
func extremes[T cell](values []T) (low, high T) {
	switch values := any(values).(type) {
	case []int32:
		l, h := ends(values)
		return any(l).(T), any(h).(T)
	case []int64:
		l, h := ends(values)
		return any(l).(T), any(h).(T)
	case []string:
		l, h := textEnds(values)
		return any(l).(T), any(h).(T)
	}
	panic("schema: dictionaries are of integers and texts")
}

func ends[T int32 | int64](values []T) (low, high T) {
	low, high = values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// textEnds compares a text only if it differs from the one before: the rows of a group follow each other.
func textEnds(values []string) (low, high string) {
	low, high = values[0], values[0]
	last := low
	for _, v := range values {
		if v == last {
			continue
		}
		last = v
		low, high = min(low, v), max(high, v)
	}
	return low, high
}
