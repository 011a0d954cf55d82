// Package device finds the NVIDIA devices of this host and watches them, through NVML (libnvidia-ml).
//
// Glossary. The *host* is this machine as its driver sees it. The *inventory* is the data that NVML reports about each
// device at one moment. A *reading* is one value of the inventory, or the fact that the device does not support it,
// which is neither an error nor 0. An *Xid* is the driver's number for a fault; xidTable lists the consequence of each.
// A *reason* is one fault of a device. The *state* of a device is the worst of its reasons:
//
//	healthy   no fault is known
//	degraded  its holder continues; it is not leased again
//	failed    its holder must stop; it is not leased again
//
// A *watch* tracks the states. Xids and double-bit errors come from NVML's event set, and everything else comes from
// *polls*. A fault from an event holds until the watch ends, because only a reset of the device could repair it. A
// fault from a poll holds as long as polls find it. A *link* is one NVLink. A *clique* is a set of devices in which
// links join every pair. The *path* between two devices is the kind of their connection, with nvidia-smi's name.
package device
