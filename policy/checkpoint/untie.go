package checkpoint

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Untie returns a policy whose output head has a matrix of its own, equal to the embedding if the two were shared. Some
// servers do not reload a head that they share with the embedding. The numbers of the two are the same ones.
func (c *Checkpoint) Untie() (*Checkpoint, error) {
	out := *c
	if c.Shape.Untied {
		return &out, nil
	}
	if c.Config != nil {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(c.Config, &fields); err != nil {
			return nil, fmt.Errorf("read %s: %w", FileConfig, err)
		}
		fields["tie_word_embeddings"] = json.RawMessage("false")
		var err error
		if out.Config, err = json.Marshal(fields); err != nil {
			return nil, fmt.Errorf("write %s: %w", FileConfig, err)
		}
	}
	head := c.Weights[0]
	head.Name = NameHead
	out.Shape.Untied = true
	bare := len(c.Weights) - len(c.Shape.valueHead())
	out.Weights = slices.Insert(slices.Clone(c.Weights), bare, head)
	return &out, nil
}
