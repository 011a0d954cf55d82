// Package resource holds what a worker's machine gives to its stages: the engines, the execution of programs with the
// tools that call it, and the episodes that wait for their next turn.
package resource
