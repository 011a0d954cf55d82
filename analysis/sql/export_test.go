package sql

// SetFilesAtOnce changes how many files a statement reads that fills a table, and returns what sets it back.
func SetFilesAtOnce(n int) (restore func()) {
	before := filesAtOnce
	filesAtOnce = n
	return func() { filesAtOnce = before }
}
