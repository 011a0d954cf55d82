// Package report makes the report of a run, or of several: one HTML page that needs nothing but itself.
//
// Glossary. A *question* is a named SQL query over the record; its *answer* is the result from package sql. A *figure*
// is declared with its title, the questions it asks, the reason why it can be empty and a function that draws it; it
// shows its questions, so that a reader can repeat them. A *section* lists figures and says when it is shown. An
// *episode* is one trajectory shown turn by turn; its tokens are *pieces*, each with a log-probability, an entropy and
// an advantage by which it can be coloured.
//
// A *comparison* is a page about several runs; its *overlays* are figures that hold one line of each run, in the run's
// colour. Figures without data are *left out*: the page names them at its end with the reason.
//
//	Gather: sections → questions → answers → figures → Page → WriteHTML
//	GatherComparison: compare.Read → tables, and for each run questions → answers → overlays → ComparisonPage
//
// Everything that comes out of the record is text to the page, never markup: a policy's output is untrusted. The page's
// content security policy lets it run one script, its own, and load nothing.
package report
