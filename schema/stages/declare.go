package stages

import "slices"

// Declare adds a stage right before another one, or replaces the one of that name, until undo is called. A program
// declares its stages before it runs any.
func Declare(s Stage, before string) (undo func()) {
	declared := all
	all = slices.DeleteFunc(slices.Clone(all), func(other Stage) bool { return other.Name == s.Name })
	next := slices.IndexFunc(all, func(other Stage) bool { return other.Name == before })
	all = slices.Insert(all, next, s)
	return func() { all = declared }
}
