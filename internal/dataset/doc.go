// Package dataset reads files of tasks that others have written: JSON Lines, JSON lists and CSV, plain or packed with
// gzip, Parquet and Arrow. It checks every row and divides the rows into two splits.
//
// Glossary. A *source* is a local file, a local folder of files, or one file at a remote address. A *row* is a line of
// a JSON Lines file that is not blank, an item of a list, or a row of another file; rows count from 1, and so do lines.
// A *fault* says what is wrong with a row or with a file. A row's *key* is what makes it a task: two rows with equal
// keys are the same task. The *digest* of a source is the SHA-256 of its file, or of a line for each file of a folder.
//
//	Fields (of a recipe) ─ Pin → digests in the recipe
//	                     ─ Load(Format, convert) → Tasks: train, held out ─ Order.At → the task of a draw
//
// The rows of a source are held in memory. Fields bound the bytes of a source and of a row, so a file of any size costs
// bounded memory.
package dataset
