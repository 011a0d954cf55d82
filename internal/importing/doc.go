// Package importing knows the files of other systems that `ropewalk import` takes, and reports what became of one.
package importing
