// Package data holds the stages that decide which tasks a run draws, that draw a step's problems, and that import
// trajectories.
package data
