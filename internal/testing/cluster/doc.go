// Package cluster starts the servers and machines of a cluster in miniature, for the tests in test/cluster and for the
// benchmark of Temporal.
//
// A *machine* is a network namespace with an address of its own; all machines of a *network* are connected by a switch,
// from which one can be cut off. A *unit* is a process that is started again whenever it ends, as systemd does with
// Restart=always. StartPostgres and StartTemporal make units of the real programs.
package cluster
