package analysis

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// tokenizerFile is the tokenizer's file in a checkpoint's folder.
const tokenizerFile = "tokenizer.json"

// Tokenizer returns the tokenizer of the checkpoint that the run started from, which is never pruned, or of the policy
// that it evaluates. For a run without a policy, such as an import, it returns this program's own, which imports are
// split with. It is nil if the checkpoint's tokenizer is of a kind that this program cannot read.
func (v *Visible) Tokenizer(ctx context.Context) (tokenizer.Codec, error) {
	m, _, found, err := v.record.writer.Lookup(ctx, schema.AtInit(v.run, schema.StageWarmStart))
	if err != nil {
		return nil, err
	}
	policy, err := policyOf(v.prepare)
	if err != nil {
		return nil, err
	}
	if policy.Digest != "" {
		if m, err = v.record.writer.Read(ctx, policy.Manifest); err != nil {
			return nil, fmt.Errorf("read the evaluated policy: %w", err)
		}
		found = true
	}
	if !found || m.Checkpoint == nil {
		own, err := rollout.NewTokenizer()
		if err != nil {
			return nil, err
		}
		return own, nil
	}
	for _, f := range m.Checkpoint.Files {
		if f.Name != tokenizerFile {
			continue
		}
		data, err := v.record.blob(ctx, m.Checkpoint.Key(f), f.Digest, "json")
		if err != nil {
			return nil, fmt.Errorf("read the run's tokenizer: %w", err)
		}
		if t, err := tokenizer.Read(data); err == nil {
			return t, nil
		}
	}
	return nil, nil
}
