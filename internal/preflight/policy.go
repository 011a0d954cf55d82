package preflight

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/hub"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
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

// Model is what is known about a model before a worker takes it into the store.
type Model struct {
	Address   string // as policy.checkpoint names it
	Digest    string // "" if only the worker reads it
	Positions int    // 0 if only the worker knows
	Rewrites  bool   // its chat template writes earlier turns differently; false if only the worker knows
}

// OpenModel finds a model by a path, by an address, or by its name in the folder of models, and checks those that are
// on this machine. A branch of a hub's model is the commit that it names now.
func OpenModel(ctx context.Context, address, models string) (Model, error) {
	if scheme, rest, addressed := strings.Cut(address, "://"); addressed {
		return openAddress(ctx, address, scheme, rest)
	}
	path, err := filepath.Abs(address)
	if err != nil {
		return Model{}, err
	}
	m := Model{Address: path}
	if _, missing := os.Stat(path); missing != nil && filepath.IsLocal(address) && models != "" {
		m.Address, path = address, filepath.Join(models, address)
	}
	if err := m.read(path); err != nil {
		return m, badinput.Errorf("%s: %w", address, err)
	}
	return m, nil
}

func openAddress(ctx context.Context, address, scheme, rest string) (m Model, err error) {
	m = Model{Address: address}
	switch scheme {
	case "s3":
		_, _, err = pretrained.ParseBucket(rest)
	case "hf":
		var repository, revision string
		if repository, revision, err = hub.Parse(rest); err != nil || hub.IsCommit(revision) {
			break
		}
		snapshot, asked := hub.Here("").Resolve(ctx, repository, revision)
		if err = asked; err == nil {
			m.Address = "hf://" + repository + "@" + snapshot.Commit
		} else if errors.Is(err, hub.ErrUnreachable) {
			err = nil // the worker looks in the store
		}
	default:
		err = errors.New("want a path, hf://, s3://, URL#NAME of a hosted model, or RUN[@STEP]")
	}
	if err != nil {
		return m, badinput.Errorf("%s: %w", address, err)
	}
	return m, nil
}

// read reads what a folder or GGUF file holds next to its weights, and the digest of all.
func (m *Model) read(path string) error {
	dir, err := os.MkdirTemp("", "ropewalk-model-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "checkpoint")
	if err := pretrained.Take(path, folder); err != nil {
		return err
	}
	found, err := pretrained.Describe(folder)
	if err != nil {
		return err
	}
	m.Positions, m.Rewrites = found.Shape.Positions, Rewrites(&found)
	m.Digest, err = checkpoint.Digest(folder)
	return err
}
