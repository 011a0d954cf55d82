// Package reward turns what a trajectory did and answered into numbers.
//
// Glossary. The *gold* is the reference answer. A *box* is the content of \boxed{…}; an *answer
// block* is <answer>…</answer>; a *block* is any closed pair of tags. A *verdict* says how answer
// and gold compared; whether they agree follows from it. To *normalise* is to strip an answer of
// units, spacing and TeX dressing (after Minerva, as in DAPO's release), or, for question answering,
// of case, punctuation and articles. A *value* is the value of a written number: an exact rational, or a
// float64 if a root makes it irrational. *Facts* are the counts that an environment recorded about a
// trajectory; *parts* are the terms of a reward. A *judgement* is the parsed output of a judging model. A
// response has *strict form* if it is one <think> and one <action> block.
//
// The rewards, one file each:
//
//	rstar2.go         the boxed answer matches: 0 or 1              rStar2-Agent
//	spear.go          outcome, tool use that fades, format          SPEAR and its released variants
//	prs.go            process, format, judge, answer in stages      PRS (with bleu.go and judge.go)
//	arlarena.go       what environments pay                         ARLArena (with strict_format.go)
//	deep_research.go  well-formedness, F1, use of both tools        AEPO
//	search_r1.go      EM of the last answer block                   Search-R1
//	qa.go             EM, sub-EM, F1 of a prediction                the baseline of PRS
//	dapo.go           strict box or normalised answer line: ±1      DAPO
//	tests.go          the program passes its tests: 0 or 1          HumanEval
//	overlong.go       a penalty for responses that are too long     DAPO
//	imported.go       rewards of imported trajectories              the sources
//
// Recipes choose a reward by name. The file of each holds its Declaration: name, source, parameters, the comparison
// of the answer and the Scorer. Declarations lists them.
//
// A reward has no state: equal inputs give equal bits, in whatever order they are scored. What an environment knows
// (calls that parsed, turns that were malformed) is passed as Facts, and the output of a judge as a Judgement. No
// reward calls another system.
//
// A verdict is data: no text makes grading fail. Texts beyond a fixed length are compared only as strings, and
// scanning never goes back, so the cost of an answer is linear in its length. Inputs that are NaN or contradict each
// other are errors.
//
// Mathematical answers are compared as strings, then as numbers, then as lists. An equation counts as its last side
// (equation.go). testdata/answers.tsv holds answers that are easy to grade wrongly. Departures from rStar2-Agent's
// outcome reward: if both sides have a value, the values decide (normalising alone would make "1 1/2" and "11/2"
// equal), and a list never equals a single answer. A computer algebra system may decide pairs that remain different
// (symbolic.go); its answer is passed as data.
package reward
