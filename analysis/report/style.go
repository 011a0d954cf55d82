package report

// Style is the report's style sheet. Pages that show its figures use it too.
func Style() string { return styleText }
