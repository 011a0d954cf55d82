// Package device finds the NVIDIA devices of this host and watches over them, through NVML (libnvidia-ml).
//
// Glossary. The *host* is this machine as its driver shows it. The *inventory* is what NVML tells of each device at
// one moment; a *reading* is one figure of it, or the fact that the device has no such figure ("not supported"), which
// is neither an error nor 0. A *Xid* is the driver's number for a fault; Xids lists what follows from each. A *reason*
// is one finding against a device. Its *state* is the worst of its reasons:
//
//	healthy   nothing is known against it
//	degraded  whoever has it goes on, nobody gets it anew
//	failed    whoever has it must stop, nobody gets it anew
//
// A *watch* keeps the states: Xids and double-bit errors come by NVML's event set, everything else by *polls*. What an
// event said holds until the watch ends, since only a reset of the device could take it back; what a poll found
// holds as long as polls find it. A *link* is one NVLink, a *clique* a set of devices each two of which are joined
// by links; the *path* between two devices is the kind of their connection, named as nvidia-smi names it.
package device
