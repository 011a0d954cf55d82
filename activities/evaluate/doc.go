// Package evaluate holds the stages that measure a policy on held-out problems.
package evaluate
