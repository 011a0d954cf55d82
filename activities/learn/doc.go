// Package learn holds the stages from a step's rewards to its policy: commit, resample, logprobs, advantage, buffer,
// update and publish.
//
// Glossary. The replay *buffer* (SPEAR, Algorithm 1) holds trajectories with a positive advantage, with their tokens. A
// *baseline* is the mean reward of a group; the queue holds the latest ones. A full buffer is *consumed*: its
// trajectories are evaluated again, it becomes empty, and the trajectories that are still worth imitating are the
// step's *replay batch*. The rules of the buffer are those of rl/resample; here they meet the rows of the record.
package learn
