// Package upkeep holds the activities that keep runs in order alongside their steps: they prune and merge files, record
// measured times, note what was done to a run, and place the engines of several hosts.
package upkeep
