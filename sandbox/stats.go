package sandbox

// Stats counts what an executor has done since it was opened, and what it is doing.
type Stats struct {
	Workers  int   // calls that can run at once
	Busy     int   // calls running now, including those set aside
	Aside    int64 // calls set aside because they took long while others waited
	Forks    int64 // calls started, including those that broke
	Recycled int64 // zygotes replaced because of their age
}

// Counted is implemented by executors that keep Stats.
type Counted interface {
	// Stats returns the current counts.
	Stats() Stats
}
