package tinker

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// adapter is a LoRA adapter that was downloaded.
type adapter struct {
	alpha   float64
	tensors []checkpoint.Tensor // sorted by name
}

// errNoDownload says that a server does not give its adapters away.
var errNoDownload = errors.New("the server offers no download of adapters")

// download fetches the adapter that was saved for sampling. It is errNoDownload if the server has no such file.
func (s *session) download(ctx context.Context, saved string, shape checkpoint.Shape) (*adapter, error) {
	m := pathOf.FindStringSubmatch(saved)
	if m == nil {
		return nil, s.fault("%q is no path of a checkpoint", shorten(saved))
	}
	f, err := os.CreateTemp("", "ropewalk-adapter-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	at := fmt.Sprintf("api/v1/training_runs/%s/checkpoints/%s/archive", m[1], m[2])
	attempt := func() error {
		if err := errors.Join(f.Truncate(0), seekStart(f)); err != nil {
			return err
		}
		_, err := s.client.Download(ctx, at, f, seconds(s.Seconds), mostArchive(shape, s.lora))
		return err
	}
	if err := s.try(ctx, attempt, (*openai.Error).Retry); err != nil {
		if status := statusOf(err); status == 404 || status == 405 || status == 501 {
			return nil, fmt.Errorf("%w: %w", errNoDownload, err)
		}
		return nil, fmt.Errorf("download the adapter: %w", err)
	}
	if err := seekStart(f); err != nil {
		return nil, err
	}
	a, err := readArchive(f, mostArchive(shape, s.lora))
	if err == nil {
		err = a.check(shape, s.lora)
	}
	if err != nil {
		return nil, s.fault("the adapter that it sends: %v", err)
	}
	return a, nil
}

func seekStart(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// mostArchive bounds an archive: the adapter's numbers, and room for names.
func mostArchive(s checkpoint.Shape, l LoRA) int64 {
	n := int64(0)
	for _, dims := range adapterDims(s, l) {
		n += 4 * int64(dims[0]) * int64(dims[1])
	}
	return n + n/8 + 4<<20
}

// readArchive reads the two files of an adapter out of a tar archive, which may be compressed.
func readArchive(f io.Reader, most int64) (*adapter, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, fmt.Errorf("it is no archive: %w", err)
	}
	var r io.Reader = io.MultiReader(bytes.NewReader(head), f)
	if head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("it is no archive: %w", err)
		}
		r = z
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(io.LimitReader(r, most)); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("it is no archive: %w", err)
		}
		name := path.Base(path.Clean(h.Name))
		if h.Typeflag != tar.TypeReg || name != checkpoint.FileAdapter && name != checkpoint.FileAdapterConfig {
			continue
		}
		if files[name], err = io.ReadAll(archive); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range []string{checkpoint.FileAdapter, checkpoint.FileAdapterConfig} {
		if files[name] == nil {
			return nil, fmt.Errorf("it has no %s", name)
		}
	}
	return parseAdapter(files[checkpoint.FileAdapterConfig], files[checkpoint.FileAdapter])
}

func parseAdapter(config, weights []byte) (*adapter, error) {
	var c struct {
		Alpha  float64 `json:"lora_alpha"`
		RSLoRA bool    `json:"use_rslora"`
		DoRA   bool    `json:"use_dora"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", checkpoint.FileAdapterConfig, badinput.JSON(err))
	}
	if c.RSLoRA || c.DoRA {
		return nil, fmt.Errorf("%s: it is no plain LoRA", checkpoint.FileAdapterConfig)
	}
	f, err := checkpoint.DecodeSafetensors(weights)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", checkpoint.FileAdapter, err)
	}
	a := &adapter{alpha: c.Alpha, tensors: f.Tensors}
	slices.SortFunc(a.tensors, func(x, y checkpoint.Tensor) int { return strings.Compare(x.Name, y.Name) })
	return a, nil
}

// adapterDims are the tensors that an adapter of the recipe has.
func adapterDims(s checkpoint.Shape, l LoRA) map[string][]int {
	out := map[string][]int{}
	for _, t := range s.Tensors() {
		module, weight := strings.CutSuffix(t.Name, ".weight")
		if !weight || len(t.Dims) != 2 || !slices.Contains(l.Targets, module[strings.LastIndex(module, ".")+1:]) {
			continue
		}
		out["base_model.model."+module+".lora_A.weight"] = []int{l.Rank, t.Dims[1]}
		out["base_model.model."+module+".lora_B.weight"] = []int{t.Dims[0], l.Rank}
	}
	return out
}

// check holds an adapter against the recipe's.
func (a *adapter) check(s checkpoint.Shape, l LoRA) error {
	if a.alpha != l.Alpha {
		return fmt.Errorf("lora_alpha is %v, engine.lora.alpha is %v", a.alpha, l.Alpha)
	}
	want := adapterDims(s, l)
	for _, t := range a.tensors {
		dims, ok := want[t.Name]
		if !ok {
			return fmt.Errorf("it has a tensor %s, which engine.lora.targets does not ask for", shorten(t.Name))
		}
		if !slices.Equal(dims, t.Dims) {
			return fmt.Errorf("tensor %s is %v, want %v", t.Name, t.Dims, dims)
		}
		for _, v := range t.Data {
			if v != v || math.IsInf(float64(v), 0) {
				return fmt.Errorf("tensor %s holds a number that is not finite", t.Name)
			}
		}
		delete(want, t.Name)
	}
	for name := range want {
		return fmt.Errorf("it has no tensor %s (%d are missing)", name, len(want))
	}
	return nil
}

// norm2 is the sum of the squares of the differences between two adapters.
func (a *adapter) norm2(b *adapter) (sum float64) {
	for i, t := range a.tensors {
		for j, v := range t.Data {
			d := float64(v) - float64(b.tensors[i].Data[j])
			sum += d * d
		}
	}
	return sum
}

// write puts the adapter's files into a folder, as PyTorch's engine writes them.
func (a *adapter) write(dir string, l LoRA) (err error) {
	targets := slices.Sorted(slices.Values(l.Targets))
	config, err := json.MarshalIndent(map[string]any{"base_model_name_or_path": nil, "bias": "none",
		"inference_mode": true, "lora_alpha": l.Alpha, "lora_dropout": 0.0, "peft_type": "LORA", "r": l.Rank,
		"target_modules": targets, "task_type": "CAUSAL_LM"}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, checkpoint.FileAdapterConfig), append(config, '\n'), 0o644); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, checkpoint.FileAdapter), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return checkpoint.EncodeSafetensors(f, a.tensors, map[string]string{"format": "pt"})
}
