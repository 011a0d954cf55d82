package wire

// Types of messages.
const (
	TypeHello   = "hello"
	TypeWelcome = "welcome"
	TypeRefused = "refused"
	TypeCall    = "call"
	TypeAnswer  = "answer"
	TypeError   = "error"
	TypeCancel  = "cancel"
	TypeBeat    = "beat"
)

// Hello is the engine's first message.
type Hello struct {
	Type          string            `json:"type"`
	Protocol      int               `json:"protocol"`
	Nonce         string            `json:"nonce"`
	Engine        string            `json:"engine"`
	PID           int               `json:"pid"`
	Ranks         int               `json:"ranks"`
	Versions      map[string]string `json:"versions"`
	Device        string            `json:"device"`
	DeviceName    string            `json:"device_name"`
	Dtype         string            `json:"dtype"`
	Deterministic bool              `json:"deterministic"`
	LoRA          *LoRA             `json:"lora,omitempty"` // absent: all of a model trains
}

// LoRA is the adapter that an engine trains instead of the whole model.
type LoRA struct {
	Rank    int      `json:"rank"`
	Alpha   float64  `json:"alpha"`
	Targets []string `json:"targets"` // in the order in which a layer computes them
}

// Welcome takes the engine on.
type Welcome struct {
	Type     string `json:"type"`
	Protocol int    `json:"protocol"`
}

// Refused turns it away.
type Refused struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// Cancel stops a call.
type Cancel struct {
	Type string `json:"type"`
	ID   uint64 `json:"id"`
}

// Beat is the engine's sign of life.
type Beat struct {
	Type   string `json:"type"`
	At     uint64 `json:"at"`    // the call that it is in; 0 when idle
	Phase  string `json:"phase"` // what the call is doing
	Ticks  uint64 `json:"ticks"` // work done so far
	Done   int    `json:"done"`  // of Total parts of the phase
	Total  int    `json:"total"`
	Memory Memory `json:"memory"`
}

// Memory is a device's in bytes, of the rank that holds most.
type Memory struct {
	Allocated int64 `json:"allocated"`
	Peak      int64 `json:"peak"`
	Reserved  int64 `json:"reserved"`
}

// Error answers a call that failed; ID 0 means that it answers no call.
type Error struct {
	Type    string `json:"type"`
	ID      uint64 `json:"id"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Name    string `json:"name,omitempty"`
}

// Kinds of errors.
const (
	KindBadRequest  = "bad_request"
	KindUnsupported = "unsupported"
	KindNotLoaded   = "not_loaded"
	KindNotKept     = "not_kept"
	KindOutOfMemory = "out_of_memory"
	KindNonFinite   = "non_finite"
	KindCancelled   = "cancelled"
	KindCorrupt     = "corrupt"
	KindInternal    = "internal"
	KindProtocol    = "protocol"
)
