// Package engines declares the kinds of engines that a recipe can choose (engine.kind): what the rest of the program
// must know of a kind, so that nothing else asks for its name. internal/enginepool opens the engines.
package engines

import "slices"

// Kind declares a kind of engine. The zero value is no kind.
type Kind struct {
	Name, Doc string
	// Fields are the fields of a recipe's engine that are read for this kind.
	Fields []string
	// Shared says that the engine computes in the worker's process and belongs to all runs of the worker. It keeps its
	// rows apart, so that they can come and go.
	Shared bool
	// Leased says that an engine belongs to one run at a time.
	Leased bool
	// Devices says that the engine runs on devices of one or several hosts, which are leased with it, and that memory
	// is planned for each of them.
	Devices bool
	// Remote says that a server trains and samples, and that only its weights' names are known here.
	Remote bool
	// On precedes the device where a run's machine is described.
	On string
}

// Auto is the name under which a recipe leaves the choice to the worker that prepares the run (Usual).
const Auto = "auto"

// Names of the kinds, for what opens them.
const (
	cpu    = "cpu"
	Torch  = "torch"
	Tinker = "tinker"
)

// onDevices are the fields that say how an engine uses devices.
var onDevices = []string{"devices", "hosts", "dtype", "deterministic", "checkpointing", "offload_optimizer"}

// All lists the kinds, the open choice first. Nothing but a test changes the list.
var All = []Kind{
	{Name: Auto, Doc: "torch where the worker has a GPU and PyTorch, cpu elsewhere; the run says which and why",
		Fields: onDevices},
	{Name: cpu, Doc: "Go, on the processor", Shared: true},
	{Name: Torch, Doc: "PyTorch, on graphics processors or on the processor",
		Fields: append(slices.Clip(onDevices), "lora"), Leased: true, Devices: true, On: "PyTorch on "},
	{Name: Tinker, Doc: "a server that speaks the Tinker API trains an adapter and generates",
		Fields: []string{"deterministic", "tinker", "lora"}, Leased: true, Remote: true},
}

// Named returns the kind with a name, or the zero value.
func Named(name string) Kind { return first(func(k Kind) bool { return k.Name == name }) }

// Usual returns the kind that the open choice means on a host with devices, or on one without.
func Usual(devices bool) Kind {
	return first(func(k Kind) bool { return k.Devices == devices && k.Shared != devices })
}

func first(suits func(Kind) bool) Kind {
	if i := slices.IndexFunc(All, suits); i >= 0 {
		return All[i]
	}
	return Kind{}
}
