// Package metrics exports this host's devices to Prometheus: the readings of the last poll, the states, and the leases.
// A figure that a device does not have has no series. Every series of a device has its index and UUID as labels.
package metrics
