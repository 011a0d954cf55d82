package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// With these fixed widths, ids sort as text in the order of their numbers. A wider id is malformed: as text it would
// come before ids with smaller numbers.
const (
	groupForm      form = "00000/0000"
	trajectoryForm form = "00000/0000/000"
)

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// form is an id whose digits stand for any digits. Every row is checked against one or two, which regular expressions
// would make a tenth of the time of writing a shard.
type form string

// MatchString reports whether an id has the form.
func (f form) MatchString(id string) bool {
	if len(id) != len(f) {
		return false
	}
	for i := range len(f) {
		digit := '0' <= id[i] && id[i] <= '9'
		if digit != (f[i] == '0') || (!digit && id[i] != f[i]) {
			return false
		}
	}
	return true
}

// The limits of what ids can number. Recipes and importers refuse more before anything starts.
const (
	MaxSteps   = 99_999 // steps are numbered from 1
	MaxGroups  = 10_000 // groups of a step, numbered from 0
	MaxSamples = 1_000  // samples of a group, numbered from 0
)

// GroupID returns the id of a step's prompt, counted from 0. Where a bound may be MaxGroups itself, compare numbers
// instead of ids.
func GroupID(step, group int) string { return fmt.Sprintf("%05d/%04d", step, group) }

// TrajectoryID returns the id of one sample of a group.
func TrajectoryID(step, group, sample int) string {
	return fmt.Sprintf("%05d/%04d/%03d", step, group, sample)
}

// ParseGroupID returns the numbers in a group id.
func ParseGroupID(id string) (step, group int, err error) {
	if !groupForm.MatchString(id) {
		return 0, 0, fmt.Errorf("group id %q: want step/group as 00000/0000", id)
	}
	n := numbersOf(id)
	return n[0], n[1], nil
}

// ParseTrajectoryID returns the numbers in a trajectory id.
func ParseTrajectoryID(id string) (step, group, sample int, err error) {
	if !trajectoryForm.MatchString(id) {
		return 0, 0, 0, fmt.Errorf("trajectory id %q: want step/group/sample as 00000/0000/000", id)
	}
	n := numbersOf(id)
	return n[0], n[1], n[2], nil
}

// numbersOf returns the numbers in an id. Callers have checked the id's form, so every number parses.
func numbersOf(id string) []int {
	var out []int
	for part := range strings.SplitSeq(id, "/") {
		n, _ := strconv.Atoi(part)
		out = append(out, n)
	}
	return out
}
