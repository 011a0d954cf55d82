package api

// HostQueue is the task queue of a single host, for work that returns to the engine that the host holds.
func HostQueue(host string) string { return "gpu." + host }

// Common returns the part that the results of all stages have in common.
func (d *Done) Common() *Done { return d }

// HomeInput asks for a host that runs the models of a run from now on.
type HomeInput struct {
	Scope
}

// Home names the host that runs a run's models.
type Home struct {
	Host string `json:"host"`
}

// RanksInput asks for hosts that run ranks of an engine whose rank 0 is on another host.
type RanksInput struct {
	Leader  string `json:"leader"`  // name of the host that runs rank 0
	Address string `json:"address"` // where rank 0 waits for the others, HOST:PORT
	Gang    string `json:"gang"`    // the identity that all ranks share
	Members int    `json:"members"` // number of other hosts
}

// RanksServed says how an engine's ranks on this host ended.
type RanksServed struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}
