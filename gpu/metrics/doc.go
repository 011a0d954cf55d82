// Package metrics tells Prometheus of this host's devices: what the last poll read, their states, and the leases. A figure
// that a device does not have has no series. Every series of a device bears its index and UUID.
package metrics
