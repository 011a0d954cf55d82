// Package lease gives out this host's devices, each to one holder at a time.
//
// Glossary. A *pool* is what a process knows of the devices that can be had. A *lease* is one holder's right to some
// devices until it is released or its process ends: it rests on a kernel lock (flock) on a file of each device, in a
// folder that all processes of the host share. Nothing has to be cleaned up after a holder that was killed, and child
// processes do not inherit it. A *mark* is a small file that says that a device has failed; no process of the host
// gives the device out until the machine has been restarted or somebody has readmitted it. A *lack* is what keeps a
// device from a request. *Placement* chooses among the devices that can be had those that are best connected.
//
// Leases bind those who ask for them. A program that takes a device without asking is seen by the memory that it holds,
// and by nothing else.
package lease
