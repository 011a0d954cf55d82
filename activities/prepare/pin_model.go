package prepare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/hub"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/secret"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// A run that starts from a model at policy.checkpoint takes it into the store when it is prepared, under a key like
// that of a warm start: the digest of what identifies the model. From then on the recipe names the model by that key
// (recipes.Pinned), and neither the folder nor the hub is needed any more.

// modelInputs is what identifies a model in the store; the digest of its canonical JSON is the key. A hub's model is
// identified by its commit, so that it need not be fetched to be recognised, and any other by its content.
type modelInputs struct {
	Digest string `json:"digest,omitempty"`
	Hub    string `json:"hub,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// pinModel takes the model at policy.checkpoint into the store, unless it is there, and returns the recipe with it. A
// run that is already prepared, by the manifest ref, keeps its model.
func (a PrepareRun) pinModel(ctx context.Context, resolved *recipes.Resolved, ref schema.Ref, found bool,
	report func(done, total int)) (*recipes.Resolved, error) {
	policy := resolved.Recipe.Policy
	if policy.Checkpoint == "" {
		return resolved, nil
	}
	if found {
		c, err := a.Recipes.Config(ctx, ref)
		if err != nil {
			return nil, err
		}
		if p := c.Recipe.Policy; p.Pinned != nil && p.Checkpoint == policy.Checkpoint {
			return resolved.Recipe.WithModel(*p.Pinned)
		}
	}
	if p := policy.Pinned; p != nil { // of another run's recipe: the store has the model, and its source may be gone
		m, _, there, err := a.Record.Lookup(ctx, schema.AtWarmStart(p.Inputs))
		if err != nil {
			return nil, err
		}
		if there && m.Checkpoint != nil {
			stored, err := taking{PrepareRun: a}.pinned(ctx, m, p.Source)
			if err != nil {
				return nil, err
			}
			if stored == *p {
				return resolved.Recipe.WithModel(stored)
			}
		}
	}
	pinned, err := a.takeModel(ctx, policy, report)
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, store.ErrUnreachable)):
		return nil, err
	case err != nil: // a person is there to correct it
		return nil, badinput.Errorf("policy.checkpoint: %s: %v", policy.Checkpoint, err)
	case policy.Pinned != nil && policy.Pinned.Digest != pinned.Digest:
		return nil, badinput.Errorf("policy.pinned.digest: the model at %s has the digest %s, and "+
			"the recipe wants %s", policy.Checkpoint, pinned.Digest, policy.Pinned.Digest)
	}
	return resolved.Recipe.WithModel(pinned)
}

// speaks refuses a model whose tokenizer or chat template does not fit the recipe's prompt format, before anything
// starts.
func (a PrepareRun) speaks(r *recipes.Recipe) error {
	if r.Policy.Checkpoint == "" || r.Environment.Imported() {
		return nil
	}
	if _, err := a.Recipes.Loop(r, resolver.RolloutSampling(r)); err != nil {
		return badinput.Errorf("policy.checkpoint: the model at %s does not fit rollout.protocol: %v",
			r.Policy.Checkpoint, err)
	}
	return nil
}

// withModel returns a changed recipe with the model that was pinned before: a run's first policy stays the same.
func withModel(resolved *recipes.Resolved, before recipes.Policy) (*recipes.Resolved, error) {
	if resolved.Recipe.Policy.Checkpoint != before.Checkpoint {
		return nil, badinput.Errorf("policy.checkpoint: the model that a run starts from cannot change")
	}
	if before.Pinned == nil {
		return resolved, nil
	}
	return resolved.Recipe.WithModel(*before.Pinned)
}

// takeModel finds the model at policy.checkpoint by the form of its address.
func (a PrepareRun) takeModel(ctx context.Context, p recipes.Policy, report func(done, total int)) (recipes.Pinned,
	error) {
	dir, err := os.MkdirTemp(a.Engines.Scratch, "model-")
	if err != nil {
		return recipes.Pinned{}, fmt.Errorf("make a folder for the model: %w", err)
	}
	defer os.RemoveAll(dir)
	t := taking{PrepareRun: a, dir: dir, report: report}
	scheme, rest, addressed := strings.Cut(p.Checkpoint, "://")
	run, isRun := strings.CutPrefix(p.Checkpoint, "run:")
	switch {
	case addressed && scheme == "hf":
		return t.ofHub(ctx, rest, p.Token)
	case addressed && scheme == "s3":
		return t.ofBucket(ctx, rest)
	case isRun:
		return t.ofRun(ctx, run)
	case addressed:
		return recipes.Pinned{}, errors.New("want an absolute path, s3://, hf://, run:RUN or the name of a model")
	case filepath.IsAbs(p.Checkpoint):
		return t.ofPath(ctx, p.Checkpoint, "")
	case !filepath.IsLocal(p.Checkpoint):
		return recipes.Pinned{}, errors.New("a name does not lead out of the folder of models")
	case a.Recipes.Models == "":
		return recipes.Pinned{}, errors.New("the worker has no folder of models: it looks for ROPEWALK_MODELS, or " +
			".tools/models, when it starts; start it again once there is one")
	}
	return t.ofPath(ctx, filepath.Join(a.Recipes.Models, p.Checkpoint), "")
}

// taking takes one model into the store, by way of a folder of its own.
type taking struct {
	PrepareRun
	dir    string
	report func(done, total int)
}

// ofPath takes a local folder or GGUF file. source says where its model came from; "" = only its digest identifies it.
func (t taking) ofPath(ctx context.Context, path, source string) (recipes.Pinned, error) {
	to := filepath.Join(t.dir, "checkpoint")
	if err := pretrained.Take(path, to); err != nil {
		return recipes.Pinned{}, err
	}
	digest, err := checkpoint.Digest(to)
	if err != nil {
		return recipes.Pinned{}, err
	}
	return t.commit(ctx, to, modelInputs{Digest: digest}, source)
}

// commit stores a checked folder, unless it is there.
func (t taking) commit(ctx context.Context, folder string, from modelInputs, source string) (recipes.Pinned, error) {
	text, err := schema.Canonical(map[string]any{"model": from})
	if err != nil {
		return recipes.Pinned{}, err
	}
	place := schema.AtWarmStart(schema.Digest(text))
	m, _, there, err := t.Record.Lookup(ctx, place)
	if err != nil {
		return recipes.Pinned{}, err
	}
	if !there {
		m = schema.NewManifest(place, t.Code, schema.Digest(text))
		document, err := t.Record.Shard(ctx, place, schema.Documents, text, 1)
		if err != nil {
			return recipes.Pinned{}, err
		}
		m.Shards = append(m.Shards, document)
		stored, err := enginepool.StoreWhole(ctx, t.Record, folder, place)
		if err != nil {
			return recipes.Pinned{}, err
		}
		m.Checkpoint = &stored
		m.Stats = map[string]float64{schema.StatRows: 0, schema.StatTokens: 0}
		if m, _, _, err = t.Record.Commit(ctx, m); err != nil {
			return recipes.Pinned{}, err
		}
	}
	return t.pinned(ctx, m, source)
}

// pinned describes a model that is in the store.
func (t taking) pinned(ctx context.Context, m schema.Manifest, source string) (recipes.Pinned, error) {
	if m.Checkpoint == nil {
		return recipes.Pinned{}, refusal.Corruptf("%s commits no checkpoint", m.ManifestKey())
	}
	files, err := resolver.SmallFiles(ctx, t.PrepareRun.Worker.Records, *m.Checkpoint)
	if err != nil {
		return recipes.Pinned{}, err
	}
	model, err := pretrained.Read(files)
	if err != nil {
		return recipes.Pinned{}, err
	}
	return recipes.Pinned{Inputs: m.Warm, Digest: m.Checkpoint.Digest, Source: source,
		Config: string(files[checkpoint.FileConfig]), Rewrites: preflight.Rewrites(&model)}, nil
}

// ofRun takes the policy of another run: that after a step, or the last.
func (t taking) ofRun(ctx context.Context, address string) (recipes.Pinned, error) {
	run, at, named := strings.Cut(address, "@")
	if schema.CheckRunID(run) != nil {
		return recipes.Pinned{}, fmt.Errorf("%q is no run", run)
	}
	step, err := strconv.Atoi(at)
	if named && (err != nil || step < 0) {
		return recipes.Pinned{}, fmt.Errorf("@%s is no step", at)
	}
	if !named {
		if step, err = t.LastStep(ctx, run); err != nil {
			return recipes.Pinned{}, err
		}
	}
	m, policy, err := t.PolicyAfter(ctx, run, step)
	if err != nil {
		return recipes.Pinned{}, err
	}
	if pruned, err := t.Pruned(ctx, *m.Checkpoint); err != nil || pruned {
		return recipes.Pinned{}, errors.Join(err, fmt.Errorf("the checkpoint after step %d is pruned", step))
	}
	from := filepath.Join(t.dir, "from")
	if err := os.Mkdir(from, 0o700); err != nil {
		return recipes.Pinned{}, err
	}
	if err := enginepool.Fetch(ctx, t.Record, *m.Checkpoint, from, false); err != nil {
		return recipes.Pinned{}, err
	}
	if err := merged(from); err != nil {
		return recipes.Pinned{}, err
	}
	return t.ofPath(ctx, from, fmt.Sprintf("run %s after step %d, checkpoint %s", run, step, policy.Digest))
}

// merged replaces an adapter's folder by that of the whole model.
func merged(folder string) (err error) {
	adapter, err := checkpoint.HasAdapter(folder)
	if err != nil || !adapter {
		return err
	}
	c, err := checkpoint.Open(folder, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	whole := folder + "-merged"
	if err := checkpoint.WriteModel(whole, c, checkpoint.F32); err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.Rename(whole, folder)
}

// ofBucket takes a folder or a GGUF file on the S3 server.
func (t taking) ofBucket(ctx context.Context, address string) (recipes.Pinned, error) {
	name, key, err := pretrained.ParseBucket(address)
	if err != nil {
		return recipes.Pinned{}, err
	}
	if t.Recipes.Bucket == nil {
		return recipes.Pinned{}, errors.New("this worker opens no other buckets")
	}
	objects, err := t.Recipes.Bucket(name)
	if err != nil {
		return recipes.Pinned{}, err
	}
	path, err := pretrained.FetchBucket(ctx, objects, key, t.dir, t.report)
	if err != nil {
		return recipes.Pinned{}, err
	}
	return t.ofPath(ctx, path, "")
}

// ofHub takes a hub's model. A model that the store has is not fetched again; without the hub, the store's is taken:
// of a branch, the commit that it last named.
func (t taking) ofHub(ctx context.Context, address, token string) (recipes.Pinned, error) {
	repository, revision, err := hub.Parse(address)
	if err != nil {
		return recipes.Pinned{}, err
	}
	if hub.IsCommit(revision) {
		if pinned, there, err := t.stored(ctx, repository, revision); err != nil || there {
			return pinned, err
		}
	}
	if token, err = (&secret.Values{}).Resolve("policy.token", token); err != nil {
		return recipes.Pinned{}, err
	}
	server := hub.Here(token)
	snapshot, err := server.Resolve(ctx, repository, revision)
	if errors.Is(err, hub.ErrUnreachable) {
		return t.offline(ctx, repository, revision, err)
	}
	if err != nil {
		return recipes.Pinned{}, err
	}
	pinned, there, err := t.stored(ctx, repository, snapshot.Commit)
	if err != nil {
		return pinned, err
	}
	if !there {
		if pinned, err = t.fetch(ctx, server, snapshot); err != nil {
			return pinned, err
		}
	}
	key := schema.HubRevisionKey(repository, revision, snapshot.Commit)
	return pinned, t.Store.Put(ctx, key, []byte(snapshot.Commit+"\n"))
}

// offline finds the commit that a revision named when the hub was last asked. why says why it is not asked now.
func (t taking) offline(ctx context.Context, repository, revision string, why error) (recipes.Pinned, error) {
	known, err := t.Store.List(ctx, schema.HubRevisionKey(repository, revision, ""))
	if err != nil {
		return recipes.Pinned{}, err
	}
	var last store.Object
	for _, o := range known {
		if o.Modified.After(last.Modified) || last.Key == "" {
			last = o
		}
	}
	if last.Key == "" {
		return recipes.Pinned{}, fmt.Errorf("%w; it is not in the store either", why)
	}
	pinned, there, err := t.stored(ctx, repository, last.Key[strings.LastIndex(last.Key, "/")+1:])
	if err == nil && !there {
		err = fmt.Errorf("%w; it is not in the store either", why)
	}
	return pinned, err
}

// stored finds a hub's model in the store.
func (t taking) stored(ctx context.Context, repository, commit string) (recipes.Pinned, bool, error) {
	text, err := schema.Canonical(map[string]any{"model": modelInputs{Hub: repository, Commit: commit}})
	if err != nil {
		return recipes.Pinned{}, false, err
	}
	m, _, there, err := t.Record.Lookup(ctx, schema.AtWarmStart(schema.Digest(text)))
	if err != nil || !there {
		return recipes.Pinned{}, false, err
	}
	pinned, err := t.pinned(ctx, m, commit)
	return pinned, true, err
}

// fetch fetches a snapshot and stores it.
func (t taking) fetch(ctx context.Context, server hub.Hub, s hub.Snapshot) (recipes.Pinned, error) {
	from, to := filepath.Join(t.dir, "from"), filepath.Join(t.dir, "checkpoint")
	if err := pretrained.FetchHub(ctx, server, s, from, t.report); err != nil {
		return recipes.Pinned{}, err
	}
	if err := pretrained.Take(from, to); err != nil {
		return recipes.Pinned{}, err
	}
	return t.commit(ctx, to, modelInputs{Hub: s.Repository, Commit: s.Commit}, s.Commit)
}
