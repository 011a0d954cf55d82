// Package leased opens PyTorch engines for one worker: on devices that are leased for as long as the engine lives, or on
// the processor of a host without a driver.
//
// Glossary. A *maker* is a worker's way to engines. An engine *drains* when one of its devices fails: its process is ended,
// the call that runs fails with the device's failure (policy.DeviceError), and the next Load takes other devices.
// An engine may lie on several hosts (Settings.Hosts): its maker *gathers* those of others, which *serve* it (gpu/gang).
package leased
