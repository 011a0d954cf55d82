// Package parquet writes and reads Parquet files whose rows are Go structs, by github.com/parquet-go/parquet-go. It
// knows no table, version or key: package schema says what files hold, and refuses those that do not.
//
// Glossary. A *row* is a struct; each of its fields is one *leaf column* of the file. A *plan* is the list of a row's
// fields, found once for each type. Lists may have *holes*: elements that are null in the file and 0 in the row.
// Files are read column by column (ReadGroup), and written by the library row by row (Writers).
package parquet
