// Package reward grades what a trajectory answered.
//
// Glossary. The *gold* is the reference answer. A *box* is the content of \boxed{…}; an *answer
// block* is <answer>…</answer>. A *verdict* says how answer and gold compared; whether they agree
// follows from it. To *normalise* is to strip an answer of units, spacing and TeX dressing (after
// Minerva, as in DAPO's release). A *value* is what a written number is worth: an exact rational,
// or a float64 where a root makes it irrational.
//
// A verdict is data: no text makes grading fail. Texts beyond a fixed length are compared as
// strings alone, so that no answer costs more than its length.
//
// Source: rStar2-Agent's outcome reward (1 for an answer that matches, else 0), with the
// comparison order strings → numbers → lists. Departures: where both sides have a value the value
// decides (normalising alone would make "1 1/2" and "11/2" equal), and a list never equals a
// single answer.
package reward
