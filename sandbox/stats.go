package sandbox

// Stats is what an executor has done since it was opened, and what it is doing.
type Stats struct {
	Workers  int   // calls that can run at once
	Busy     int   // that do, those set aside included
	Aside    int64 // calls set aside, since they took long while others waited
	Forks    int64 // calls started, those that broke included
	Recycled int64 // zygotes replaced for their age
}

// Counted is an executor that counts. An executor may do without.
type Counted interface {
	Stats() Stats
}
