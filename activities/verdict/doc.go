// Package verdict holds the stages that get verdicts on answers, and the stage that computes rewards from them.
//
// Glossary. A *verdict* (a wrong answer, a program that fails) is data; breakage is an error. A *source* of verdicts is
// a stage: the sandbox grades answers, a judge is asked, or the user's function is called.
package verdict
