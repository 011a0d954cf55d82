// Package warmstart holds the stage that makes a run's first policy.
package warmstart
