// Package report makes a run's report: one HTML page that needs nothing but itself.
//
// Glossary. A *question* is an SQL query over the record with a name; its *answer* is what the
// session of package sql gave. A *figure* is drawn from the answers of its questions alone and shows
// them, so that a reader can ask them again. A *section* without data says why. An *episode* is one
// trajectory shown turn by turn; its tokens are *pieces*, each with a log-probability, an entropy
// and an advantage by which it can be coloured.
//
// Everything that comes out of the record is text to the page, never markup: what a policy wrote is
// written by nobody that one would trust. The page's policy lets it run one script, its own, and
// load nothing.
package report
