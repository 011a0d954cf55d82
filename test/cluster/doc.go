// Package cluster trains the quickstart on a cluster in miniature (make test-cluster): Temporal on PostgreSQL, an S3
// server, sandbox services, presigners and two workers of each queue, each in a network namespace of its own, with
// client certificates and credentials for each role. Workers of the queue sandbox have no credentials of the store.
// What happens to the cluster in the middle of a run must not change the final weights, and no person may be needed.
package cluster
