package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// A decoder with plain rotary positions computes any position: its config.json says how long the sequences were that it
// was trained on. So it can be asked to read longer ones, at which it was never trained. Where attention reaches back
// a limited window, or where the rotary embedding is scaled for a length, longer sequences would be another model.

// CanLengthen returns an error that says why a model cannot read sequences of so many positions, or nil.
func CanLengthen(config []byte, positions int) error {
	_, err := lengthened(config, positions)
	return err
}

// Lengthen changes the config.json of the folder dir to so many positions.
func Lengthen(dir string, positions int) error {
	name := filepath.Join(dir, FileConfig)
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("lengthen the model: %w", err)
	}
	if text, err = lengthened(text, positions); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

// lengthened returns a config.json with so many positions.
func lengthened(config []byte, positions int) ([]byte, error) {
	shape, err := ParseConfig(config)
	if err != nil {
		return nil, err
	}
	if shape.Rope != (RopeScaling{}) {
		return nil, fmt.Errorf("%w: the model's rotary embedding is scaled for %d positions, and %d are asked for",
			ErrUnsupported, shape.Positions, positions)
	}
	var m map[string]any
	if err := json.Unmarshal(config, &m); err != nil {
		return nil, fmt.Errorf("%w: parse config.json: %w", ErrCorrupt, err)
	}
	m["max_position_embeddings"] = positions
	text := marshalSorted(m)
	after, err := ParseConfig(text)
	if err != nil {
		return nil, err
	}
	if after.Positions < positions {
		return nil, fmt.Errorf("%w: the model's attention reaches back %d positions, and %d are asked for",
			ErrUnsupported, after.Positions, positions)
	}
	return text, nil
}
