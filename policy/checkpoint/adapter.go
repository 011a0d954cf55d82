package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A LoRA adapter lies in two files beside the base that it belongs to, model.safetensors: adapter_config.json and, in float32,
// adapter_model.safetensors with base_model.model.MODULE.lora_A.weight [rank, in] and ….lora_B.weight [out, rank] for each
// module that has one. Its product is lora_alpha/r · B·A (Hu et al. 2021). The optimiser's moments are then the adapter's.

const (
	adapterPrefix = "base_model.model."
	suffixA       = ".lora_A.weight"
	suffixB       = ".lora_B.weight"
)

// adapterConfig is what of adapter_config.json is read.
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
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return false, nil
}

// merge adds the adapter's products to the weights that they stand beside, and drops the adapter. What is left is a model
// like any other, that gives the same outputs up to rounding.
func (c *Checkpoint) merge(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, FileAdapterConfig))
	if err != nil {
		return err
	}
	var config adapterConfig
	if err := json.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("%w: parse %s: %w", ErrCorrupt, FileAdapterConfig, err)
	}
	if err := config.refuse(); err != nil {
		return fmt.Errorf("%s: %w", FileAdapterConfig, err)
	}
	f, err := readTensors(dir, FileAdapter)
	if err != nil {
		return err
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
	case a.Bias != "" && a.Bias != "none", a.DoRA, a.RSLoRA, a.LoRABias, a.FanInFanOut, len(a.RankPattern)+len(a.AlphaPattern)+len(a.Saved) > 0:
		return fmt.Errorf("%w: it asks for more than a plain adapter of one rank", ErrUnsupported)
	}
	return nil
}

// mergeTensors takes every tensor of the adapter; one that no weight belongs to is refused.
func (c *Checkpoint) mergeTensors(adapter map[string]Tensor, config adapterConfig) error {
	scale := float32(config.Alpha / float64(config.Rank))
	for _, w := range c.Weights {
		module, ok := strings.CutSuffix(w.Name, ".weight")
		a, has := adapter[adapterPrefix+module+suffixA]
		if !ok || !has {
			continue
		}
		if len(w.Dims) != 2 || !slices.Equal(a.Dims, []int{config.Rank, w.Dims[1]}) {
			return fmt.Errorf("%w: tensor %q is %v beside %q %v and rank %d", ErrCorrupt, a.Name, a.Dims, w.Name, w.Dims, config.Rank)
		}
		b, err := take(adapter, adapterPrefix+module+suffixB, []int{w.Dims[0], config.Rank})
		if err != nil {
			return err
		}
		addProduct(w.Data, b.Data, a.Data, config.Rank, w.Dims[1], scale)
		delete(adapter, a.Name)
		delete(adapter, b.Name)
	}
	for name := range adapter {
		return fmt.Errorf("%w: tensor %q belongs to none of the model's", ErrCorrupt, name)
	}
	return nil
}

// addProduct adds scale·b·a to w: b [out, rank], a [rank, in], w [out, in].
func addProduct(w, b, a []float32, rank, in int, scale float32) {
	for o := range len(b) / rank {
		row := w[o*in : (o+1)*in]
		for r := range rank {
			f := scale * b[o*rank+r]
			for i, x := range a[r*in : (r+1)*in] {
				row[i] += f * x
			}
		}
	}
}
