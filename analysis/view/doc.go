// Package view shows runs in a web browser: the list of them, several side by side, how often their problems were
// solved, and of each run the report's figures, all trajectories, and each trajectory token by token, live while it
// goes on.
//
// Glossary. The *index* is a table in memory with one row for each trajectory of the finished steps; lists, filters and
// the reader's SQL are answered from it. A *filter* says which rows a list shows, and in which order. A *close-up* is
// one trajectory with the numbers of its tokens; its tokens are *pieces*, the shortest runs of tokens that are whole
// characters. A *quantity* is a number of a piece by which pieces can be coloured. The *state* says how much of the run
// the index holds; the page hears of every change of it.
//
//	Viewer.Follow: record → index (newest steps first) → state → page
//	Home.Serve:    page → guard → runs | problems | a run's list, close-up or figures
//
// The handler only reads, and answers only those who hold the link's token. Everything that comes out of the record is
// text to the page, never markup: a policy's output is untrusted.
package view
