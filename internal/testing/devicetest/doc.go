// Package devicetest replaces NVML in tests. Devices are struct literals. A test changes their readings and sends their
// events. The package also has a clock that the test advances.
package devicetest
