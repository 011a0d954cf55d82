package wire

// HostQueue is the task queue of one host alone, for work that returns to the engine that the host holds.
func HostQueue(host string) string { return "gpu." + host }

// Its is what the result has in common with every other.
func (d *Done) Its() *Done { return d }

// HomeInput asks for a host that runs the models of a run from now on.
type HomeInput struct {
	Scope
}

// Home names it.
type Home struct {
	Host string `json:"host"`
}

// RanksInput asks for hosts that run ranks of an engine whose rank 0 is on another host.
type RanksInput struct {
	Leader  string `json:"leader"`  // its host's name
	Address string `json:"address"` // where it awaits them, HOST:PORT
	Gang    string `json:"gang"`    // their common identity
	Members int    `json:"members"` // how many hosts
}

// RanksServed says how an engine's ranks on this host ended.
type RanksServed struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}
