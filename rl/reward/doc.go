// Package reward turns what a trajectory did and answered into numbers.
//
// Glossary. The *gold* is the reference answer. A *box* is the content of \boxed{…}; an *answer
// block* is <answer>…</answer>; a *block* is any closed pair of tags. A *verdict* says how answer
// and gold compared; whether they agree follows from it. To *normalise* is to strip an answer of
// units, spacing and TeX dressing (after Minerva, as in DAPO's release), or, for question answering,
// of case, punctuation and articles. A *value* is what a written number is worth: an exact rational,
// or a float64 where a root makes it irrational. *Facts* are the counts that an environment recorded
// of a trajectory; *parts* are the terms that a reward adds up. A *judgement* is what a judging model
// printed, read. A response has *strict form* when it is one <think> and one <action> block.
//
// The rewards, one file each:
//
//	rstar2.go         the boxed answer matches: 0 or 1              rStar2-Agent
//	spear.go          outcome, tool use that fades, format          SPEAR and its released variants
//	prs.go            process, format, judge, answer in stages      PRS (with bleu.go and judge.go)
//	arlarena.go       environments' outcomes, turn rows, penalty    ARLArena (with strict_format.go)
//	deep_research.go  well-formedness, F1, use of both tools        AEPO
//	search_r1.go      EM of the last answer block                   Search-R1
//	qa.go             EM, sub-EM, F1 of a prediction                the baseline of PRS
//	dapo.go           strict box or normalised answer line: ±1      DAPO
//	overlong.go       what becomes of responses that are too long   DAPO, rStar2-Agent
//
// Each is a plain struct whose zero value is the paper's form, with Validate naming a field out of
// range and Reward working without state: equal inputs give equal bits, in whatever order they are
// scored. What an environment knows (calls that parsed, turns that were malformed) comes in as
// Facts, and what a judge printed as a Judgement: no reward asks anyone.
//
// A verdict is data: no text makes grading fail. Texts beyond a fixed length are compared as
// strings alone, and scanning never goes back, so that no answer costs more than its length.
// Numbers from outside that are NaN or contradict each other are errors.
//
// Comparison of mathematical answers goes strings → numbers → lists. Departures from rStar2-Agent's
// outcome reward: where both sides have a value the value decides (normalising alone would make
// "1 1/2" and "11/2" equal), and a list never equals a single answer. What
// these leave open may be asked of a system of computer algebra (symbolic.go), whose answer comes in as data.
package reward
