// Package leased opens PyTorch engines for one worker: on devices that are leased for the life of the engine, or on the
// processor of a host without a driver.
//
// Glossary. A *maker* opens a worker's engines. An engine *drains* when one of its devices fails: its process is ended,
// the running call fails with the device's failure (policy.DeviceError), and the next Load takes other devices.
// An engine may run on several hosts (Settings.Hosts): its maker *gathers* the other hosts, which *serve* it
// (gpu/gang).
package leased
