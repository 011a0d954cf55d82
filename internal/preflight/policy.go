package preflight

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// TokenizerFile is the file of a checkpoint that holds its vocabulary.
const TokenizerFile = "tokenizer.json"

// Tokenizer reads the tokenizer of a policy from the checkpoint that its manifest commits. read reads a file of it by
// its key and its digest.
func Tokenizer(m schema.Manifest, read func(key, digest string) ([]byte, error)) (tokenizer.Codec, error) {
	if m.Checkpoint == nil {
		return nil, badinput.Errorf("policy: %s commits no checkpoint", m.ManifestKey())
	}
	i := slices.IndexFunc(m.Checkpoint.Files, func(f schema.CheckpointFile) bool { return f.Name == TokenizerFile })
	if i < 0 {
		return nil, badinput.Errorf("policy: the checkpoint of %s has no %s", m.ManifestKey(), TokenizerFile)
	}
	file := m.Checkpoint.Files[i]
	text, err := read(m.Checkpoint.Key(file), file.Digest)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Read(text)
	if err != nil {
		return nil, badinput.Errorf("policy: its %s is not one that this program samples with: %w", TokenizerFile, err)
	}
	return t, nil
}

// Reads refuses to evaluate a policy whose tokenizer lacks fixed strings of the recipe's prompt format: each of them is
// one token, and the policy would have to read and write it as others.
func Reads(tokens tokenizer.Codec, r *recipes.Recipe) error {
	p, err := r.Protocol()
	if err != nil {
		return badinput.Of(err)
	}
	missing := lacks(tokens, p)
	if len(missing) == 0 {
		return nil
	}
	hint := "evaluate a policy that was trained with it"
	if fit := fitting(tokens, r.Environment.Declaration().Interactive); len(fit) > 0 {
		hint = "name another one: --set rollout.protocol=" + strings.Join(fit, " or ")
	}
	return badinput.Errorf("rollout.protocol: the policy was trained with another tokenizer than the prompt format %s "+
		"of %s needs: it lacks %d of its fixed strings, such as %q; %s", p.Spec().Name, r.Environment.Name,
		len(missing), strings.TrimSpace(missing[0]), hint)
}

// lacks lists the fixed strings of a prompt format that are no tokens of a tokenizer.
func lacks(t tokenizer.Codec, p protocol.Protocol) []string {
	return slices.DeleteFunc(slices.Clone(p.Added()), func(s string) bool {
		_, known := t.ID(s)
		return known
	})
}

// fitting names the prompt formats of interactive environments, or of questions, that a tokenizer has all strings of.
func fitting(t tokenizer.Codec, interactive bool) (names []string) {
	for _, p := range protocol.All {
		if p.Spec().Acts == interactive && len(lacks(t, p)) == 0 {
			names = append(names, p.Spec().Name)
		}
	}
	return names
}
