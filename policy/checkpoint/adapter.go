package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// A LoRA adapter has two files in the folder of its base, model.safetensors. The first is adapter_config.json. The
// second, adapter_model.safetensors, holds float32 tensors: base_model.model.MODULE.lora_A.weight [rank, in] and
// ….lora_B.weight [out, rank] for each module with an adapter. The product lora_alpha/r · B·A is added to the base
// weight (Hu et al. 2021). The optimiser's moments then belong to the adapter.

const (
	adapterPrefix = "base_model.model."
	suffixA       = ".lora_A.weight"
	suffixB       = ".lora_B.weight"
)

// adapterConfig holds the fields of adapter_config.json that this package reads.
type adapterConfig struct {
	Type         string         `json:"peft_type"`
	Rank         int            `json:"r"`
	Alpha        float64        `json:"lora_alpha"`
	Bias         string         `json:"bias"`
	DoRA         bool           `json:"use_dora"`
	RSLoRA       bool           `json:"use_rslora"`
	LoRABias     bool           `json:"lora_bias"`
	FanInFanOut  bool           `json:"fan_in_fan_out"`
	RankPattern  map[string]int `json:"rank_pattern"`
	AlphaPattern map[string]any `json:"alpha_pattern"`
	Saved        []string       `json:"modules_to_save"`
}

// HasAdapter reports whether the folder dir has a LoRA adapter.
func HasAdapter(dir string) (bool, error) {
	for _, name := range []string{FileAdapterConfig, FileAdapter} {
		if found, err := nameIn(dir, name); err != nil || found != "" {
			return err == nil, err
		}
	}
	return false, nil
}

// IsRemote reports whether the folder dir holds the base of an adapter that is at a Tinker server alone.
func IsRemote(dir string) (bool, error) {
	adapter, err := HasAdapter(dir)
	if err != nil || adapter {
		return false, err
	}
	name, err := nameIn(dir, FileReference)
	return name != "", err
}

// merge attaches the adapter's products to their base weights, whose numbers include them from then on. The result is
// an ordinary model with the same outputs up to rounding. Only the adapter itself is read into memory.
func (c *Checkpoint) merge(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, FileAdapterConfig))
	if err != nil {
		return err
	}
	var config adapterConfig
	if err := json.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("%w: parse %s: %w", ErrCorrupt, FileAdapterConfig, badinput.JSON(err))
	}
	if err := config.refuse(); err != nil {
		return fmt.Errorf("%s: %w", FileAdapterConfig, err)
	}
	f, err := c.tensors(dir, FileAdapter)
	if err != nil {
		return err
	}
	for i := range f.Tensors {
		if err := f.Tensors[i].load(); err != nil {
			return fmt.Errorf("%s: %w", FileAdapter, err)
		}
	}
	if err := c.mergeTensors(index(f), config); err != nil {
		return fmt.Errorf("%s: %w", FileAdapter, err)
	}
	c.Merged = true
	return nil
}

func (a adapterConfig) refuse() error {
	switch {
	case a.Type != "LORA":
		return fmt.Errorf("%w: peft_type is %q, want LORA", ErrUnsupported, a.Type)
	case a.Rank < 1 || a.Rank > maxSide:
		return fmt.Errorf("%w: r is %d", ErrCorrupt, a.Rank)
	case a.Bias != "" && a.Bias != "none", a.DoRA, a.RSLoRA, a.LoRABias, a.FanInFanOut,
		len(a.RankPattern)+len(a.AlphaPattern)+len(a.Saved) > 0:
		return fmt.Errorf("%w: it asks for more than a plain adapter of one rank", ErrUnsupported)
	}
	return nil
}

// mergeTensors merges every tensor of the adapter. A tensor without a base weight is an error.
func (c *Checkpoint) mergeTensors(adapter map[string]Tensor, config adapterConfig) error {
	scale := float32(config.Alpha / float64(config.Rank))
	for i := range c.Weights {
		w := &c.Weights[i]
		module, ok := strings.CutSuffix(w.Name, ".weight")
		a, has := adapter[adapterPrefix+module+suffixA]
		if !ok || !has {
			continue
		}
		if len(w.Dims) != 2 || !slices.Equal(a.Dims, []int{config.Rank, w.Dims[1]}) {
			return fmt.Errorf(
				"%w: tensor %q is %v, which does not fit %q %v and rank %d", ErrCorrupt, a.Name, a.Dims, w.Name, w.Dims,
				config.Rank,
			)
		}
		b, err := take(adapter, adapterPrefix+module+suffixB, []int{w.Dims[0], config.Rank})
		if err != nil {
			return err
		}
		w.stored = w.stored.with(&delta{a: a.Data, b: b.Data, rank: config.Rank, in: w.Dims[1], scale: scale})
		delete(adapter, a.Name)
		delete(adapter, b.Name)
	}
	for name := range adapter {
		return fmt.Errorf("%w: tensor %q belongs to no tensor of the model", ErrCorrupt, name)
	}
	return nil
}
