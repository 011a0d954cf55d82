package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// usualTurnTokens is the longest response of a model in a folder whose recipe does not say it.
const usualTurnTokens = 256

// Folder is a Hugging Face folder on this machine, as runs make them and `export --checkpoint` writes them.
type Folder struct {
	dir   string
	shape checkpoint.Shape
	files []string // names of the model's files; training state is left out
	// Published means that the model has another tokenizer than those that are made here: OpenModel takes it.
	Published bool
}

// OpenFolder checks that a folder holds a model that can be sampled: its configuration, weights and tokenizer.
func OpenFolder(dir string) (Folder, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Folder{}, badinput.Errorf("%s: there is no such folder; name a folder with a model, or a run and a "+
			"step as RUN@STEP", dir)
	}
	if err == nil && !info.IsDir() {
		return Folder{}, badinput.Errorf("%s: is a file; name the folder with the model's files", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Folder{}, badinput.Errorf("%s: %w", dir, cause.Of(err))
	}
	f := Folder{dir: dir}
	found := map[string]bool{}
	for _, e := range entries {
		found[e.Name()] = true
		if checkpoint.IsModel(e.Name()) {
			f.files = append(f.files, e.Name())
		}
	}
	for _, name := range []string{checkpoint.FileConfig, preflight.TokenizerFile} {
		if !found[name] {
			return f, badinput.Errorf("%s: holds no model: it has no %s", dir, name)
		}
	}
	if !found[checkpoint.FileWeights] && !found[checkpoint.FileIndex] {
		return f, badinput.Errorf("%s: holds no model: it has no %s", dir, checkpoint.FileWeights)
	}
	return f, f.check()
}

// check reads the model's headers and its tokenizer.
func (f *Folder) check() (err error) {
	config, err := os.ReadFile(filepath.Join(f.dir, checkpoint.FileConfig))
	if err == nil {
		f.shape, err = checkpoint.ParseConfig(config)
	}
	if err != nil {
		return badinput.Errorf("%s: %w", f.dir, cause.Of(err))
	}
	c, err := checkpoint.Open(f.dir, false)
	if err != nil {
		return badinput.Errorf("%s: %w", f.dir, cause.Of(err))
	}
	if err := c.Close(); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(f.dir, preflight.TokenizerFile))
	if err != nil {
		return badinput.Errorf("%s: %w", f.dir, cause.Of(err))
	}
	t, err := tokenizer.Load(text)
	if err != nil {
		if _, err := tokenizer.Read(text); err != nil {
			return badinput.Errorf("%s: its %s is not one that this program samples with: %w", f.dir,
				preflight.TokenizerFile, err)
		}
		f.Published = true
		return nil
	}
	if t.VocabSize() > f.shape.Vocab {
		return badinput.Errorf("%s: its %s has %d tokens and its model %d", f.dir, preflight.TokenizerFile,
			t.VocabSize(), f.shape.Vocab)
	}
	return nil
}

// Recipe returns the section of a recipe that describes the model.
func (f Folder) Recipe() map[string]any {
	s := f.shape
	return map[string]any{"layers": s.Layers, "hidden": s.Hidden, "heads": s.Heads, "kv_heads": s.KVHeads,
		"head_dim": s.HeadDim, "ffn": s.FFN, "rope_base": s.RopeTheta, "max_positions": s.Positions}
}

// Put stores the model under the digest of its files, once, and returns the reference to it. It is kept where the first
// policies of runs are kept, since it belongs to no run either. code is the digest of this program.
func (f Folder) Put(ctx context.Context, objects store.Store, code string) (api.PolicyRef, error) {
	links, err := os.MkdirTemp("", "ropewalk-model-")
	if err != nil {
		return api.PolicyRef{}, fmt.Errorf("make a folder for links to %s: %w", f.dir, err)
	}
	defer os.RemoveAll(links)
	whole, err := filepath.Abs(f.dir)
	if err != nil {
		return api.PolicyRef{}, err
	}
	for _, name := range f.files { // a folder with the model's files alone has the digest of the model alone
		if err := os.Symlink(filepath.Join(whole, name), filepath.Join(links, name)); err != nil {
			return api.PolicyRef{}, err
		}
	}
	digest, err := checkpoint.Digest(links)
	if err != nil {
		return api.PolicyRef{}, badinput.Errorf("%s: %w", f.dir, err)
	}
	return put(ctx, commit.New(objects), links, digest, code)
}

// put commits a folder's model unless it is committed.
func put(ctx context.Context, record *commit.Writer, dir, digest, code string) (api.PolicyRef, error) {
	document, err := schema.Canonical(map[string]string{"folder": digest})
	if err != nil {
		return api.PolicyRef{}, err
	}
	place := schema.AtWarmStart(schema.Digest(document))
	m, ref, found, err := record.Lookup(ctx, place)
	if err == nil && !found {
		m = schema.NewManifest(place, code, place.Warm)
		ref, err = commitFolder(ctx, record, &m, dir, digest, document)
	}
	if err != nil {
		return api.PolicyRef{}, err
	}
	return api.PolicyRef{Manifest: ref, Digest: m.Checkpoint.Digest}, nil
}

// commitFolder stores the folder and commits the manifest m about it.
func commitFolder(ctx context.Context, record *commit.Writer, m *schema.Manifest, dir, digest string, document []byte,
) (ref schema.Ref, err error) {
	shard, err := record.Shard(ctx, m.Place, schema.Documents, document, 1)
	if err != nil {
		return ref, err
	}
	stored, err := record.PutFolder(ctx, dir, digest, m.CheckpointPrefix(fmt.Sprintf("%06d-%.16s", 0, digest)), nil)
	if err != nil {
		return ref, err
	}
	if stored.Weights, err = checkpoint.WeightsDigest(dir); err != nil {
		return ref, err
	}
	m.Shards, m.Checkpoint = []schema.ShardInfo{shard}, &stored
	*m, ref, _, err = record.Commit(ctx, *m)
	return ref, err
}

// Evaluation describes an evaluation of the folder's model, under a base's recipe or with an environment's defaults. A
// base keeps its lengths as far as the model has positions for them.
func (f Folder) Evaluation(base json.RawMessage) (Evaluation, error) {
	recipe, err := recipeOf(base, f.shape.Positions)
	if err != nil {
		return Evaluation{}, err
	}
	recipe["policy"] = f.Recipe()
	return Evaluation{Of: filepath.Base(f.dir), Recipe: recipe, Fresh: true}, nil
}
