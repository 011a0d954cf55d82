// Package summary has a run's first policy sum up the pages that the tool browse shows.
package summary
