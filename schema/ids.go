package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The widths make the order of ids as text the order of their numbers: steps below 100,000,
// groups below 10,000 a step, samples below 1,000 a group. An id beyond them is ill-formed.
var (
	groupForm      = regexp.MustCompile(`^[0-9]{5}/[0-9]{4}$`)
	trajectoryForm = regexp.MustCompile(`^[0-9]{5}/[0-9]{4}/[0-9]{3}$`)
	digestForm     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// MaxGroups is how many groups of a step have an id.
const MaxGroups = 10_000

// GroupID names the group-th prompt of a step.
func GroupID(step, group int) string { return fmt.Sprintf("%05d/%04d", step, group) }

// TrajectoryID names one sample of a group.
func TrajectoryID(step, group, sample int) string {
	return fmt.Sprintf("%05d/%04d/%03d", step, group, sample)
}

// ParseGroupID takes a group id apart.
func ParseGroupID(id string) (step, group int, err error) {
	if !groupForm.MatchString(id) {
		return 0, 0, fmt.Errorf("group id %q: want step/group as 00000/0000", id)
	}
	n := numbersOf(id)
	return n[0], n[1], nil
}

// ParseTrajectoryID takes a trajectory id apart.
func ParseTrajectoryID(id string) (step, group, sample int, err error) {
	if !trajectoryForm.MatchString(id) {
		return 0, 0, 0, fmt.Errorf("trajectory id %q: want step/group/sample as 00000/0000/000", id)
	}
	n := numbersOf(id)
	return n[0], n[1], n[2], nil
}

// numbersOf is only called with ids whose form was checked, so no number can fail to parse.
func numbersOf(id string) []int {
	var out []int
	for part := range strings.SplitSeq(id, "/") {
		n, _ := strconv.Atoi(part)
		out = append(out, n)
	}
	return out
}
