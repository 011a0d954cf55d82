// Package learn holds the stages from a step's rewards to its policy: commit, resample, logprobs, advantage, buffer,
// update and publish.
package learn
