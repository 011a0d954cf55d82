// Package lease leases this host's devices, each to one holder at a time.
//
// Glossary. A *pool* is a process's view of the devices that it may lease. A *lease* is one holder's right to some
// devices until the holder releases it or its process ends. It is a kernel lock (flock) on a file for each device, in a
// folder that all processes of the host share. So a killed holder leaves nothing to clean up, and child processes do
// not inherit the lock. A *mark* is a small file that says that a device has failed. No process of the host leases the
// device again until the machine has restarted or an operator has readmitted the device. A *lack* is the reason why a
// request cannot have a device. *Placement* chooses the best connected devices among those available.
//
// Leases are advisory. If a program uses a device without a lease, only the memory that it holds shows this.
package lease
