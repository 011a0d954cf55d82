package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// logProbSlack allows a log-probability to exceed 0 by rounding of a float32 log-softmax.
const logProbSlack = 1e-4

// checks keeps the first fault of one row and ignores later ones.
type checks struct{ err error }

func (c *checks) fail(field, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: "+format, append([]any{field}, args...)...)
	}
}

func (c *checks) group(id string) {
	if !groupForm.MatchString(id) {
		c.fail("group_id", "want step/group as 00000/0000, got %q", id)
	}
}

// trajectory checks both ids and that the trajectory belongs to the group.
func (c *checks) trajectory(group, id string) {
	c.group(group)
	if !trajectoryForm.MatchString(id) {
		c.fail("trajectory_id", "want step/group/sample as 00000/0000/000, got %q", id)
		return
	}
	if id[:len(id)-len("/000")] != group {
		c.fail("trajectory_id", "%s does not belong to group %s", id, group)
	}
}

// collected checks that a group is of the step in which its rows were collected.
func (c *checks) collected(group string, step int32) {
	c.count("collected", int64(step))
	if of, _, err := ParseGroupID(group); c.err == nil && (err != nil || of != int(step)) {
		c.fail("collected", "must be the step of group %s, got %d", group, step)
	}
}

func (c *checks) present(field, value string) {
	if value == "" {
		c.fail(field, "must not be empty")
	}
}

func (c *checks) empty(field, value, where string) {
	if value != "" {
		c.fail(field, "must be empty %s, got %q", where, value)
	}
}

// line checks a nullable line of text. It must be UTF-8, because encoding does not change what pointers refer to.
func (c *checks) line(field string, text *string) {
	if text != nil && (*text == "" || !utf8.ValidString(*text) || strings.ContainsAny(*text, "\r\n")) {
		c.fail(field, "must be null or one line of UTF-8 text, got %q", *text)
	}
}

func (c *checks) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.fail(field, "must be one of %q, got %q", allowed, value)
	}
}

// json checks a nullable JSON text.
func (c *checks) json(field string, text *string) {
	if text != nil && !(utf8.ValidString(*text) && json.Valid([]byte(*text))) {
		c.fail(field, "must be JSON in UTF-8")
	}
}

func (c *checks) count(field string, n int64) {
	if n < 0 {
		c.fail(field, "must be ≥ 0, got %d", n)
	}
}

func (c *checks) countOrNull(field string, n *int32) {
	if n != nil {
		c.count(field, int64(*n))
	}
}

func (c *checks) finite(field string, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		c.fail(field, "must be finite, got %v", x)
	}
}

func (c *checks) nonNegative(field string, x float64) {
	c.finite(field, x)
	if x < 0 {
		c.fail(field, "must be ≥ 0, got %v", x)
	}
}

func (c *checks) nonNegativeOrNull(field string, x *float64) {
	if x != nil {
		c.nonNegative(field, *x)
	}
}

func (c *checks) finiteOrNull(field string, x *float64) {
	if x != nil {
		c.finite(field, *x)
	}
}

// shareOrNull checks a part of a whole.
func (c *checks) shareOrNull(field string, x *float64) {
	if x != nil && !(*x >= 0 && *x <= 1) {
		c.fail(field, "must lie in [0, 1], got %g", *x)
	}
}

func (c *checks) length(field string, got, want int) {
	if got != want {
		c.fail(field, "has %d entries, but token_ids has %d", got, want)
	}
}

// sameLength checks that all lists that are not null have the same length.
func (c *checks) sameLength(fields []string, lists ...[]float32) {
	first := -1
	for i, xs := range lists {
		switch {
		case xs == nil:
		case first < 0:
			first = i
		case len(xs) != len(lists[first]):
			c.fail(fields[i], "has %d entries, but %s has %d", len(xs), fields[first], len(lists[first]))
		}
	}
}

// behind checks that a list comes with the digest of the checkpoint that produced it, and that without a list there is
// no digest.
func (c *checks) behind(field, digest string, list bool) {
	if !list {
		c.empty(field, digest, "if no list follows from it")
	} else if !validDigest(digest) {
		c.fail(field, "want the digest of the checkpoint that gave the list, got %q", digest)
	}
}

func (c *checks) tokens(ids []int32) {
	if union(ids) >= 0 {
		return
	}
	for i, id := range ids {
		if id < 0 {
			c.fail("token_ids", "entry %d: must be ≥ 0, got %d", i, id)
			return
		}
	}
}

// union returns the bits that are set in any number. It is below 0 if a number is.
func union(numbers []int32) (bits int32) {
	for _, n := range numbers {
		bits |= n
	}
	return bits
}

// mask checks that a loss mask holds only 0 and 1, and 0 on the leading context tokens.
func (c *checks) mask(mask []int32, context int) {
	if start := min(max(context, 0), len(mask)); union(mask[:start]) == 0 && union(mask[start:])&^1 == 0 {
		return
	}
	for i, m := range mask {
		if m != 0 && m != 1 {
			c.fail("loss_mask", "entry %d: must be 0 or 1, got %d", i, m)
			return
		}
		if i < context && m != 0 {
			c.fail("loss_mask", "entry %d: is 1 on a token of the context", i)
			return
		}
	}
}

// outputs checks a nullable list of per-token floats against inclusive, finite bounds.
func (c *checks) outputs(field string, xs []float32, low, high float64) {
	for i, x := range xs {
		v := float64(x)
		if low <= v && v <= high { // never true of NaN
			continue
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			c.fail(field, "entry %d: must be finite, got %v", i, v)
			return
		}
		c.fail(field, "entry %d: must lie in [%g, %g], got %g", i, low, high, v)
		return
	}
}

// zeroOutside checks that the entries of tokens outside a mask are 0.
func (c *checks) zeroOutside(field string, xs []float32, mask []int32) {
	for i := range min(len(mask), len(xs)) {
		if mask[i] == 0 && xs[i] != 0 {
			c.fail(field, "entry %d: must be 0 where the loss mask is 0, got %g", i, xs[i])
			return
		}
	}
}

// zeroContext checks that the entries of context tokens are 0.
func (c *checks) zeroContext(field string, xs []float32, context int) {
	for i := 0; i < min(context, len(xs)); i++ {
		if xs[i] != 0 {
			c.fail(field, "entry %d: must be 0 on a token of the context, got %g", i, xs[i])
			return
		}
	}
}
